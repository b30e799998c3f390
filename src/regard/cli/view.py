"""Commands that show what attention does."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from regard.errors import OptionError

if TYPE_CHECKING:
    from regard.trace import Trace


def demo(
    *,
    out: Annotated[Path, Parameter(alias="-o")] = Path("regard-demo"),
    minutes: float = 1.0,
    photograph: Path | None = None,
) -> None:
    """Take a tour of attention: look-ups, every score, translation, reading, images, documents and memory.

    Prints in the terminal and saves figures. Takes about two minutes, one of them to train a small translator.

    Parameters
    ----------
    out
        Folder for the figures; created if it does not exist.
    minutes
        Training time of the small translator.
    photograph
        A photograph to caption; by default one from scikit-image, if that is installed.
    """
    from regard.demo import run

    run(out, minutes=minutes, photograph=photograph)


def view(
    trace: Path,
    *,
    output: Annotated[Path | None, Parameter(alias="-o")] = None,
    line: int = 1,
    layer: int | None = None,
    head: int | None = None,
    name: str | None = None,
    style: str | None = None,
    title: str | None = None,
    pieces: bool = False,
    cells: bool = False,
    overlay: str | None = None,
    columns: int | None = None,
    side: int | None = None,
    seconds: float | None = None,
    raw: bool = False,
) -> None:
    """Draw the attention in a saved trace: in the terminal, as a figure, or as an interactive page.

    Parameters
    ----------
    trace
        A file that Trace.save wrote, or the JSON output of a command (regard translate --json > FILE).
    output
        Save to this file instead of drawing in the terminal: .html is an interactive page, .png, .svg and .pdf are
        figures, .gif is an animation of a caption.
    line
        Which line of a JSON output to show, counted from 1.
    layer
        Show the attention of this layer, counted from 1, where the trace has all layers.
    head
        Show the attention of this head, counted from 1.
    name
        Show the attention of this name, or whose name begins with these words, such as encoder.
    style
        With --output, heat_map, heat_maps (all heads side by side) or lines; for readings also word_by_word.
    title
        With --output, the title of the figure or page.
    pieces
        Show the subwords of each word one by one instead of joined; on a page, a switch joins them.
    cells
        Over an image, draw the weights cell by cell instead of as a smooth overlay.
    overlay
        Over an image, "light", which dims what is not attended to, or "colour".
    columns
        Images of a caption side by side in a figure.
    side
        The longer side of the image: in pixels of a .gif, in characters of the terminal.
    seconds
        How long a .gif shows each word.
    raw
        Shade the words of a document by their weight within the sentence alone.
    """
    from rich.console import Console

    from regard.viewing.view import view as make_view

    shown = make_view(_read(trace, line))
    given = {
        "layer": layer, "head": head, "name": name, "style": style, "title": title, "pieces": pieces or None,
        "cells": cells or None, "overlay": overlay, "columns": columns, "side": side, "seconds": seconds,
        "raw": raw or None,
    }  # fmt: skip
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if style is not None and "style" in shown.options("figure.png"):
        shown.check_style(style)
    if refused := [name for name in options if name not in shown.options(output)]:
        if output is None and refused[0] in shown.options("figure.png"):
            raise OptionError(f"--{refused[0]} is for figures and pages: give --output FILE.png or FILE.html too.")
        taken = ", ".join(f"--{name}" for name in given if name in shown.options(output))
        raise OptionError(
            f"--{refused[0]} is not for this trace of kind {shown.trace.kind!r}, which takes {taken or 'no options'}."
        )
    if output is None:
        shown.show(Console(), **options)
    else:
        sys.stderr.write(f"Wrote {shown.save(output, **options)}\n")


def _read(path: Path, line: int) -> "Trace":
    """The trace of a file: a trace itself, or the results of a command as JSON lines."""
    from regard.trace import Trace
    from regard.viewing.view import View

    if path.suffix.lower() in (*View.SUFFIXES, ".gif"):
        raise OptionError(f"{path} is no trace but a finished picture or page: open it with a browser or image viewer.")
    try:
        lines = [text for text in path.read_text(encoding="utf-8-sig").split("\n") if text.strip()]
        result = json.loads(lines[line - 1]) if 1 <= line <= len(lines) else None
    except (OSError, ValueError, RecursionError):
        return Trace.load(path)  # which says what is wrong with the file
    if line != 1 and result is None:
        raise OptionError(f"--line must be from 1 to {len(lines)}, the number of lines in {path}; got {line}.")
    if not isinstance(result, dict) or "trace" not in result:
        return Trace.load(path)
    if result["trace"] is None:
        raise OptionError(f"Line {line} of {path} has no trace: its model has no attention.")
    return Trace.from_dict(result["trace"])
