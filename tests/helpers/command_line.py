"""The command line, run inside the test process: starting Python and importing torch takes seconds."""

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from jaxtyping import config

from regard.cli import main


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


def regard(*arguments: object, input: str | bytes = "", columns: int = 80, check: bool = False) -> Done:
    """Run `regard arguments...` on a terminal of so many columns; `check` asserts that it succeeds."""
    content = input.encode() if isinstance(input, str) else input
    stdout, stderr, status = io.StringIO(), io.StringIO(), 0
    config.update("jaxtyping_disable", True)  # wrong input is to reach the errors that users see
    try:
        with (
            mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8")),
            mock.patch.dict("os.environ", {"COLUMNS": str(columns), "NO_COLOR": "1"}),
            redirect_stdout(stdout),
            redirect_stderr(stderr),
        ):
            main([str(argument) for argument in arguments])
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 1 if ended.code else 0
    finally:
        config.update("jaxtyping_disable", False)
    done = Done(status, stdout.getvalue(), stderr.getvalue())
    assert not check or done.returncode == 0, done.stderr + done.stdout
    return done


def refused(*arguments: object, input: str | bytes = "") -> str:
    """The message of a command that ends with status 2 and no traceback."""
    done = regard(*arguments, input=input)
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return " ".join(done.stderr.split())


def write_lines(path: Path, lines: object) -> str:
    """Write a text file with a line for each item."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")  # type: ignore[attr-defined]
    return str(path)
