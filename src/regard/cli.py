"""The command line: each command calls one public function, and imports what it needs only when it runs."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from regard import __version__
from regard.errors import RegardError

app = App(
    name="regard",
    version=__version__,
    help="Attention models you can train, measure and look inside. Start with: regard demo",
)


@app.command
def demo(*, out: Annotated[Path, Parameter(alias="-o")] = Path("regard-demo")) -> None:
    """See attention work: a database look-up, and one sentence under every score.

    Prints heat maps in the terminal and saves pictures.

    Parameters
    ----------
    out
        Folder for the pictures; made if it does not exist.
    """
    from regard.demo import run

    run(out)


@app.command
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
        Console().print(terminal.heat_map(loaded))
    else:
        Console().print(f"Wrote {picture.save(picture.heat_map(loaded), out)}", soft_wrap=True)


def main() -> None:
    """Run the command line; mistakes that can be explained end with one line, not with a traceback."""
    try:
        app()
    except (RegardError, OSError) as error:
        sys.exit(f"regard: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
