"""Commands that show what attention does."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from regard.cli.io import TERMINAL, Drawing, Flag, SafeConsole, check_folder, check_outputs, draw, mark_folder
from regard.errors import OptionError
from regard.files import read_text

if TYPE_CHECKING:
    from regard.trace import Trace


def demo(
    *,
    out: Annotated[Path, Parameter(alias="-o")] = Path("regard-demo"),
    photograph: Path | None = None,
    overwrite: Flag = False,
) -> None:
    """Take a tour of attention: look-ups, every score, translation, reading, images, documents and memory.

    Prints in the terminal and saves figures. Takes about a minute.

    Parameters
    ----------
    out
        Folder for the figures; created if it does not exist.
    photograph
        A photograph to caption; by default one from scikit-image, if that is installed.
    overwrite
        Write into a folder that holds other files.
    """
    from regard.demo import run

    check_folder(out, overwrite=overwrite)
    try:
        run(out, SafeConsole(highlight=False), photograph=photograph)
    finally:
        if out.is_dir():
            mark_folder(out)


def view(
    trace: Path,
    *,
    output: Annotated[Path | None, Parameter(alias="-o")] = None,
    overwrite: Flag = False,
    line: int = 1,
    drawing: Annotated[Drawing | None, Parameter(name="*")] = None,
) -> None:
    """Draw the attention in a saved trace: in the terminal, as a figure, or as an interactive page.

    Parameters
    ----------
    trace
        A file that Trace.save wrote, or the JSON output of a command (regard translate --json > FILE).
    output
        Save to this file instead of drawing in the terminal: .html is an interactive page, .png, .svg and .pdf are
        figures, .gif is an animation of a caption.
    overwrite
        Replace a file that exists.
    line
        Which line of a JSON output to show, counted from 1.
    """
    check_outputs({"--output": output}, inputs=[trace], overwrite=overwrite)
    draw(_read(trace, line), TERMINAL if output is None else str(output), drawing or Drawing())


def _read(path: Path, line: int) -> "Trace":
    """The trace of a file: a trace itself, or the results of a command as JSON lines."""
    from regard.trace import Trace
    from regard.viewing.view import View

    if path.suffix.lower() in (*View.SUFFIXES, ".gif"):
        raise OptionError(f"{path} is no trace but a finished picture or page: open it with a browser or image viewer.")
    try:
        lines = [text for text in read_text(path).split("\n") if text.strip()]
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
