"""Commands that show what attention does."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from regard.cli.output import say


def demo(*, out: Annotated[Path, Parameter(alias="-o")] = Path("regard-demo"), minutes: float = 1.0) -> None:
    """See attention work: as a look-up, under every score, and in translation.

    Prints heat maps in the terminal and saves pictures. Trains a small translator on the way.

    Parameters
    ----------
    out
        Folder for the pictures; made if it does not exist.
    minutes
        Time to train the translator of the generated world.
    """
    from regard.demo import run

    run(out, minutes=minutes)


def view(trace: Path, *, out: Annotated[Path | None, Parameter(alias="-o")] = None) -> None:
    """Show a trace, the JSON file of what a model attended to, as a heat map.

    Parameters
    ----------
    trace
        A file that Trace.save wrote.
    out
        Save a picture here (.png, .svg or .pdf) instead of drawing in the terminal.
    """
    from rich.console import Console

    from regard.trace import Trace
    from regard.viewing import picture, terminal

    loaded = Trace.load(trace)
    if out is None:
        console = Console()
        console.print(terminal.heat_map(loaded, width=console.width))
    else:
        say(f"Wrote {picture.save(picture.heat_map(loaded), out)}")
