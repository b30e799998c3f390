"""Writing a corpus: pairs are encoded a few thousand at a time, and an interrupted build goes on where it stopped."""

import json
import os
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence, Sized
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from itertools import chain, compress, islice
from pathlib import Path
from typing import Any

import numpy as np

from regard.data.alignments import LinkArray
from regard.data.progress import progress_bar
from regard.data.tokenizer import Tokenizer, split_words
from regard.errors import DataError
from regard.files import write_text

SIDES = ("source", "target")
CHUNK = 4096
"""Number of pairs encoded at a time: enough to use all cores with little memory."""
LINK = np.dtype(("<u2", (2,)))
"""The type of a link: a source word and a target word."""
SAVE_SECONDS = 30.0
"""Time between two states that a killed build can go on from."""


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


@dataclass(frozen=True)
class State:
    """How far a build has come: enough to go on after it was killed."""

    read: int = 0
    """Pairs that were read."""
    report: Report = Report(0, 0, 0, 0)
    totals: tuple[int, ...] = ()
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

    `identity` says what is written; the draft of an interrupted build with the same identity is continued. Without one,
    the build begins anew.
    """

    def __init__(
        self, folder: Path, tokenizers: Sequence[Tokenizer], settings: Mapping[str, Any], identity: Any | None
    ) -> None:
        self.folder, self._tokenizers, self._settings, self._identity = folder, tokenizers, settings, identity
        self.names = (*SIDES, "links") if settings["linked"] else SIDES
        self.dtypes = [id_dtype(tokenizer) for tokenizer in tokenizers] + [LINK] * (len(self.names) - 2)
        self.state = State(totals=(0,) * len(self.names))

    def write(self, pairs: Iterable[Any], *, progress: bool) -> State:
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
                # The data or the tokenizer is wrong: nobody will go on with this.
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
                state = stored["state"]
                self.state = State(state["read"], Report(**state["report"]), tuple(state["totals"]))
                return
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            pass  # there is no draft, or one that cannot be read: the build begins anew
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)

    def _save(self, parts: Sequence[Rows]) -> None:
        for part in parts:
            part.flush()
        write_text(self.folder / "state.json", json.dumps({"identity": self._identity, "state": asdict(self.state)}))

    def _encode(self, pairs: Iterable[Any], parts: Sequence[Rows], progress: bool) -> None:
        total = len(pairs) if isinstance(pairs, Sized) else None
        remaining, saved = islice(pairs, self.state.read, None), time.monotonic()
        with progress_bar("encoding", total, "pairs", completed=self.state.read, enabled=progress) as advance:
            while chunk := list(islice(remaining, CHUNK)):
                report = self._write_chunk(chunk, parts)
                # Only now: what is half-written when the build is interrupted is cut when it goes on.
                self.state = State(self.state.read + len(chunk), report, tuple(part.total for part in parts))
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
