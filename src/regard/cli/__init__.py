"""The command line: each command calls one public function, and imports what it needs only when it runs."""

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from cyclopts import App, CycloptsError

from regard import __version__
from regard.errors import RegardError, RegardWarning
from regard.systems.families import families, resolve

OWN = {
    "demo": "regard.cli.view:demo",
    "train": "regard.cli.train:train",
    "evaluate": "regard.cli.evaluate:evaluate",
    "view": "regard.cli.view:view",
    "models": "regard.cli.listings:models",
    "recipes": "regard.cli.listings:recipes",
    "serve": "regard.cli.serve:serve",
    "bench": "regard.cli.bench:bench",
}
"""The commands that are the same for all systems; each system adds its own."""
DATA = ("get", "list", "newsgroups", "babel", "scenes")


def build_app() -> App:
    """The application, with the commands of every system of the table."""
    app = App(
        name="regard",
        version=__version__,
        help="Attention models you can train, measure and look inside. Start with: regard demo",
    )
    for family in families().values():
        for name, path in family.commands.items():
            app.command(resolve(path), name=name)
    for name, path in OWN.items():
        app.command(resolve(path), name=name)
    data = App(name="data", help="Get data sets to train on, and look at generated worlds.")
    for name in DATA:
        data.command(resolve(f"regard.cli.data:{'list_' if name == 'list' else name}"), name=name)
    app.command(data)
    return app


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Write regard's own warnings as its errors are written, without the place in the code."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def written(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, RegardWarning):
                sys.stderr.write(f"regard: {message}\n")
            else:
                show(message, category, *place, **more)

        warnings.showwarning = written
        warnings.simplefilter("always", RegardWarning)
        yield


def main(tokens: Sequence[str] | None = None) -> None:
    """Run the command line; mistakes that regard can explain end with one line and status 2, not with a traceback.

    Without `tokens`, the arguments of the process are used.
    """
    try:
        with _warnings_in_one_line():
            build_app()(tokens, exit_on_error=False)
    except CycloptsError:
        sys.exit(2)  # cyclopts has printed what is wrong
    except BrokenPipeError:
        # The reader of a pipe has closed it, as `head` does; nothing is left to write, not even when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except (RegardError, OSError) as error:
        sys.stderr.write(f"regard: {error}\n")
        sys.exit(error.status if isinstance(error, RegardError) else 2)
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(0)
