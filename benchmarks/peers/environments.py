"""A virtual environment for each toolkit, with the pinned versions of its requirements file."""

import subprocess
import sys
import venv
from pathlib import Path

import torch

HERE = Path(__file__).parent


class FailedError(Exception):
    """A command of another toolkit failed; the message is the end of its output."""


def environment(name: str, cache: Path) -> Path:
    """The Python of a toolkit's environment, which is created unless it exists with the same requirements."""
    requirements = HERE / f"{name}.txt"
    torch_version = f"torch=={torch.__version__.partition('+')[0]}"
    folder = cache / name
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    ready = folder / "ready"
    content = torch_version + "\n" + requirements.read_text(encoding="utf-8")
    if ready.is_file() and ready.read_text(encoding="utf-8") == content:
        return python
    venv.create(folder, with_pip=True, clear=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    # The toolkits require versions of torch and protobuf that conflict with each other or with this Python, but they
    # run with others: the requirements files are complete, so nothing else is resolved.
    run([*pip, torch_version])
    run([*pip, "--no-deps", "--requirement", str(requirements)])
    ready.write_text(content, encoding="utf-8")
    return python


def run(command: list[str], *, env: dict[str, str] | None = None, text: str = "") -> list[str]:
    """Run a command with `text` as its standard input; returns the lines that it prints."""
    done = subprocess.run(
        command, env=env, input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    lines = done.stdout.splitlines()
    if done.returncode:
        raise FailedError("\n".join(lines[-12:]) or f"exit status {done.returncode}")
    return lines
