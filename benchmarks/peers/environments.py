"""A virtual environment for each toolkit, with the pinned versions of its requirement file."""

import subprocess
import sys
import venv
from pathlib import Path

import torch

HERE = Path(__file__).parent


class FailedError(Exception):
    """A command of another toolkit failed; the message is the end of what it printed."""


def environment(name: str, cache: Path) -> Path:
    """The Python of a toolkit's environment; an earlier one of the same requirements is used again."""
    requirements = HERE / f"{name}.txt"
    wanted = f"torch=={torch.__version__.partition('+')[0]}"
    folder = cache / name
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    ready = folder / "ready"
    content = wanted + "\n" + requirements.read_text(encoding="utf-8")
    if ready.is_file() and ready.read_text(encoding="utf-8") == content:
        return python
    venv.create(folder, with_pip=True, clear=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    # The toolkits ask for versions of torch and of protobuf that exclude one another or this Python, yet run without
    # them: the files name all that is needed, and nothing else is resolved.
    run([*pip, wanted])
    run([*pip, "--no-deps", "--requirement", str(requirements)])
    ready.write_text(content, encoding="utf-8")
    return python


def run(command: list[str], *, env: dict[str, str] | None = None, given: str = "") -> list[str]:
    """The lines that a command prints, when it is given a text to read."""
    done = subprocess.run(
        command, env=env, input=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    lines = done.stdout.splitlines()
    if done.returncode:
        raise FailedError("\n".join(lines[-12:]) or f"it ended with {done.returncode}")
    return lines
