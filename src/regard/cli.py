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
    help="Attention models you can train, measure and look inside.",
    help_epilogue="Start with `regard demo`.",
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
