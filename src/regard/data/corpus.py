"""Parallel corpora as ids in memory-mapped files; an interrupted build is resumed where it stopped."""

import json
import operator
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from itertools import chain, compress, islice
from pathlib import Path
from typing import Any, Literal, SupportsIndex, cast

import numpy as np
from jaxtyping import Int, UInt

from regard.data.alignments import LinkArray
from regard.data.array_folder import META, ArrayFolder, damaged, map_array
from regard.data.progress import progress_bar
from regard.data.tokenizer import Tokenizer, split_words
from regard.errors import DataError, OptionError
from regard.files import building, checksum, write_text

SIDES = ("source", "target")
CHUNK = 4096
"""Number of pairs encoded at a time: enough to use all cores with little memory."""
LINK = np.dtype(("<u2", (2,)))
"""The type of a link: a source word and a target word."""
SAVE_SECONDS = 30.0
"""Time between two saved states, from which a killed build is resumed."""
Ids = UInt[np.ndarray, "_"]


@dataclass(frozen=True)
class Report:
    """How many of the pairs that were read were kept, and why others were left out."""

    kept: int
    empty: int
    """Pairs left out because a side has no words."""
    over_long: int
    """Pairs left out because a side has more than `max_length` ids."""
    longest: int
    """Number of ids of the longest side of all pairs that were read, whether kept or not."""

    @property
    def read(self) -> int:
        """Number of pairs that were read."""
        return self.kept + self.empty + self.over_long

    def __str__(self) -> str:
        return (
            f"{self.kept} kept, {self.empty} empty, {self.over_long} over-long; "
            f"the longest side has {self.longest} tokens"
        )


class Corpus(ArrayFolder):
    """Pairs of source and target ids, without START and END; `corpus[i]` is a pair of arrays.

    The arrays are (source, target).(ids, offsets). Word links of the pairs, if there are any, are stored in the same
    way.
    """

    kind, format = "corpus", ("regard_corpus", 2)

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
        one resumes it; a damaged corpus is built again. Where another process is building the same
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
        cls.begin(folder)
        sums = {}
        for name in _files(linked=settings["linked"]):
            (draft.folder / name).replace(folder / name)
            sums[name] = checksum(folder / name)
        sides = zip(SIDES, draft.dtypes, state.totals, hashes, strict=False)
        meta = _Meta(
            **settings,
            report=state.report,
            sides={side: _Side(cast(Any, dtype.str), total, sha) for side, dtype, total, sha in sides},
            links=state.totals[2] if settings["linked"] else 0,
            sha256=sums,
        )
        cls.write_meta(folder, meta, indent=2)
        shutil.rmtree(draft.folder)

    @classmethod
    def open(cls, folder: str | os.PathLike[str], *tokenizers: Tokenizer, verify: bool = True) -> "Corpus":
        """Open the corpus in a folder. With the source and target tokenizers, check that it was built with these.

        With `verify`, also check that its files are those that were written.
        """
        folder = Path(folder)
        meta = cls.read_meta(folder, _Meta)
        if set(meta.sides) != set(SIDES):
            raise DataError(f"{folder / META} does not describe a corpus: its sides are {list(meta.sides)}.")
        sides, report = [meta.sides[side] for side in SIDES], meta.report
        for side, described, tokenizer in zip(SIDES, sides, tokenizers, strict=False):
            if described.vocabulary_hash != tokenizer.vocabulary_hash:
                raise DataError(
                    f"{folder} was built with another {side} tokenizer ({described.vocabulary_hash[:8]}) than "
                    f"the one given ({tokenizer.vocabulary_hash[:8]}). Build it again, or load that tokenizer."
                )
        ids, offsets = [], []
        for side, described in zip(SIDES, sides, strict=True):
            ids.append(map_array(folder / f"{side}.ids", described.dtype, (described.ids,)))
            offsets.append(map_array(folder / f"{side}.offsets", "<i8", (report.kept + 1,)))
            if offsets[-1][0] != 0 or offsets[-1][-1] != described.ids or (np.diff(offsets[-1]) < 1).any():
                raise damaged(folder / f"{side}.offsets", f"does not divide {described.ids} ids into sentences")
        if meta.linked:
            ids.append(map_array(folder / "links.ids", "<u2", (meta.links, 2)))
            offsets.append(map_array(folder / "links.offsets", "<i8", (report.kept + 1,)))
        for name in _files(linked=meta.linked) if verify else ():
            if checksum(folder / name) != meta.sha256.get(name):
                raise damaged(folder / name, "has another SHA-256 than meta.json states")
        return cls(ids, offsets, report, folder)

    @classmethod
    def _reuse(cls, folder: Path, tokenizers: Sequence[Tokenizer], settings: Mapping[str, Any]) -> "Corpus | None":
        """Open the corpus in a folder if it is complete and was built with these settings."""
        if not cls.is_complete(folder):
            return None
        try:
            corpus = cls.open(folder, *tokenizers)
        except DataError:  # damaged, or built with other tokenizers: it is built again
            return None
        meta = cls.read_meta(folder, _Meta)
        return corpus if all(getattr(meta, name) == value for name, value in settings.items()) else None

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


def _files(*, linked: bool) -> list[str]:
    """The names of the arrays of a corpus."""
    return [f"{part}.{kind}" for part in (*SIDES, *(["links"] if linked else [])) for kind in ("ids", "offsets")]


@dataclass(frozen=True)
class _Side:
    """The description of one side of a corpus."""

    dtype: Literal["<u2", "<u4"]
    ids: int
    vocabulary_hash: str


@dataclass(frozen=True, kw_only=True)
class _Meta:
    """The description of a corpus in meta.json."""

    max_length: int
    fingerprint: str | None = None
    linked: bool = False
    split: bool = False
    report: Report
    sides: dict[str, _Side]
    links: int = 0
    sha256: dict[str, str]


@dataclass(frozen=True)
class Progress:
    """How far a build has come, saved so that it can be resumed."""

    report: Report
    totals: tuple[int, ...]
    """Items in each array: source ids, target ids, and links if there are any."""


class Rows:
    """Rows of items in two files that grow: NAME.ids has the items, NAME.offsets where each row ends."""

    def __init__(self, folder: Path, name: str, dtype: "np.dtype[Any]", *, rows: int, total: int) -> None:
        """Open the files with what they hold of so many rows and items; what was written after that is cut."""
        self.dtype, self.total = dtype, total
        self._files = [(folder / f"{name}.{kind}").open("r+b" if rows else "w+b") for kind in ("ids", "offsets")]
        for stream, size in zip(self._files, (total * dtype.itemsize, 8 * (rows + 1) if rows else 0), strict=True):
            stream.truncate(size)
            stream.seek(size)
        if not rows:
            self._files[1].write(np.zeros(1, "<i8").tobytes())

    def write(self, items: np.ndarray, lengths: Sequence[int]) -> None:
        """Append rows of these lengths."""
        ends = self.total + np.cumsum(lengths, dtype="<i8")
        self._files[0].write(items.astype(self.dtype.base).tobytes())
        self._files[1].write(ends.tobytes())
        self.total = int(ends[-1])

    def flush(self) -> None:
        """Wait until everything is on disk."""
        for stream in self._files:
            stream.flush()
            os.fsync(stream.fileno())

    def close(self) -> None:
        """Close the files."""
        for stream in self._files:
            stream.close()


class CorpusDraft:
    """A corpus that is being written, in a folder of its own until it is complete.

    The draft of an interrupted build with the same `identity` is resumed; without an identity, the build starts again.
    """

    def __init__(
        self, folder: Path, tokenizers: Sequence[Tokenizer], settings: Mapping[str, Any], identity: Any | None
    ) -> None:
        self.folder, self._tokenizers, self._settings, self._identity = folder, tokenizers, settings, identity
        self.names = (*SIDES, "links") if settings["linked"] else SIDES
        self.dtypes = [id_dtype(tokenizer) for tokenizer in tokenizers] + [LINK] * (len(self.names) - 2)
        self.state = Progress(Report(0, 0, 0, 0), (0,) * len(self.names))

    def write(self, pairs: Iterable[Any], *, progress: bool) -> Progress:
        """Encode the pairs; those that an earlier build has written are skipped."""
        self._continue()
        with ExitStack() as stack:
            parts = []
            for name, dtype, total in zip(self.names, self.dtypes, self.state.totals, strict=True):
                parts.append(Rows(self.folder, name, dtype, rows=self.state.report.kept, total=total))
                stack.callback(parts[-1].close)
            try:
                self._encode(pairs, parts, progress)
            except Exception:
                # The data or the tokenizer is wrong: nothing here can be resumed.
                shutil.rmtree(self.folder)
                raise
            except BaseException:
                self._save(parts)
                raise
            for part in parts:
                part.flush()
        return self.state

    def _continue(self) -> None:
        path = self.folder / "state.json"
        try:
            stored = json.loads(path.read_text(encoding="utf-8")) if self._identity is not None else {}
            if stored.get("identity") == json.loads(json.dumps(self._identity)):
                self.state = Progress(Report(**stored["state"]["report"]), tuple(stored["state"]["totals"]))
                return
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            pass  # there is no draft, or one that cannot be read: the build starts again
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)

    def _save(self, parts: Sequence[Rows]) -> None:
        for part in parts:
            part.flush()
        write_text(self.folder / "state.json", json.dumps({"identity": self._identity, "state": asdict(self.state)}))

    def _encode(self, pairs: Iterable[Any], parts: Sequence[Rows], progress: bool) -> None:
        total = len(pairs) if isinstance(pairs, Sized) else None
        done, saved = self.state.report.read, time.monotonic()
        remaining = islice(pairs, done, None)
        with progress_bar("encoding", total, "pairs", completed=done, enabled=progress) as advance:
            while chunk := list(islice(remaining, CHUNK)):
                report = self._write_chunk(chunk, parts)
                # Only now: what is half-written when the build is interrupted is cut when it is resumed.
                self.state = Progress(report, tuple(part.total for part in parts))
                if time.monotonic() - saved > SAVE_SECONDS:
                    self._save(parts)
                    saved = time.monotonic()
                advance(len(chunk))

    def _write_chunk(self, chunk: Sequence[Any], parts: Sequence[Rows]) -> Report:
        texts = list(zip(*chunk, strict=True))[:2]
        sides = [tokenizer.encode_batch(side) for tokenizer, side in zip(self._tokenizers, texts, strict=True)]
        lengths = np.array([[len(sentence) for sentence in side] for side in sides])
        shortest, widest = lengths.min(0), lengths.max(0)
        is_over_long = (shortest > 0) & (widest > self._settings["max_length"])
        keep = (shortest > 0) & ~is_over_long
        if keep.any():
            for part, side, length in zip(parts, sides, lengths, strict=False):
                numbers = np.fromiter(chain.from_iterable(compress(side, keep)), part.dtype)
                part.write(numbers, length[keep].tolist())
            if len(parts) > 2:
                links = [checked_links(*pair, split=self._settings["split"]) for pair in compress(chunk, keep)]
                parts[2].write(np.concatenate(links), [len(each) for each in links])
        report = self.state.report
        return replace(
            report,
            kept=report.kept + int(keep.sum()),
            empty=report.empty + int((shortest == 0).sum()),
            over_long=report.over_long + int(is_over_long.sum()),
            longest=max(report.longest, int(widest.max())),
        )


def id_dtype(tokenizer: Tokenizer) -> "np.dtype[Any]":
    """The smallest type of number that has all ids of a tokenizer."""
    return np.dtype("<u2" if len(tokenizer) <= 2**16 else "<u4")


def checked_links(source: str, target: str, links: LinkArray, *, split: bool) -> LinkArray:
    """The word links of a pair, if they are between words that it has."""
    if not len(links):  # splitting takes longer than encoding, and most pairs may have no links
        return links
    sizes = [len(split_words(text) if split else text.split()) for text in (source, target)]
    wrong = links[(links >= sizes).any(1)]
    if len(wrong):
        raise DataError(
            f"The link {wrong[0, 0]}-{wrong[0, 1]} is outside the {sizes[0]} x {sizes[1]} words of the pair "
            f"{source[:40]!r}, {target[:40]!r}. Do the alignments belong to these sentences?"
        )
    return links
