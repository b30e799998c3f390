"""Runs a module as its own command line does, with the time on every line that it prints.

    python stamp.py FILE MODULE ARGUMENTS...

Each line begins with "@WALL CPU|": seconds of the clock, and seconds that all threads of the process have computed.
A line "@WALL CPU|opened FILE" comes when FILE is opened: a decoder that says nothing when it begins is measured from
there. This file runs in the environments of the other toolkits, so it imports nothing beyond Python.
"""

import os
import runpy
import sys
import time
from typing import Any, TextIO


class Stamped:
    """A stream whose lines begin with the time."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._fresh = stream, True

    def write(self, text: str) -> int:
        """Write, with the time before each new line."""
        for line in text.splitlines(keepends=True):
            if self._fresh:
                self._stream.write(stamp())
            self._stream.write(line)
            self._fresh = line.endswith("\n")
        self._stream.flush()
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def stamp() -> str:
    children = os.times()
    cpu = time.process_time() + children.children_user + children.children_system
    return f"@{time.perf_counter():.4f} {cpu:.4f}|"


def main() -> None:
    watched, module, *arguments = sys.argv[1:]
    sys.stdout, sys.stderr = Stamped(sys.stdout), Stamped(sys.stderr)  # type: ignore[assignment]

    def see(event: str, details: tuple[Any, ...]) -> None:
        if event == "open" and details[0] == watched:
            sys.stderr.write(f"opened {watched}\n")

    sys.addaudithook(see)
    sys.argv = [module, *arguments]
    sys.path.pop(0)  # this folder, which the toolkit's own command would not see
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
