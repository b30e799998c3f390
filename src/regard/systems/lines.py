"""Texts to translate, line by line, and translations as JSON."""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TextIO, TypeVar

from regard.data.text import read_lines
from regard.errors import OptionError
from regard.systems.translator import Translation

Item = TypeVar("Item")
BATCH = 64
"""Lines that are translated together, and then written at once."""


def read_texts(texts: Sequence[str], file: Path | None, pipe: TextIO) -> Iterator[list[str]]:
    """Batches of lines from the arguments, a file, or a pipe; at a keyboard, one line at a time."""
    if texts and file is not None:
        raise OptionError("Give sentences or a file, not both.")
    lines: Iterable[str]
    if texts:
        lines = texts
    elif file is not None:
        lines = read_lines(file)
    else:
        lines = (line.rstrip("\n") for line in pipe)
    return in_batches(lines, 1 if not texts and file is None and pipe.isatty() else BATCH)


def in_batches(items: Iterable[Item], size: int = BATCH) -> Iterator[list[Item]]:
    """The items, some at a time."""
    waiting = iter(items)
    while batch := list(islice(waiting, size)):
        yield batch


def as_json(translation: Translation) -> str:
    """A translation as one line of JSON, its trace included."""
    fields = {"source": translation.source, "text": translation.text, "score": translation.score}
    trace = None if translation.trace is None else translation.trace.to_dict()
    return json.dumps(fields | {"finished": translation.finished, "trace": trace}, ensure_ascii=False)
