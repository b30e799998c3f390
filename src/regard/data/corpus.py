"""Parallel sentences as ids on disk, memory-mapped: as large as the disk, opened at once, shared between processes."""

import json
import operator
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import chain, compress, islice
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
from jaxtyping import Int, UInt

from regard.data.progress import progress_bar
from regard.data.tokenizer import Tokenizer
from regard.errors import DataError, OptionError

FORMAT = 1
SIDES = ("source", "target")
CHUNK = 4096
"""Pairs encoded at a time: enough for all cores, little enough for any memory."""

Ids = UInt[np.ndarray, "_"]


@dataclass(frozen=True)
class Report:
    """What became of the pairs that were read."""

    kept: int
    empty: int
    """Left out: one side, or both, has no words."""
    over_long: int
    """Left out: one side, or both, has more than `max_length` ids."""
    longest: int
    """Ids of the longest side of all pairs read, left out or not."""

    def __str__(self) -> str:
        return (
            f"{self.kept} kept, {self.empty} empty, {self.over_long} over-long; the longest side has {self.longest} ids"
        )


class Corpus:
    """Pairs of source and target ids, without START and END; `corpus[i]` gives the two arrays.

    A store on disk is a folder of raw little-endian arrays, (source, target).(ids, offsets), and meta.json, which is
    written last: a folder with it is complete. Pickling a store, as loaders do for their workers, copies only its path.
    """

    def __init__(self, ids: Sequence[np.ndarray], offsets: Sequence[np.ndarray], report: Report) -> None:
        self._ids = tuple(ids)
        self._offsets = tuple(offsets)
        self.report = report
        self.folder: Path | None = None

    @classmethod
    def build(
        cls,
        pairs: Iterable[tuple[str, str]],
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        folder: str | os.PathLike[str],
        *,
        max_length: int = 200,
        progress: bool = True,
        fingerprint: str | None = None,
    ) -> "Corpus":
        """Encode the pairs into a folder, a few thousand at a time; a store that is already there is replaced.

        `fingerprint` says which pairs these are. With one, a complete store that was built with the same fingerprint,
        tokenizers and `max_length` is opened instead, and the pairs are not read.

        Nothing is cut: a pair with an empty side, or with one of more than `max_length` ids, is left out and counted in
        `report`. An interrupted build leaves no store that opens.
        """
        if max_length < 1:
            raise OptionError(f"max_length is 1 or more; got {max_length}.")
        tokenizers = (source_tokenizer, target_tokenizer)
        folder = Path(folder)
        wanted = {"max_length": max_length, "fingerprint": fingerprint}
        if fingerprint is not None and (found := cls._found(folder, tokenizers, wanted)) is not None:
            return found
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            drafts = [stack.enter_context(_Draft(folder, *side)) for side in zip(SIDES, tokenizers, strict=True)]
            report = _encode(pairs, drafts, max_length, progress)
            if not report.kept:
                raise DataError(f"No pair is left for {folder}: {report} (max_length is {max_length}).")
            for draft in drafts:
                draft.close()
            meta = {
                "regard_corpus": FORMAT,
                **wanted,
                "report": asdict(report),
                "sides": {draft.side: draft.describe() for draft in drafts},
            }
            # While the arrays are being exchanged there is no meta.json, and without it nothing opens.
            (folder / "meta.json").unlink(missing_ok=True)
            for draft in drafts:
                draft.publish()
            (folder / "meta.json.tmp").write_text(json.dumps(meta, indent=2) + "\n", encoding="utf-8")
            (folder / "meta.json.tmp").replace(folder / "meta.json")
        return cls.open(folder)

    @classmethod
    def open(cls, folder: str | os.PathLike[str], *tokenizers: Tokenizer) -> "Corpus":
        """The store in a folder. With the source and target tokenizer, also check that it was built with these."""
        folder = Path(folder)
        try:
            meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
            version = meta["regard_corpus"]
        except FileNotFoundError:
            raise DataError(f"There is no complete corpus in {folder}: it has no meta.json. Build it anew.") from None
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise DataError(f"{folder / 'meta.json'} does not describe a corpus: {error!r}.") from error
        if version != FORMAT:
            raise DataError(f"{folder} has corpus format {version}; this regard reads format {FORMAT}. Build it anew.")
        sides = [meta["sides"][side] for side in SIDES]
        for side, described, tokenizer in zip(SIDES, sides, tokenizers, strict=False):
            if described["vocabulary_hash"] != tokenizer.vocabulary_hash:
                raise DataError(
                    f"{folder} was built with another {side} tokenizer ({described['vocabulary_hash'][:8]}) than "
                    f"the one given ({tokenizer.vocabulary_hash[:8]}). Build it anew, or load that tokenizer."
                )
        report = Report(**meta["report"])
        ids = [_map(folder / f"{side}.ids", at["dtype"], at["ids"]) for side, at in zip(SIDES, sides, strict=True)]
        offsets = [_map(folder / f"{side}.offsets", "<i8", report.kept + 1) for side in SIDES]
        corpus = cls(ids, offsets, report)
        corpus.folder = folder
        return corpus

    @classmethod
    def _found(cls, folder: Path, tokenizers: Sequence[Tokenizer], wanted: Mapping[str, Any]) -> "Corpus | None":
        """The store in a folder, where it is whole and has just what is wanted."""
        if not (folder / "meta.json").is_file():
            return None
        try:
            found = cls.open(folder, *tokenizers)
        except DataError:  # damaged, or of other tokenizers: then it is built anew, as it would be without this look
            return None
        meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        return found if all(meta.get(name) == value for name, value in wanted.items()) else None

    @classmethod
    def of(cls, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> "Corpus":
        """A corpus in memory, from ids."""
        if not pairs or not all(len(source) and len(target) for source, target in pairs):
            raise DataError("A corpus is of one or more pairs, and both sides of each have at least one id.")
        lengths = np.array([[len(source), len(target)] for source, target in pairs], dtype=np.int64)
        ids = [np.fromiter(chain.from_iterable(side), np.uint32) for side in zip(*pairs, strict=True)]
        offsets = [np.concatenate([[0], column.cumsum()]) for column in lengths.T]
        return cls(ids, offsets, Report(len(pairs), 0, 0, int(lengths.max())))

    @property
    def lengths(self) -> Int[np.ndarray, "n 2"]:
        """The number of ids of source and target, for each pair."""
        return np.stack([np.diff(offsets) for offsets in self._offsets], axis=1)

    def __len__(self) -> int:
        return self.report.kept

    def __getitem__(self, index: SupportsIndex) -> tuple[Ids, Ids]:
        place = operator.index(index)
        if not -len(self) <= place < len(self):
            raise IndexError(f"The corpus has {len(self)} pairs; there is no pair {place}.")
        place %= len(self)
        source, target = (
            ids[offsets[place] : offsets[place + 1]] for ids, offsets in zip(self._ids, self._offsets, strict=True)
        )
        return source, target

    def __iter__(self) -> Iterator[tuple[Ids, Ids]]:
        return (self[place] for place in range(len(self)))

    def __repr__(self) -> str:
        return f"Corpus({self.report}{f'; in {self.folder}' if self.folder else ''})"

    def __reduce__(self) -> tuple[Any, ...]:
        if self.folder is not None:
            return Corpus.open, (self.folder,)
        return Corpus, (self._ids, self._offsets, self.report)


class _Draft:
    """One side of a store while it is being written, under temporary names."""

    def __init__(self, folder: Path, side: str, tokenizer: Tokenizer) -> None:
        self.side = side
        self.tokenizer = tokenizer
        self.dtype = np.dtype("<u2" if len(tokenizer) <= 2**16 else "<u4")
        self.total = 0
        self._paths = [folder / f"{side}.ids", folder / f"{side}.offsets"]
        self._drafts = [path.with_name(path.name + ".tmp") for path in self._paths]

    def __enter__(self) -> "_Draft":
        self._ids, self._offsets = (draft.open("wb") for draft in self._drafts)
        self._offsets.write(np.zeros(1, "<i8").tobytes())
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()
        for draft in self._drafts:
            draft.unlink(missing_ok=True)

    def write(self, sentences: Sequence[list[int]]) -> None:
        ends = self.total + np.cumsum([len(sentence) for sentence in sentences], dtype="<i8")
        self._ids.write(np.fromiter(chain.from_iterable(sentences), self.dtype).tobytes())
        self._offsets.write(ends.tobytes())
        self.total = int(ends[-1])

    def close(self) -> None:
        self._ids.close()
        self._offsets.close()

    def describe(self) -> dict[str, str | int]:
        return {"dtype": self.dtype.str, "ids": self.total, "vocabulary_hash": self.tokenizer.vocabulary_hash}

    def publish(self) -> None:
        for draft, path in zip(self._drafts, self._paths, strict=True):
            draft.replace(path)


def _encode(pairs: Iterable[tuple[str, str]], drafts: Sequence[_Draft], max_length: int, progress: bool) -> Report:
    kept = empty = over_long = longest = 0
    waiting = iter(pairs)
    total = len(pairs) if isinstance(pairs, Sized) else None
    with progress_bar("encoding", total, "pairs", enabled=progress) as advance:
        while chunk := list(islice(waiting, CHUNK)):
            texts = zip(*chunk, strict=True)
            sides = [draft.tokenizer.encode_batch(side) for draft, side in zip(drafts, texts, strict=True)]
            lengths = np.array([[len(sentence) for sentence in side] for side in sides])
            shortest, widest = lengths.min(0), lengths.max(0)
            keep = (shortest > 0) & (widest <= max_length)
            kept, empty = kept + int(keep.sum()), empty + int((shortest == 0).sum())
            over_long += int(((shortest > 0) & (widest > max_length)).sum())
            longest = max(longest, int(widest.max()))
            if keep.any():
                for draft, side in zip(drafts, sides, strict=True):
                    draft.write(list(compress(side, keep)))
            advance(len(chunk))
    return Report(kept, empty, over_long, longest)


def _map(path: Path, dtype: str, count: int) -> np.ndarray:
    size = path.stat().st_size if path.is_file() else 0
    promised = count * np.dtype(dtype).itemsize
    if size != promised:
        raise DataError(f"{path} has {size} bytes where meta.json promises {promised}: it is damaged. Build it anew.")
    return np.memmap(path, dtype=dtype, mode="r", shape=(count,))
