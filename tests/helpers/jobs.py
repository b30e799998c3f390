"""Predictors of jobs for tests: fast, and with the faults that a job must survive."""

import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.errors import DataError, RegardError


@dataclass(frozen=True)
class Upper:
    """Writes lines in upper case, after whatever `fault` does about some of them."""

    fault: Callable[[str], None] | None = None
    chunk_size: int = 4
    json: bool = False
    log: Path | None = None
    """A file with a line for each line that was answered."""

    def settings(self) -> dict[str, Any]:
        return {"upper": True}

    def load(self, worker: int, workers: int) -> Callable[[Sequence[str]], list[str]]:
        return self._answer

    def refused(self, line: str, error: RegardError) -> str:
        return "?"

    def _answer(self, lines: Sequence[str]) -> list[str]:
        for line in lines:
            if self.fault is not None:
                self.fault(line)
        if self.log is not None:
            with self.log.open("a") as log:
                log.write("".join(f"{line}\n" for line in lines))
        return [line.upper() for line in lines]


@dataclass(frozen=True)
class DieOnce:
    """The worker is killed the first time that it sees a line; `parent` kills the process that started it."""

    line: str
    flag: Path
    parent: bool = False

    def __call__(self, line: str) -> None:
        if line == self.line and not self.flag.exists():
            self.flag.touch()
            killed = os.getppid() if self.parent else os.getpid()
            os.kill(killed, signal.SIGKILL)
            while os.getppid() == killed:  # its pipe is closed before it has ended
                time.sleep(0.01)


@dataclass(frozen=True)
class DieAlways:
    """The worker is killed whenever it sees a line."""

    line: str

    def __call__(self, line: str) -> None:
        if line == self.line:
            os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Refuse:
    """A line that no worker can answer."""

    line: str

    def __call__(self, line: str) -> None:
        if line == self.line:
            raise DataError(f"{line!r} is not wanted.")


def fail(line: str) -> None:
    """Fail in a way that regard cannot explain."""
    raise ZeroDivisionError(line)
