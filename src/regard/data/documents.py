"""Reading labelled documents: CSV, TSV, JSON lines, or a folder or archive with one folder per class."""

import codecs
import csv
import json
import os
import tarfile
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from regard.data.text import MAX_FILE_BYTES, read_limited, read_lines, reading, well_formed
from regard.errors import DataError, counted

Format = Literal["auto", "csv", "tsv", "jsonl", "folders"]
MAX_REPORTED_ROWS = 5
"""Bad rows that a message describes; the others are counted."""
_SUFFIXES: dict[str, Format] = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2")
# Reviews without a label, in the folder of the IMDB data set.
_UNLABELLED = "unsup"


@dataclass(frozen=True)
class Document:
    """A text with its class. A document that is already split has `sentences` instead of `text`."""

    text: str = ""
    label: str = ""
    sentences: tuple[str, ...] = ()
    rationale: tuple[tuple[int, int], ...] = ()
    """Spans [start, end) of the words that people marked as the reason, over all whitespace-separated words."""

    @property
    def is_empty(self) -> bool:
        """Whether the document has no words."""
        return not (self.text.strip() or any(sentence.strip() for sentence in self.sentences))

    @property
    def key(self) -> str:
        """The whole text: documents with equal keys are duplicates."""
        return self.text or "\n".join(self.sentences)


@dataclass
class BadRows:
    """Rows that cannot be read: with `skip` they are counted, otherwise the first one is an error."""

    skip: bool = False
    count: int = 0
    reasons: list[str] = field(default_factory=list)

    def add(self, reason: str) -> None:
        """Count a bad row; `reason` names the file, the line and what is wrong."""
        self.count += 1
        if not self.skip:
            raise DataError(
                f"{reason} Correct it, or skip such rows with skip_bad (regard train: --data.skip-bad true; regard "
                "evaluate: --skip-bad true)."
            )
        if len(self.reasons) < MAX_REPORTED_ROWS:
            self.reasons.append(reason)

    def __str__(self) -> str:
        more = f" and {self.count - len(self.reasons)} more" if self.count > len(self.reasons) else ""
        return f"{counted(self.count, 'bad row')} skipped: {' '.join(self.reasons)}{more}"


def read_documents(
    path: str | os.PathLike[str],
    *,
    format: Format = "auto",
    columns: tuple[str, str] = ("text", "label"),
    bad: BadRows | None = None,
) -> Iterator[Document]:
    """Yield the documents of a file or folder, one at a time.

    Files may be compressed (.gz, .xz, .zip). `columns` names the columns or JSON fields with the text and the label; in
    a CSV or TSV file without a header line they are numbers, counted from 0. A JSON line may have `sentences`, a list
    of strings, in place of the text, and `rationale_token_spans`. "folders" reads one folder per class with a text file
    per document, as aclImdb/train and 20news-bydate-train are laid out; inside an archive the folder is named as
    ARCHIVE.tar.gz/FOLDER.
    """
    path, bad = Path(path), bad or BadRows()
    chosen = _format_of(path) if format == "auto" else format
    if chosen == "folders":
        return _folders(path, bad)
    rows = _json_rows(path, columns, bad) if chosen == "jsonl" else _table_rows(path, chosen, columns, bad)
    return rows


def _format_of(path: Path) -> Format:
    if path.is_dir() or _archive_of(path) is not None:
        return "folders"
    name = path.name.lower()
    for suffix in (".gz", ".xz", ".zip"):
        name = name.removesuffix(suffix)
    found = _SUFFIXES.get(Path(name).suffix)
    if found is None:
        raise DataError(
            f"The format of {path} cannot be told from its name; set format to csv, tsv, jsonl or folders."
            if path.exists()
            else f"There is no file or folder {path}."
        )
    return found


def _json_rows(path: Path, columns: tuple[str, str], bad: BadRows) -> Iterator[Document]:
    text_column, label_column = columns
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            bad.add(f"{path}: line {number} is not JSON ({error}).")
            continue
        if not isinstance(row, dict):
            bad.add(f"{path}: line {number} is not a JSON object.")
            continue
        document = _from_json(row, text_column, label_column)
        yield from _checked(document, f"{path}: line {number}", (text_column, label_column), row, bad)


def _from_json(row: Mapping[str, Any], text_column: str, label_column: str) -> Document | None:
    label, text, sentences = row.get(label_column), row.get(text_column), row.get("sentences")
    if label is None or isinstance(label, dict | list) or not isinstance(text, str | None):
        return None
    if text is None and not (isinstance(sentences, list) and all(isinstance(each, str) for each in sentences)):
        return None
    spans = _spans(row.get("rationale_token_spans") or ())
    if spans is None:
        return None
    normal = unicodedata.normalize("NFC", well_formed(text or ""))
    parts = () if text is not None or sentences is None else tuple(map(well_formed, sentences))
    return Document(normal, str(label), parts, spans)


def _spans(spans: Any) -> tuple[tuple[int, int], ...] | None:
    """Pairs of integers, or None if these are not."""
    try:
        return tuple((int(start), int(end)) for start, end in spans)
    except (TypeError, ValueError, OverflowError):
        return None


def _table_rows(path: Path, format: Format, columns: tuple[str, str], bad: BadRows) -> Iterator[Document]:
    separator = "\t" if format == "tsv" else ","
    quoting: Any = csv.QUOTE_NONE if format == "tsv" else csv.QUOTE_MINIMAL
    lines = (f"{line}\n" for line in read_lines(path))
    reader = csv.reader(lines, delimiter=separator, quoting=quoting, strict=True)
    csv.field_size_limit(MAX_FILE_BYTES)
    numbers = [int(column) if column.isdecimal() else -1 for column in columns]
    width = 0
    while True:
        start = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            bad.add(f"{path}: line {start} is not {format.upper()} ({error}).")
            continue
        if not row or row == [""]:
            continue
        if not width:
            width = len(row)
            if min(numbers) < 0:
                numbers = [_column(path, row, column) for column in columns]
                continue
        place = f"{path}: line {start}"
        if len(row) != width:
            bad.add(f"{place} has {counted(len(row), 'column')}, and the first line has {width}.")
            continue
        document = Document(row[numbers[0]].strip("\n"), row[numbers[1]].strip()) if max(numbers) < width else None
        yield from _checked(document, place, columns, row, bad)


def _column(path: Path, header: list[str], column: str) -> int:
    names = [name.strip().lower() for name in header]
    if column.lower() in names:
        return names.index(column.lower())
    if column.isdecimal():
        return int(column)
    raise DataError(
        f"{path} has no column {column!r}; its first line has {', '.join(map(repr, header[:8]))}. Set columns, to "
        "names or, in a file without a header line, to numbers counted from 0."
    )


def _checked(
    document: Document | None, place: str, columns: tuple[str, str], row: Any, bad: BadRows
) -> Iterator[Document]:
    if document is None:
        given = sorted(row) if isinstance(row, dict) else counted(len(row), "column")
        bad.add(f"{place} lacks {columns[0]!r} (text) or {columns[1]!r} (the label); it has {given}.")
    elif not document.label:
        bad.add(f"{place} has no label.")
    elif document.is_empty:
        bad.add(f"{place} has no words.")
    else:
        yield document


def _folders(path: Path, bad: BadRows) -> Iterator[Document]:
    archive = _archive_of(path)
    files = _archive_files(*archive) if archive is not None else _folder_files(path)
    found = False
    for place, label, content in files:
        found = True
        document = Document(_decoded(content), label)
        if document.is_empty:
            bad.add(f"{place} has no words.")
        else:
            yield document
    if not found:
        raise DataError(f"{path} holds no documents: it needs one folder per class, with a text file per document.")


def _folder_files(path: Path) -> Iterator[tuple[str, str, bytes]]:
    if not path.is_dir():
        raise DataError(f"There is no folder {path}.")
    classes = sorted(entry for entry in path.iterdir() if entry.is_dir() and not entry.name.startswith((".", "_")))
    labels = _labels(entry.name for entry in classes)
    for folder in classes:
        if folder.name in labels:
            for file in sorted(folder.iterdir()):
                if file.is_file() and not file.name.startswith("."):
                    yield str(file), folder.name, file.read_bytes()


def _archive_of(path: Path) -> tuple[Path, str] | None:
    """The archive in a path, and the folder inside it."""
    for place in (path, *path.parents):
        if place.name.lower().endswith(_ARCHIVES) and place.is_file():
            inside = path.relative_to(place).as_posix()
            return place, "" if inside == "." else inside
    return None


def _archive_files(archive: Path, inside: str) -> Iterator[tuple[str, str, bytes]]:
    """The files of an archive, in its order, without unpacking it; a class is the folder that holds a file."""
    prefix = f"{inside.strip('/')}/" if inside else ""
    with reading(archive), tarfile.open(archive, "r|*") as opened:
        for member in opened:
            name = member.name.removeprefix("./")
            parts = name.removeprefix(prefix).split("/")
            if not (member.isfile() and name.startswith(prefix) and len(parts) >= 2) or parts[-2] == _UNLABELLED:
                continue
            if prefix and len(parts) != 2:
                continue
            stream = opened.extractfile(member)
            if stream is not None:
                yield f"{archive}/{name}", parts[-2], read_limited(stream, f"{archive}/{name}")


def _labels(names: Iterable[str]) -> set[str]:
    labels = set(names)
    return labels - {_UNLABELLED} if {"pos", "neg"} <= labels else labels


def _decoded(content: bytes) -> str:
    """Text in UTF-8; in UTF-16 where its byte order mark says so; or else in Latin-1, as old news posts are."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = content.decode("utf-16", errors="replace")
    else:
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = content.decode("latin-1")
    return unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\0", " "))
