"""The command line: each command calls one public function, and imports what it needs only when it runs."""

import ast
import os
import re
import sys
import sysconfig
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from cyclopts import App, CoercionError, CycloptsError, CycloptsPanel, MissingArgumentError, UnusedCliTokensError

from regard import __version__
from regard.cli.io import SafeConsole
from regard.errors import RegardError, RegardWarning
from regard.systems import registry
from regard.viewing.tokens import printable

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
DEBUG = "--debug"
CLOSED_PIPE = 141
"""The status of a program that a closed pipe ends: 128 + SIGPIPE."""
VERBS = "regard.cli.verbs"
DATA = {
    name: f"regard.cli.data:{function}"
    for name, function in {
        "get": "get", "list": "list_", "newsgroups": "newsgroups", "babel": "babel", "scenes": "scenes",
    }.items()
}  # fmt: skip
"""The commands of `regard data`."""


def commands() -> dict[str, str]:
    """Where the function of each command is, `module:function`: regard's own, and those of every system."""
    found = {}
    for each in registry.entries():
        found[each.name] = f"{VERBS}:{each.name}"
        for name in each.declaration.commands:
            found[name] = f"{each.module}.command:{name.replace('-', '_')}"
    return found | OWN


def build_app(words: Sequence[str] = ()) -> App:
    """The application, with the commands of every system of the table.

    Commands are imported when they are called. The list of all of them needs their summaries alone; a command among the
    `words` of the command line explains itself.
    """
    app = App(
        name="regard",
        version=__version__,
        help="Attention models that you can train, measure and look inside. Start with: regard demo\n\n"
        "Any command takes --debug, which shows the traceback of an error.",
        console=SafeConsole(),
        error_console=SafeConsole(stderr=True),
        error_formatter=_explained_arguments,
    )
    data = App(name="data", help="Download data sets, and print examples of the generated worlds.")
    listed = [(app, name, path) for name, path in commands().items()] + [(data, *item) for item in DATA.items()]
    for parent, name, path in listed:
        parent.command(path, name=name, help=None if name in words else summary_of(path))
    app.command(data)
    return app


def summary_of(path: str) -> str:
    """The first line of the docstring of `module:function`, which is read and not imported."""
    module, _, name = path.partition(":")
    if module == VERBS:
        return registry.entry(name).declaration.summary
    found = find_spec(module)
    source = Path(str(found and found.origin)).read_text(encoding="utf-8")
    function = next(each for each in ast.parse(source).body if isinstance(each, ast.FunctionDef) and each.name == name)
    return (ast.get_docstring(function) or "").partition("\n")[0]


def _explained_arguments(error: CycloptsError) -> Any:
    """What is wrong with the arguments: an option without its value is explained as in the help."""
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        command = " ".join(["regard", *(error.command_chain or ())])
        return CycloptsPanel(f"Unexpected argument {error.unused_tokens[0]!r}. See {command} --help.")
    if error.app and error.argument:
        known = error.app.assemble_argument_collection(parse_docstring=True)
        if isinstance(error, MissingArgumentError):
            for each in known:
                if each.name == error.argument.name and each.parameter.help:
                    return CycloptsPanel(f"{error} {' '.join(each.parameter.help.split())}")
        if isinstance(error, CoercionError) and error.token and error.target_type == dict[str, str]:
            from regard.config import nearest_hint

            # A table of a recipe without a field, or an option of another name, which might have been a table.
            name = error.token.keyword
            near = nearest_hint(name, [option for each in known for option in each.names])
            return CycloptsPanel(
                f"There is no option {name}.{near} Fields of a recipe are set with --data.NAME, --model.NAME or "
                "--train.NAME."
            )
    return CycloptsPanel(error)


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Write regard's own warnings as its errors are written, without the place in the code."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def written(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, RegardWarning):
                sys.stderr.write(f"regard: {printable(str(message))}\n")
            else:
                show(message, category, *place, **more)

        warnings.showwarning = written
        warnings.simplefilter("always", RegardWarning)
        yield


def main(tokens: Sequence[str] | None = None) -> None:
    """Run the command line; without `tokens`, with the arguments of the process.

    A mistake that regard can explain ends with one line and status 2, a bug of regard itself with one line and status
    1. With --debug, both end with a traceback.
    """
    if "torch" not in sys.modules:
        # A thread that waits for another then leaves its core to other processes.
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    words = list(sys.argv[1:] if tokens is None else tokens)
    before = words[: words.index("--")] if "--" in words else words
    debug = DEBUG in before
    if debug:
        words.remove(DEBUG)
    if isinstance(sys.stdout, TextIOWrapper):
        # A terminal that cannot show a letter is no reason to stop.
        sys.stdout.reconfigure(errors="backslashreplace")
    with _warnings_in_one_line():
        sys.exit(_run(words, debug=debug))


def _run(words: list[str], *, debug: bool) -> int:
    """Run a command, and return the status that the process ends with."""
    try:
        build_app(words)(words, exit_on_error=False)
        sys.stdout.flush()
    except CycloptsError:
        return 2  # cyclopts has printed what is wrong
    except BrokenPipeError:
        # The reader of a pipe has closed it, as `head` does; nothing is left to write, not even when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # rich ends a program with status 1
            return CLOSED_PIPE
        raise
    except KeyboardInterrupt:
        return 130
    except (RegardError, OSError) as error:
        if debug:
            raise
        sys.stderr.write(f"regard: {_explained(error)}\n")
        return error.status if isinstance(error, RegardError) else 2
    except Exception as error:
        if debug:
            raise
        sys.stderr.write(f"regard: {type(error).__name__}: {_explained(error):.300}\n{_blame(error)}\n")
        return 1
    return 0


def _blame(error: Exception) -> str:
    """Where to look for the mistake: in the user's own parts (package.module:Name), if it happened there."""
    libraries = [
        str(Path(__file__).parents[1]),
        *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")),
    ]
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith((*libraries, "<")):
            place = f"{printable(frame.filename)}, line {frame.lineno}, in {frame.name}"
            return f"It happened in {place}. Run the same command with --debug to see the traceback."
    return (
        "This is a bug in regard or in a library it uses. Run the same command with --debug to see where it happened."
    )


def _explained(error: Exception) -> str:
    """The message of an error in one line, without the numbers of the operating system's errors.

    File names and texts in it may hold line ends and control characters, which a terminal would obey.
    """
    message = str(error)
    if isinstance(error, OSError) and not isinstance(error, RegardError) and error.strerror:
        message = f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    return printable(re.sub(r"\[Errno \d+\] ", "", message))
