"""Commands that show what attention does."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from regard.cli.output import say


def demo(
    *,
    out: Annotated[Path, Parameter(alias="-o")] = Path("regard-demo"),
    minutes: float = 1.0,
    photograph: Path | None = None,
) -> None:
    """See attention work: as a look-up, under every score, in translation, and on pictures.

    Prints heat maps in the terminal and saves pictures. Trains a small translator on the way.

    Parameters
    ----------
    out
        Folder for the pictures; made if it does not exist.
    minutes
        Time to train the translator of the generated world.
    photograph
        A photograph of yours to caption; without, it is one of scikit-image, where that is installed.
    """
    from regard.demo import run

    run(out, minutes=minutes, photograph=photograph)


def view(trace: Path, *, out: Annotated[Path | None, Parameter(alias="-o")] = None, cells: bool = False) -> None:
    """Show a trace, the JSON file of what a model attended to: a heat map, or a caption word by word over its picture.

    Parameters
    ----------
    trace
        A file that Trace.save wrote.
    out
        Save a picture here (.png, .svg or .pdf; of a caption also .gif) instead of drawing in the terminal.
    cells
        Over a picture, show the weights as they are, cell by cell, instead of a soft light.
    """
    from rich.console import Console

    from regard.trace import Trace
    from regard.viewing.view import view as view_of

    loaded = view_of(Trace.load(trace))
    options = {"cells": cells} if loaded.trace.kind == "caption" else {}
    if out is None:
        console = Console()
        coloured = console.color_system is not None
        console.print(loaded.terminal(width=console.width, colour=coloured, **options))
    else:
        say(f"Wrote {loaded.save(out, **options)}")
