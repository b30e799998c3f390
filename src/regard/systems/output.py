"""What the commands of all systems share: reading inputs, writing results, showing attention."""

import json
import shlex
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO, runtime_checkable

from regard.errors import OptionError, RegardWarning

if TYPE_CHECKING:
    from regard.systems.system import Result, System


@runtime_checkable
class Writer(Protocol):
    """Where lines are written: the standard output, or a file."""

    def write(self, text: str, /) -> Any:
        """Write text."""

    def flush(self) -> Any:
        """Pass on what was written."""


PIPE = "The standard input"
"""What errors call it."""
TERMINAL = "-"
"""What `--show` takes to draw in the terminal instead of saving a file."""
PIPE_WINDOW = 64
"""Lines of a pipe that are read before the first are answered."""
FILE_WINDOW = 1024
"""Lines of a file that are read before the first are answered: inputs of like cost are put together among these."""


def say(text: str, out: Writer | None = None) -> None:
    """Write one line to the standard output, or to `out`."""
    (out or sys.stdout).write(text + "\n")


def read_texts(texts: Sequence[str], files: Sequence[str], pipe: TextIO) -> Iterable[str]:
    """The lines to process: the arguments, those of the files that `--input` names, or those of a pipe.

    The lines of a pipe are decoded as those of a file are.
    """
    from regard.data.text import decode_lines, read_lines
    from regard.jobs.inputs import find_files

    if texts:
        return texts
    if not files:
        return decode_lines(pipe.buffer, PIPE)
    return chain.from_iterable(read_lines(path) for name in files for path, _ in find_files(name))


def warn_of_files(texts: Sequence[str], option: str = "--input") -> None:
    """Warn where a text is also the name of a file, which `option` would read."""
    for text in texts:
        if "." in text or "/" in text:
            with suppress(OSError):  # a text may be too long for a name
                if Path(text).is_file():
                    message = f"{text!r} is taken as a text. It is also a file: {option} {shlex.quote(text)} reads it."
                    warnings.warn(message, RegardWarning, stacklevel=2)
                    return


@contextmanager
def writing(output: str | None) -> Iterator[Writer]:
    """The standard output, or a file that appears under its name when it is complete."""
    if output is None:
        yield sys.stdout
        return
    from regard.files import replacing

    with replacing(output) as draft, draft.open("w", encoding="utf-8") as stream:
        yield stream


def write_json(result: "Result", out: Writer, **more: Any) -> None:
    """Write a result as one line of JSON; `more` comes before its own fields."""
    say(json.dumps(more | result.to_dict(), ensure_ascii=False), out)


def result_text(model: "System", given: Any, result: "Result | None", options: Any, *, as_json: bool) -> str:
    """What is written for an input: the text of its result, or JSON; of a blank line, an empty line or null."""
    if as_json:
        before = {"image": str(given)} if isinstance(given, Path) else {}
        return json.dumps(None if result is None else before | result.to_dict(), ensure_ascii=False)
    return "" if result is None else model.as_text(result, options)


def check_show(show: str | None, count: int) -> None:
    """Refuse to save several results under one name."""
    if show is not None and show != TERMINAL and count != 1:
        raise OptionError(f"--show {show} is for one input; got {count}. Use --show - to draw all in the terminal.")


def show_result(result: "Result", show: str, *, model: str, **options: Any) -> None:
    """Draw what a result attended to: in the terminal for "-", otherwise as a file of the kind that its name says."""
    from rich.console import Console

    from regard.viewing.view import view

    if result.trace is None:
        raise OptionError(f"{model} has no attention to show.")
    if show == TERMINAL:
        view(result.trace).show(Console(), **options)
    else:
        say(f"Wrote {view(result.trace).save(show, **options)}", sys.stderr)
