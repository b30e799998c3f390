"""The same tokens for every toolkit: regard's joint pieces of Multi30k, written as t4, t5, ... for the others."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from regard.data.batches import CostBatches
from regard.data.pairs import TextPairs, padded_sizes
from regard.data.tokenizer import SPECIALS, Tokenizer
from regard.training.material import make_tokenizers, read_data
from regard.training.recipe import DataConfig, read_recipe

SIDES = ("en", "de")
BATCH = 64


@dataclass(frozen=True)
class Material:
    """Where the prepared files are."""

    data: Path
    """The folder of Multi30k."""
    work: Path
    """The folder of what was prepared: train.en, train.de, valid.en, ..., vocabulary.txt, tokenizer.json."""
    max_tokens: int
    """How large regard's batches must be to hold 64 sentences on average."""

    @property
    def vocabulary(self) -> Path:
        """A piece on each line."""
        return self.work / "vocabulary.txt"

    @property
    def tokenizer(self) -> Path:
        """regard's."""
        return self.work / "tokenizer.json"

    def texts(self, count: int) -> Path:
        """A file of the first so many test sentences, as they are."""
        return self._first("test.txt", count)

    def sources(self, count: int) -> Path:
        """The same as pieces."""
        return self._first("test.en", count)

    def _first(self, name: str, count: int) -> Path:
        path = self.work / f"{count}-{name}"
        if not path.is_file():
            lines = (self.work / name).read_text(encoding="utf-8").splitlines(keepends=True)
            path.write_text("".join(lines[:count]), encoding="utf-8")
        return path


def data_config(folder: Path, *, test: bool = True) -> DataConfig:
    """Multi30k as in regard's own recipe, but cut in the same way in every epoch: the others are given fixed pieces."""
    changes = {"folder": str(folder), "bpe_dropout": 0.0} | ({} if test else {"test_source": "", "test_target": ""})
    return read_recipe("multi30k-luong", {"data": changes}).data


def prepare(folder: Path, work: Path) -> Material:
    """Learn the vocabulary, and write what the other toolkits read."""
    work.mkdir(parents=True, exist_ok=True)
    found = read_data(data_config(folder))
    tokenizer, _ = make_tokenizers(data_config(folder), found)
    tokenizer.save(work / "tokenizer.json")
    pieces = (f"t{number}\n" for number in range(len(SPECIALS), len(tokenizer)))
    (work / "vocabulary.txt").write_text("".join(pieces), encoding="utf-8")
    train = list(found.train)
    for name, pairs in {"train": train, "valid": found.valid, "test": found.test}.items():
        for place, side in enumerate(SIDES):
            (work / f"{name}.{side}").write_text(_numbered(tokenizer, [pair[place] for pair in pairs]), "utf-8")
    (work / "test.txt").write_text("".join(f"{source}\n" for source, _ in found.test), encoding="utf-8")
    lengths = TextPairs(train, tokenizer, tokenizer).lengths
    return Material(folder, work, _max_tokens(lengths))


def _numbered(tokenizer: Tokenizer, texts: list[str]) -> str:
    return "".join(" ".join(f"t{number}" for number in ids) + "\n" for ids in tokenizer.encode_batch(texts))


def _max_tokens(lengths: np.ndarray) -> int:
    """The smallest max_tokens that makes batches of 64 sentences on average."""
    low, high = 1, BATCH * int(lengths.max() + 2)
    while low < high:
        middle = (low + high) // 2
        batches = len(CostBatches(padded_sizes(lengths), max_cost=middle, shuffle=False, seed=0))
        low, high = (low, middle) if len(lengths) / batches >= BATCH else (middle + 1, high)
    return low
