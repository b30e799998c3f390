"""The measurements, and how they are read from log lines with time stamps."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environments import FailedError, run

HERE = Path(__file__).parent
LENGTH = 20
"""Subwords in every output."""
STAMPED = re.compile(r"@([\d.]+) ([\d.]+)\|(.*)")

_PARAMETERS = r"(?:Total params|number of parameters)\D*([\d,]+)"


@dataclass(frozen=True)
class Plan:
    """The amount of work that is measured."""

    warmup: int = 5
    """Updates before the measurement."""
    updates: int = 20
    """Updates that are measured. This and `warmup` are multiples of `every`."""
    every: int = 5
    """Updates between two lines of the log."""
    sentences: tuple[int, int, int, int] = (512, 192, 96, 48)
    """Sentences to decode, for each of SETTINGS."""


@dataclass(frozen=True)
class Setting:
    """Options of decoding."""

    beam: int
    batch: int

    @property
    def name(self) -> str:
        """Such as "beam 5, batch 64"."""
        return f"{'greedy' if self.beam == 1 else f'beam {self.beam}'}, batch {self.batch}"


SETTINGS = (Setting(1, 64), Setting(5, 64), Setting(1, 1), Setting(5, 1))


@dataclass(frozen=True)
class Measured:
    """The number of target tokens trained on or of sentences decoded, and the seconds it took."""

    amount: float
    wall: float
    cpu: float
    length: float | None = None
    """Decoding: mean number of subwords of an output."""
    parameters: int | None = None
    """Training: number of parameters of the model."""


@dataclass(frozen=True)
class Line:
    """A line of a log, and the time at which it was written."""

    wall: float
    cpu: float
    text: str


def one_thread() -> dict[str, str]:
    """The environment variables with which each toolkit runs."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"), "1")
    # These checkpoints were written here; older toolkits store more than tensors in them, which torch refuses to load.
    own = {"TORCH_FORCE_NO_PARAMETERS_ONLY_LOAD": "1", "CUDA_VISIBLE_DEVICES": "", "TOKENIZERS_PARALLELISM": "false"}
    return os.environ | threads | own


def stamped(
    python: Path, module: str, arguments: list[str], *, watch: Path | None = None, text: str = ""
) -> list[Line]:
    """Run a module of a toolkit; returns the lines that it prints."""
    env = one_thread()
    env.pop("PYTHONPATH", None)  # it may point to regard
    command = [str(python), "-W", "ignore", str(HERE / "stamp.py"), str(watch), module, *arguments]
    matches = [STAMPED.search(line) for line in run(command, env=env, text=text)]
    return [Line(float(match[1]), float(match[2]), match[3]) for match in matches if match]


def first(lines: list[Line], pattern: str) -> Line:
    """The first line that matches."""
    for line in lines:
        if re.search(pattern, line.text):
            return line
    raise FailedError(
        f"no line of the log matches {pattern!r}; its last lines are:\n" + "\n".join(line.text for line in lines[-8:])
    )


def between(amount: float, start: Line, end: Line, **more: Any) -> Measured:
    """The measurement of this amount of work between two lines."""
    return Measured(amount, end.wall - start.wall, end.cpu - start.cpu, **more)


def num_parameters(lines: list[Line]) -> int:
    """The number of parameters of a model, from its training log."""
    line = first(lines, _PARAMETERS)
    return int(re.sub(r"\D", "", re.search(_PARAMETERS, line.text)[1]))  # type: ignore[index]


def mean_length(outputs: list[str]) -> float:
    """Mean number of subwords of the outputs."""
    return sum(len(output.split()) for output in outputs) / max(1, len(outputs))
