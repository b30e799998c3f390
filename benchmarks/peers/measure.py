"""What is measured, and how it is read from lines that carry the time."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environments import FailedError, run

HERE = Path(__file__).parent
LENGTH = 20
"""Pieces in every output."""
STAMPED = re.compile(r"@([\d.]+) ([\d.]+)\|(.*)")

_WEIGHTS = r"(?:Total params|number of parameters)\D*([\d,]+)"


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    warmup: int = 5
    """Updates before the clock starts."""
    updates: int = 20
    """Updates that are measured; both are multiples of `every`."""
    every: int = 5
    """Updates between two lines of a log."""
    sentences: tuple[int, int, int, int] = (512, 192, 96, 48)
    """Sentences to decode, for each of SETTINGS."""


@dataclass(frozen=True)
class Setting:
    """One way to decode."""

    beam: int
    batch: int

    @property
    def name(self) -> str:
        """Such as "beam 5, batch 64"."""
        return f"{'greedy' if self.beam == 1 else f'beam {self.beam}'}, batch {self.batch}"


SETTINGS = (Setting(1, 64), Setting(5, 64), Setting(1, 1), Setting(5, 1))


@dataclass(frozen=True)
class Measured:
    """Target tokens that were trained on, or sentences that were decoded, and the time that this took."""

    amount: float
    wall: float
    cpu: float
    length: float | None = None
    """Decoding: pieces of an output, on average."""
    weights: int | None = None
    """Training: how many the model has."""


@dataclass(frozen=True)
class Line:
    """A line of a log, and when it was written."""

    wall: float
    cpu: float
    text: str


def one_thread() -> dict[str, str]:
    """The environment in which each toolkit runs."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"), "1")
    # The checkpoints are our own; older toolkits keep more in them than weights, which torch now refuses by itself.
    own = {"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1", "CUDA_VISIBLE_DEVICES": "", "TOKENIZERS_PARALLELISM": "false"}
    return os.environ | threads | own


def stamped(
    python: Path, module: str, arguments: list[str], *, watch: Path | None = None, given: str = ""
) -> list[Line]:
    """Run a toolkit's module with its arguments; the lines that it prints."""
    env = one_thread()
    env.pop("PYTHONPATH", None)  # what is on it is regard's
    command = [str(python), "-W", "ignore", str(HERE / "stamp.py"), str(watch), module, *arguments]
    found = [STAMPED.search(line) for line in run(command, env=env, given=given)]
    return [Line(float(line[1]), float(line[2]), line[3]) for line in found if line]


def first(lines: list[Line], pattern: str) -> Line:
    """The first line that matches."""
    for line in lines:
        if re.search(pattern, line.text):
            return line
    raise FailedError(
        f"no line of its log matches {pattern!r}; the last were:\n" + "\n".join(x.text for x in lines[-8:])
    )


def between(amount: float, start: Line, end: Line, **more: Any) -> Measured:
    """So much was done between two lines."""
    return Measured(amount, end.wall - start.wall, end.cpu - start.cpu, **more)


def weights(lines: list[Line]) -> int:
    """How many weights a model has, from the log of a training."""
    line = first(lines, _WEIGHTS)
    return int(re.sub(r"\D", "", re.search(_WEIGHTS, line.text)[1]))  # type: ignore[index]


def mean_length(outputs: list[str]) -> float:
    """Pieces of an output, on average."""
    return sum(len(output.split()) for output in outputs) / max(1, len(outputs))
