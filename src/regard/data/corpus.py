"""Parallel corpora as ids in memory-mapped files, which open instantly and are shared between processes."""

import json
import operator
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
from jaxtyping import Int, UInt

from regard.data.alignments import LinkArray
from regard.data.corpus_draft import SIDES, CorpusDraft, Report
from regard.data.tokenizer import Tokenizer
from regard.errors import DataError, OptionError
from regard.files import building, checksum, write_text

FORMAT = 2

Ids = UInt[np.ndarray, "_"]


class Corpus:
    """Pairs of source and target ids, without START and END; `corpus[i]` is a pair of arrays.

    A corpus is a folder of raw little-endian arrays, (source, target).(ids, offsets), and meta.json, which is
    written last: a folder that has it is complete. Word links of the pairs, if there are any, are stored in the same
    way. Pickling a corpus, as loaders do for their workers, copies only its path.
    """

    def __init__(self, ids: Sequence[np.ndarray], offsets: Sequence[np.ndarray], report: Report, folder: Path) -> None:
        self._ids = tuple(ids[:2])
        self._offsets = tuple(offsets[:2])
        self._links = (ids[2], offsets[2]) if len(ids) > 2 else None
        self.report = report
        self.folder = folder

    @classmethod
    def build(
        cls,
        pairs: Iterable[tuple[str, str]] | Iterable[tuple[str, str, LinkArray]],
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        folder: str | os.PathLike[str],
        *,
        max_length: int = 200,
        progress: bool = True,
        fingerprint: str | None = None,
        linked: bool = False,
        split: bool = False,
    ) -> "Corpus":
        """Encode sentence pairs into a folder, a few thousand at a time, and replace a corpus that is already there.

        With `linked`, each pair comes with the links between its words, which are those of `text.split()` or, with
        `split`, those of `split_words`.

        `fingerprint` identifies the pairs. If it is given and the folder holds a complete corpus that was built with
        the same fingerprint, tokenizers and `max_length`, that corpus is opened and the pairs are not read.

        No sentence is truncated: a pair with an empty side, or a side of more than `max_length` ids, is left out and
        counted in `report`. An interrupted build leaves nothing that opens as a corpus, and with a fingerprint the next
        one goes on where it stopped; a damaged corpus is built again. Where another process is building the same
        corpus, wait for it.
        """
        if max_length < 1:
            raise OptionError(f"max_length must be 1 or more; got {max_length}.")
        tokenizers = (source_tokenizer, target_tokenizer)
        folder = Path(folder)
        settings = {"max_length": max_length, "fingerprint": fingerprint, "linked": linked, "split": split}
        with building(folder):
            if fingerprint is not None and (corpus := cls._reuse(folder, tokenizers, settings)) is not None:
                return corpus
            cls._write(pairs, tokenizers, folder, settings, progress)
        return cls.open(folder, verify=False)

    @classmethod
    def _write(
        cls,
        pairs: Iterable[tuple[str, str]] | Iterable[tuple[str, str, LinkArray]],
        tokenizers: tuple[Tokenizer, Tokenizer],
        folder: Path,
        settings: Mapping[str, Any],
        progress: bool,
    ) -> None:
        hashes = [tokenizer.vocabulary_hash for tokenizer in tokenizers]
        identity = None if settings["fingerprint"] is None else [settings, hashes]
        draft = CorpusDraft(folder / ".draft", tokenizers, settings, identity)
        state = draft.write(pairs, progress=progress)
        if not state.report.kept:
            shutil.rmtree(draft.folder)
            max_length = settings["max_length"]
            raise DataError(f"No pair is left for {folder}: {state.report} (max_length is {max_length}).")
        # Until the new meta.json is there, nothing opens.
        (folder / "meta.json").unlink(missing_ok=True)
        sums = {}
        for name in _files(linked=settings["linked"]):
            (draft.folder / name).replace(folder / name)
            sums[name] = checksum(folder / name)
        sides = zip(SIDES, draft.dtypes, state.totals, hashes, strict=False)
        meta = {
            "regard_corpus": FORMAT,
            **settings,
            "report": asdict(state.report),
            "sides": {side: asdict(_Side(dtype.str, total, sha)) for side, dtype, total, sha in sides},
            "links": state.totals[2] if settings["linked"] else 0,
            "sha256": sums,
        }
        write_text(folder / "meta.json", json.dumps(meta, indent=2) + "\n")
        shutil.rmtree(draft.folder)

    @classmethod
    def open(cls, folder: str | os.PathLike[str], *tokenizers: Tokenizer, verify: bool = True) -> "Corpus":
        """Open the corpus in a folder. With the source and target tokenizers, check that it was built with these.

        With `verify`, also check that its files are those that were written.
        """
        folder = Path(folder)
        try:
            meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
            version = meta["regard_corpus"]
        except FileNotFoundError:
            raise DataError(f"There is no complete corpus in {folder}: it has no meta.json. Build it again.") from None
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise DataError(f"{folder / 'meta.json'} does not describe a corpus: {error!r}.") from error
        if version != FORMAT:
            raise DataError(
                f"{folder} has corpus format {version}; this version reads format {FORMAT}. Build it again."
            )
        try:
            sides = [_Side(**meta["sides"][side]) for side in SIDES]
            report = Report(**meta["report"])
        except (KeyError, TypeError) as error:
            raise DataError(f"{folder / 'meta.json'} does not describe a corpus: {error!r}.") from error
        for side, described, tokenizer in zip(SIDES, sides, tokenizers, strict=False):
            if described.vocabulary_hash != tokenizer.vocabulary_hash:
                raise DataError(
                    f"{folder} was built with another {side} tokenizer ({described.vocabulary_hash[:8]}) than "
                    f"the one given ({tokenizer.vocabulary_hash[:8]}). Build it again, or load that tokenizer."
                )
        ids, offsets = [], []
        for side, described in zip(SIDES, sides, strict=True):
            ids.append(_map(folder / f"{side}.ids", described.dtype, described.ids))
            offsets.append(_map(folder / f"{side}.offsets", "<i8", report.kept + 1))
            _check_offsets(folder / f"{side}.offsets", offsets[-1], described.ids)
        if meta.get("linked"):
            ids.append(_map(folder / "links.ids", "<u2", 2 * meta["links"]).reshape(-1, 2))
            offsets.append(_map(folder / "links.offsets", "<i8", report.kept + 1))
        for name in _files(linked=bool(meta.get("linked"))) if verify else ():
            if checksum(folder / name) != meta.get("sha256", {}).get(name):
                raise DataError(
                    f"{folder / name} is damaged: it has another SHA-256 than meta.json states. Build the corpus again."
                )
        return cls(ids, offsets, report, folder)

    @classmethod
    def _reuse(cls, folder: Path, tokenizers: Sequence[Tokenizer], settings: Mapping[str, Any]) -> "Corpus | None":
        """Open the corpus in a folder if it is complete and was built with these settings."""
        if not (folder / "meta.json").is_file():
            return None
        try:
            corpus = cls.open(folder, *tokenizers)
        except DataError:  # damaged, or built with other tokenizers: it is built again
            return None
        meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        return corpus if all(meta.get(name) == value for name, value in settings.items()) else None

    @property
    def lengths(self) -> Int[np.ndarray, "n 2"]:
        """Number of source and target ids of each pair."""
        return np.stack([np.diff(offsets) for offsets in self._offsets], axis=1)

    def __len__(self) -> int:
        return self.report.kept

    def __getitem__(self, index: SupportsIndex) -> tuple[Ids, Ids]:
        number = operator.index(index)
        if not -len(self) <= number < len(self):
            raise IndexError(f"The corpus has {len(self)} pairs; there is no pair {number}.")
        number %= len(self)
        source, target = (
            ids[offsets[number] : offsets[number + 1]] for ids, offsets in zip(self._ids, self._offsets, strict=True)
        )
        return source, target

    def links(self, number: int) -> LinkArray:
        """The word links of a pair; none in a corpus that was built without links."""
        if self._links is None:
            return np.zeros((0, 2), np.int64)
        links, offsets = self._links
        return np.asarray(links[offsets[number] : offsets[number + 1]], dtype=np.int64)

    def __iter__(self) -> Iterator[tuple[Ids, Ids]]:
        return (self[number] for number in range(len(self)))

    def __repr__(self) -> str:
        return f"Corpus({self.report}; in {self.folder})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _open_again, (self.folder,)


def _files(*, linked: bool) -> list[str]:
    """The names of the arrays of a corpus."""
    return [f"{part}.{kind}" for part in (*SIDES, *(["links"] if linked else [])) for kind in ("ids", "offsets")]


def _open_again(folder: Path) -> Corpus:
    """Open a corpus in a worker; it was verified when it was opened first."""
    return Corpus.open(folder, verify=False)


@dataclass(frozen=True)
class _Side:
    """The description of one side of a corpus in meta.json."""

    dtype: str
    ids: int
    vocabulary_hash: str


def _map(path: Path, dtype: str, count: int) -> np.ndarray:
    size = path.stat().st_size if path.is_file() else 0
    stated = count * np.dtype(dtype).itemsize
    if size != stated:
        raise DataError(f"{path} has {size} bytes, but meta.json states {stated}: it is damaged. Build it again.")
    return np.memmap(path, dtype=dtype, mode="r", shape=(count,))


def _check_offsets(path: Path, offsets: Int[np.ndarray, "_"], num_ids: int) -> None:
    if offsets[0] != 0 or offsets[-1] != num_ids or (np.diff(offsets) < 1).any():
        raise DataError(f"{path} is damaged: it does not divide {num_ids} ids into sentences. Build the corpus again.")
