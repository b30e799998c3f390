"""Picker: a score of each number, a softmax over them, and the weighted average of the numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

import regard
from helpers.picker.config import PickerConfig, PickOptions
from regard.attention import align
from regard.errors import OptionError
from regard.systems.folder import Labels
from regard.systems.system import Result, System


@dataclass(frozen=True)
class Pick(Result):
    """The number that was picked."""

    value: float
    unit: str

    @property
    def text(self) -> str:
        """The number with its unit."""
        return f"{self.value} {self.unit}"


class Picker(System[str | Sequence[float], Pick, PickOptions]):
    """Picks the largest of some numbers, which are given as a list or as a text such as "1 3 2"."""

    kind = "pick"
    Config = PickerConfig
    assets: ClassVar[Mapping[str, Any]] = {"units": Labels}

    def __init__(self, config: PickerConfig, units: Sequence[str]) -> None:
        super().__init__(config)
        self.units = Labels(units)
        self.score = nn.Sequential(nn.Linear(1, config.hidden), nn.Tanh(), nn.Linear(config.hidden, 1))

    def forward(self, numbers: Tensor) -> regard.Attended:
        """The picked number of each row, and the attention."""
        keys = numbers.unsqueeze(-1)
        query = keys.new_zeros(len(numbers), 1, 1)
        return regard.attend(query, keys, score=lambda _, key: self.score(key).mT, align=align.softmax, weights=True)

    def costs(self, inputs: Sequence[Any]) -> list[int]:
        return [len(numbers_of(each)) for each in inputs]

    pick = System.predict

    @classmethod
    def is_one(cls, given: Any) -> bool:
        return isinstance(given, str) or isinstance(given[0], int | float)

    def predict_batch(self, inputs: Sequence[Any], options: PickOptions) -> list[Pick]:
        results = []
        for numbers in map(numbers_of, inputs):
            context, weights = self(torch.tensor([numbers], device=self.device))
            trace = regard.Trace.from_weights([str(number) for number in numbers], ["largest"], weights[0].cpu())
            results.append(Pick(round(float(context), options.digits), self.units[0], trace=trace))
        return results


def numbers_of(given: str | Sequence[float]) -> list[float]:
    """The numbers of an input."""
    try:
        return [float(number) for number in (given.split() if isinstance(given, str) else given)]
    except ValueError as error:
        raise OptionError(f"pick takes numbers; got {given!r:.80}.") from error
