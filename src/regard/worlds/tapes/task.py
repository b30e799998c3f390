"""What every task on tapes has: sequences that are drawn, and tapes that they are written on."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.config import Checked, Count, PositiveInt, from_values
from regard.errors import ModelError, OptionError
from regard.files import write_text

MAX_LENGTH = 100_000
"""Length of the longest sequence."""


class Drawn(NamedTuple):
    """A batch of sequences of one length, before they are written on tapes."""

    rows: Float[Tensor, "b n r"]
    """The sequence: n vectors of bits, followed by a priority where the task has priorities."""
    number: Int[Tensor, "b"]
    """How often to repeat the sequence (repeat-copy), or which item is asked for, from 0 (recall); otherwise 0."""


class Tapes(NamedTuple):
    """A batch of tapes with as many steps each."""

    inputs: Float[Tensor, "b t c"]
    """What the machine reads at each step."""
    targets: Float[Tensor, "b t y"]
    """The bits that it should answer with; 0 where the answer does not count."""
    scored: Bool[Tensor, "t"]
    """The steps whose answers count."""


@dataclass(frozen=True)
class Task(Checked):
    """A task on tapes; an asset of a model, which must know how to write a sequence on a tape."""

    name: ClassVar[str]
    """How recipes and files call the task."""
    shortest: ClassVar[int] = 0
    """Length of the shortest sequence that the task is defined for."""
    unit: ClassVar[str] = "vectors"
    """What a length counts."""

    bits: PositiveInt = 8
    """Bits of a vector."""
    min_length: Count = 1
    """Length of the shortest sequences to train on."""
    max_length: PositiveInt = 20
    """Length of the longest sequences to train on."""

    def check(self) -> None:
        """Rules between the fields."""
        if not self.shortest <= self.min_length <= self.max_length:
            raise OptionError(
                f"{self.name}: min_length must be from {self.shortest} to max_length; got min_length "
                f"{self.min_length} and max_length {self.max_length}."
            )
        self.check_length(self.max_length)

    @property
    def row_size(self) -> int:
        """Numbers in a row of a sequence."""
        return self.bits

    @property
    def input_size(self) -> int:
        """Numbers that the machine reads in a step."""
        raise TypeError(f"{type(self).__name__} does not define input_size.")

    @property
    def output_size(self) -> int:
        """Bits that the machine answers with in a step."""
        return self.bits

    def slots(self, length: int) -> int:
        """How many slots a memory needs for a sequence of this length, one vector or item in each."""
        return length

    def draw(self, count: int, length: int, generator: torch.Generator) -> Drawn:
        """Draw sequences of random bits, on the device of the generator."""
        self.check_length(length)
        rows = self._bits((count, length, self.bits), generator)
        return Drawn(rows, torch.zeros(count, dtype=torch.int64, device=generator.device))

    def write(self, drawn: Drawn) -> Tapes:
        """Write sequences on tapes, with the right answers."""
        raise TypeError(f"{type(self).__name__} does not define write(drawn).")

    def sample(self, count: int, length: int, generator: torch.Generator) -> Tapes:
        """Draw sequences of this length and write them on tapes."""
        return self.write(self.draw(count, length, generator))

    def check_length(self, length: int) -> None:
        """Refuse a length that the task is not defined for, or that would take forever."""
        if length < self.shortest:
            raise OptionError(f"The shortest sequence of {self.name} has {self.shortest} {self.unit}; got {length}.")
        if length > MAX_LENGTH:
            raise OptionError(f"A sequence of {self.name} has at most {MAX_LENGTH:,} {self.unit}; got {length:,}.")

    def to_dict(self) -> dict[str, Any]:
        """The name and the fields, as `load` reads them."""
        return {"task": self.name, **super().to_dict()}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the task as JSON."""
        return write_text(path, json.dumps(self.to_dict(), indent=2) + "\n")

    @staticmethod
    def load(path: str | os.PathLike[str]) -> "Task":
        """Read a task of any kind that `save` wrote."""
        from regard.worlds.tapes.tasks import TASKS

        try:
            values: Any = json.loads(Path(path).read_text(encoding="utf-8"))
            name = values.pop("task")
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ModelError(f"{path} is not a task on tapes: {type(error).__name__}: {error!s:.200}.") from error
        if not isinstance(name, str) or name not in TASKS:
            raise ModelError(f"{path}: task must be one of {', '.join(TASKS)}; got {name!r:.80}.")
        return from_values(TASKS[name], values, str(path))

    def _bits(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        return torch.randint(2, shape, generator=generator, device=generator.device).float()
