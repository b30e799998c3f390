"""The same tokens for every toolkit: regard's joint subwords of Multi30k, written as t4, t5, ... for the others."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from regard.data.batches import CostBatches
from regard.data.pairs import TextPairs, padded_sizes
from regard.data.tokenizer import SPECIALS, Tokenizer
from regard.systems.plan import read_recipe
from regard.systems.translate.config import TranslationData
from regard.systems.translate.data import read_splits, train_tokenizers

LANGUAGES = ("en", "de")
BATCH_SENTENCES = 64


@dataclass(frozen=True)
class PreparedData:
    """The files that all toolkits read."""

    data: Path
    """The folder of Multi30k."""
    work: Path
    """The folder of the prepared files: train.en, train.de, valid.en, ..., vocabulary.txt, tokenizer.json."""
    max_tokens: int
    """Tokens in a batch of regard, such that it holds 64 sentences on average."""

    @property
    def vocabulary(self) -> Path:
        """File with one subword per line."""
        return self.work / "vocabulary.txt"

    @property
    def tokenizer(self) -> Path:
        """regard's tokenizer."""
        return self.work / "tokenizer.json"

    def texts(self, count: int) -> Path:
        """File with the first `count` test sentences as text."""
        return self._first("test.txt", count)

    def sources(self, count: int) -> Path:
        """File with the first `count` test sentences as subwords."""
        return self._first("test.en", count)

    def _first(self, name: str, count: int) -> Path:
        path = self.work / f"{count}-{name}"
        if not path.is_file():
            lines = (self.work / name).read_text(encoding="utf-8").splitlines(keepends=True)
            path.write_text("".join(lines[:count]), encoding="utf-8")
        return path


def data_config(folder: Path, *, test: bool = True) -> TranslationData:
    """Multi30k as in the recipe multi30k-luong, but without BPE dropout: the other toolkits get fixed subwords."""
    changes = {"folder": str(folder), "bpe_dropout": 0.0} | ({} if test else {"test_source": "", "test_target": ""})
    config: TranslationData = read_recipe("multi30k-luong", {"data": changes}).data
    return config


def prepare(folder: Path, work: Path) -> PreparedData:
    """Train the tokenizer, and write the files that the other toolkits read."""
    work.mkdir(parents=True, exist_ok=True)
    config = data_config(folder)
    splits = read_splits(config)
    tokenizer, _ = train_tokenizers(config, splits)
    tokenizer.save(work / "tokenizer.json")
    subwords = (f"t{number}\n" for number in range(len(SPECIALS), len(tokenizer)))
    (work / "vocabulary.txt").write_text("".join(subwords), encoding="utf-8")
    train = list(splits.train)
    for name, pairs in {"train": train, "valid": splits.valid, "test": splits.test}.items():
        for index, language in enumerate(LANGUAGES):
            (work / f"{name}.{language}").write_text(_numbered(tokenizer, [pair[index] for pair in pairs]), "utf-8")
    (work / "test.txt").write_text("".join(f"{source}\n" for source, _ in splits.test), encoding="utf-8")
    lengths = TextPairs(train, tokenizer, tokenizer).lengths
    return PreparedData(folder, work, _max_tokens(lengths))


def _numbered(tokenizer: Tokenizer, texts: list[str]) -> str:
    return "".join(" ".join(f"t{number}" for number in ids) + "\n" for ids in tokenizer.encode_batch(texts))


def _max_tokens(lengths: np.ndarray) -> int:
    """The smallest max_tokens with batches of 64 sentences on average."""
    low, high = 1, BATCH_SENTENCES * int(lengths.max() + 2)
    while low < high:
        middle = (low + high) // 2
        batches = len(CostBatches(padded_sizes(lengths), max_cost=middle, shuffle=False, seed=0))
        low, high = (low, middle) if len(lengths) / batches >= BATCH_SENTENCES else (middle + 1, high)
    return low
