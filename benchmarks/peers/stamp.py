"""Run a module as from its own command line, with a time stamp before every line that it prints.

    python stamp.py FILE MODULE ARGUMENTS...

Each line begins with "@WALL CPU|": wall-clock seconds, and CPU seconds of all threads of the process. A line "@WALL
CPU|opened FILE" is printed when FILE is opened, which is where the measurement begins of a decoder that logs nothing
when it starts. This file runs in the environments of the other toolkits, so it imports only the standard library.
"""

import os
import runpy
import sys
import time
from typing import Any, TextIO


class Stamped:
    """A stream whose lines begin with a time stamp."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._fresh = stream, True

    def write(self, text: str) -> int:
        """Write text, with a time stamp before each new line."""
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
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    watched, module, *arguments = sys.argv[1:]
    sys.stdout, sys.stderr = Stamped(sys.stdout), Stamped(sys.stderr)  # type: ignore[assignment]

    def report_opened(event: str, details: tuple[Any, ...]) -> None:
        if event == "open" and details[0] == watched:
            sys.stderr.write(f"opened {watched}\n")

    sys.addaudithook(report_opened)
    sys.argv = [module, *arguments]
    sys.path.pop(0)  # this folder is not on the path of the toolkit's own command
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
