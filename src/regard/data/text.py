"""Reading sentences from text files, archives and data sets: streamed, as UTF-8, in Unicode form NFC."""

import difflib
import gzip
import io
import lzma
import os
import re
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

from regard.errors import DataError, OptionError, RegardError, counted
from regard.extras import require

MAX_LINE_BYTES = 2**24
"""Longest line that is read: a file without line ends is not text, and would fill the memory."""
MAX_FILE_BYTES = 2**29
"""Largest file that is read as a whole, decompressed: a small archive can expand to many gigabytes."""

T = TypeVar("T")
_BOM = b"\xef\xbb\xbf"
_LINE_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_SIGNATURES = {
    b"\x1f\x8b": "It looks compressed with gzip: give it a name that ends in .gz.",
    b"\xfd7zXZ": "It looks compressed with xz: give it a name that ends in .xz.",
    b"PK\x03\x04": "It looks like a zip archive: give it a name that ends in .zip.",
    b"\xff\xfe": "It looks like UTF-16: convert it with `iconv -f UTF-16 -t UTF-8`.",
    b"\xfe\xff": "It looks like UTF-16: convert it with `iconv -f UTF-16 -t UTF-8`.",
}

# What the readers of compressed files and archives raise where these are damaged, or need a password.
_UNREADABLE = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, RuntimeError)


@runtime_checkable
class ByteStream(Protocol):
    """An open binary file, archive member or pipe."""

    def read(self, size: int = -1, /) -> bytes:
        """Read so many bytes, or all."""

    def readline(self, size: int = -1, /) -> bytes:
        """Read to the end of a line, but not more bytes than this."""


def read_lines(path: str | os.PathLike[str]) -> Iterator[str]:
    r"""Yield the lines of a text file, without line ends: plain, .gz, .xz, .zip, or `archive.zip/member.txt`.

    Only \n and \r\n end a line, so that line i is the same for every program. A byte order mark is skipped. The text is
    normalized to NFC, which keeps the zero-width non-joiner that Persian needs.
    """
    return _decode(_locate(Path(path)))


def parsed(path: str | os.PathLike[str], parse: Callable[[str], T], expected: str) -> Iterator[T]:
    """Yield what `parse` makes of each line of a text file that is not blank; `expected` says what a line should be.

    Whatever `parse` raises about a line becomes a DataError that names the file and the line.
    """
    for number, line in enumerate(read_lines(path), 1):
        if line.strip():
            try:
                value = parse(line)
            except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
                reason = f"{path}: line {number} should be {expected} ({error})"
                raise DataError(f"{reason}; got {line[:60]!r}.") from error
            yield value


@contextmanager
def reading(
    path: str | os.PathLike[str], what: str = "cannot be read", advice: str = "Download it again."
) -> Iterator[None]:
    """Turn what a library raises about a damaged file, which may be nearly anything, into a DataError with its name."""
    try:
        yield
    except RegardError:
        raise
    except Exception as error:
        raise DataError(f"{path} {what}: {error}. {advice}") from error


def decode_lines(stream: ByteStream, name: str) -> Iterator[str]:
    """Yield the lines of an open stream, such as a pipe, exactly as `read_lines` reads a file; `name` is for errors."""
    return _lines(stream, name)


def read_text(path: str | os.PathLike[str]) -> str:
    """Read a whole text file, decompressed and decoded as by `read_lines`."""
    return "\n".join(decode_lines(io.BytesIO(read_all(path)), str(path)))


def decode_text(stream: ByteStream, name: str) -> str:
    """Read a whole text from an open stream, as `read_text` reads a file; `name` is for errors."""
    return "\n".join(decode_lines(io.BytesIO(read_limited(stream, name)), name))


def decode_document(content: bytes, name: str) -> str:
    """A document in UTF-8 as it is, line ends included; `name` is for errors."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        hint = next((hint for signature, hint in _SIGNATURES.items() if content.startswith(signature)), "")
        raise DataError(f"{name} is not UTF-8 text ({error}). {hint or 'Convert it with `iconv -t UTF-8`.'}") from error


def split_lines(text: str) -> list[str]:
    r"""The lines of a text, without line ends, which are \n or \r\n as in `read_lines`."""
    return text.replace("\r\n", "\n").split("\n")


def well_formed(text: str) -> str:
    """The text with U+FFFD for each half of a surrogate pair, which comes from broken JSON and cannot be encoded."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def read_all(path: str | os.PathLike[str]) -> bytes:
    """Read a whole file, decompressed as by `read_lines`: for JSON, which may be one line of any length.

    More than MAX_FILE_BYTES are refused.
    """
    place = _locate(Path(path))
    with _as_data_error(str(place)), _open(place) as stream:
        return read_limited(stream, str(place))


def read_limited(stream: ByteStream, name: str) -> bytes:
    """Read a whole stream, of at most MAX_FILE_BYTES; `name` is for errors."""
    content = stream.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise DataError(
            f"{name} has more than {MAX_FILE_BYTES:,} bytes when decompressed, which is the most that is read at once."
        )
    return content


def file_stamp(path: str | os.PathLike[str]) -> tuple[str, int, int]:
    """Identify a text by its path and by the size and modification time of the file that holds it."""
    place = _locate(Path(path))
    status = place.file.stat()
    return str(Path(str(place)).resolve()), status.st_size, status.st_mtime_ns


def read_pairs(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> Iterator[tuple[str, str]]:
    """Yield line i of one file with line i of the other."""
    return _pair(Path(source), Path(target), read_lines(source), read_lines(target))


def read_tsv(path: str | os.PathLike[str], columns: tuple[int, int] = (0, 1)) -> Iterator[tuple[str, str]]:
    """Yield two columns of a tab-separated file (without quoting), counted from 0."""
    if min(columns) < 0:
        raise OptionError(f"Columns are counted from 0; got columns={columns}.")
    return _columns(Path(path), read_lines(path), columns)


def read_dataset(name: str, source: str, target: str, split: str = "train") -> Iterator[tuple[str, str]]:
    """Stream sentence pairs from a Hugging Face dataset: `read_dataset("wmt/wmt14:fr-en", "en", "fr")`.

    `name` is a dataset of the hub, with its configuration after a colon; or a file (.json, .jsonl, .csv, .parquet); or
    a folder with such files or written by `save_to_disk`. `source` and `target` are columns, or languages in its
    `translation` column.
    """
    instead = "Text files are read without it, with read_pairs and read_tsv."
    datasets = require(f"Reading {name!r} as a Hugging Face dataset", "datasets", instead=instead)
    return (_pick(row, name, source, target) for row in _rows(datasets, name, split))


def _rows(datasets: Any, name: str, split: str) -> Iterable[dict[str, object]]:
    path = Path(name)
    try:
        if path.is_file():
            kind = {".jsonl": "json"}.get(path.suffix.lower(), path.suffix.lower().removeprefix("."))
            rows = datasets.load_dataset(kind, data_files={split: name}, split=split, streaming=True)
        elif (path / "dataset_dict.json").is_file():
            rows = datasets.load_from_disk(name)[split]
        elif (path / "state.json").is_file():
            rows = datasets.load_from_disk(name)
        else:
            builder, _, configuration = (name, "", "") if path.is_dir() else name.partition(":")
            rows = datasets.load_dataset(builder, configuration or None, split=split, streaming=True)
    # Raised for a missing dataset, split or builder, and without a network.
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise DataError(f"The split {split!r} of the dataset {name!r} cannot be read: {error}") from error
    typed: Iterable[dict[str, object]] = rows
    return typed


@dataclass(frozen=True)
class _Place:
    """The location of a text: a file, and in an archive a member of it."""

    file: Path
    member: str | None = None

    def __str__(self) -> str:
        return f"{self.file}/{self.member}" if self.member else str(self.file)


def _locate(path: Path) -> _Place:
    if path.exists() and not path.is_dir():  # a file, or a pipe such as /dev/stdin
        return _Place(path, _only_member(path)) if path.suffix.lower() == ".zip" else _Place(path)
    for parent in path.parents:
        if parent.suffix.lower() == ".zip" and parent.is_file():
            return _member_of(parent, path.relative_to(parent).as_posix())
    if path.is_dir():
        raise DataError(
            f"{path} is a folder, not a text file; it holds {_listing([entry.name for entry in path.iterdir()])}."
        )
    if not path.parent.is_dir():
        raise DataError(f"There is no file {path}: the folder {path.parent} does not exist.")
    names = [entry.name for entry in path.parent.iterdir()]
    near = difflib.get_close_matches(path.name, names, n=3) or [name for name in names if name.startswith(path.stem)]
    hint = f"Did you mean {_listing(near)}?" if near else f"That folder holds {_listing(names)}."
    raise DataError(f"There is no file {path}. {hint}")


def find_members(archive: Path) -> list[str]:
    """List the files in a zip archive."""
    with reading(archive, "cannot be read as a zip archive"), zipfile.ZipFile(archive) as opened:
        return [name for name in opened.namelist() if not name.endswith("/")]


def _only_member(archive: Path) -> str:
    # Archives of sentence pairs contain a note such as _about.txt, and macOS adds a __MACOSX folder.
    members = find_members(archive)
    texts = [name for name in members if not Path(name).name.startswith((".", "_")) and not name.startswith("__MACOSX")]
    if len(texts) != 1:
        raise DataError(
            f"{archive} holds {len(texts)} texts, {_listing(texts or members)}. Name one of them: "
            f"{archive}/{texts[0] if texts else 'NAME'}."
        )
    return texts[0]


def _member_of(archive: Path, member: str) -> _Place:
    members = find_members(archive)
    if member not in members:
        raise DataError(f"There is no {member} in {archive}; it holds {_listing(members)}.")
    return _Place(archive, member)


def _listing(names: list[str]) -> str:
    if not names:
        return "nothing"
    return ", ".join(sorted(names)[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


@contextmanager
def _open(place: _Place) -> Iterator[ByteStream]:
    if place.member is not None:
        with zipfile.ZipFile(place.file) as archive, archive.open(place.member) as member:
            yield member
    elif place.file.suffix.lower() == ".gz":
        with gzip.open(place.file, "rb") as stream:
            yield stream
    elif place.file.suffix.lower() == ".xz":
        with lzma.open(place.file, "rb") as stream:
            yield stream
    else:
        with place.file.open("rb") as stream:
            yield stream


def _decode(place: _Place) -> Iterator[str]:
    with _as_data_error(str(place)), _open(place) as stream:
        yield from _lines(stream, str(place))


@contextmanager
def _as_data_error(name: str) -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        raise DataError(f"{name} cannot be read: you have no permission.") from error
    except _UNREADABLE as error:
        raise DataError(f"{name} cannot be read: {error}. Download or compress it again.") from error


def _lines(stream: ByteStream, name: str) -> Iterator[str]:
    number = 0
    try:
        while line := stream.readline(MAX_LINE_BYTES):
            number += 1
            yield _text(line, name, number)
    except _UNREADABLE as error:
        raise DataError(f"{name} cannot be read past line {number}: {error}. Download or compress it again.") from error


def _text(line: bytes, name: str, number: int) -> str:
    hint = "Is it the right file?"
    if number == 1:
        hint = next((hint for start, hint in _SIGNATURES.items() if line.startswith(start)), hint)
        line = line.removeprefix(_BOM)
    if b"\0" in line:
        raise DataError(f"{name} is binary, not text: line {number} holds zero bytes. {hint}")
    if not line.endswith(b"\n") and len(line) >= MAX_LINE_BYTES - len(_BOM):
        raise DataError(f"{name}: line {number} is longer than {MAX_LINE_BYTES} bytes. {hint}")
    line = line.removesuffix(b"\n").removesuffix(b"\r")
    try:
        return unicodedata.normalize("NFC", line.decode("utf-8"))
    except UnicodeDecodeError as error:
        wrong = line[error.start]
        if hint == "Is it the right file?":
            hint = "If it is in Latin-1, convert it with `iconv -f LATIN1 -t UTF-8`."
        raise DataError(
            f"{name}: line {number} is not UTF-8: byte 0x{wrong:02x} at position {error.start}. {hint}"
        ) from None


def _pair(source: Path, target: Path, sources: Iterator[str], targets: Iterator[str]) -> Iterator[tuple[str, str]]:
    counts = [0, 0]
    for left, right in zip_longest(sources, targets):
        counts[0] += left is not None
        counts[1] += right is not None
        # After the shorter file has ended, the longer one is only counted.
        if left is not None and right is not None:
            yield left, right
    for path, count in zip((source, target), counts, strict=True):
        if count == 0:
            raise DataError(f"{path} is empty, but the parallel file has {counted(max(counts), 'line')}.")
    if counts[0] != counts[1]:
        raise DataError(
            f"Parallel files must have the same number of lines, but {source} has {counted(counts[0], 'line')} and "
            f"{target} has {counts[1]:,}. They may not belong together, or a line was added or lost in one of them."
        )


def _columns(path: Path, lines: Iterator[str], columns: tuple[int, int]) -> Iterator[tuple[str, str]]:
    number = 0
    for number, line in enumerate(lines, start=1):
        cells = line.split("\t")
        if len(cells) <= max(columns):
            raise DataError(
                f"{path}: line {number} has {counted(len(cells), 'column')}, but columns {columns} are requested "
                f"(counted from 0): {line[:60]!r}."
            )
        yield cells[columns[0]], cells[columns[1]]
    if number == 0:
        raise DataError(f"{path} is empty.")


def _pick(row: dict[str, object], name: str, source: str, target: str) -> tuple[str, str]:
    nested = row.get("translation")
    cells = row | nested if isinstance(nested, dict) else row
    picked = [cells.get(column) for column in (source, target)]
    if not all(isinstance(cell, str) for cell in picked):
        raise DataError(
            f"{name} has no text columns {source!r} and {target!r}; it has {_listing([str(key) for key in cells])}."
        )
    left, right = (unicodedata.normalize("NFC", cast(str, cell)) for cell in picked)
    return left, right


def split_sentences(text: str, *, lines: bool = False) -> list[str]:
    """The sentences of a text in any language, in order, without the whitespace around them.

    Sentences end where the rules of sentencex say so (abbreviations and decimal points do not end one), and at blank
    lines. HTML line breaks count as line ends. With `lines`, each line is a sentence instead.
    """
    text = _LINE_BREAK.sub("\n" if lines else "\n\n", unicodedata.normalize("NFC", well_formed(text)))
    if lines:
        found = split_lines(text)
    else:
        # Imported here, because documents that are already split need no splitter.
        from sentencex import segment

        found = segment("en", text)
    return [sentence for sentence in (each.strip() for each in found) if sentence]
