"""Picker: a score of each number, a softmax over them, and the weighted average of the numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

import regard
from helpers.picker.config import PickerConfig, PickOptions
from regard.attention import align
from regard.systems.folder import Labels
from regard.systems.predictor import Result
from regard.systems.system import System


@dataclass(frozen=True)
class Pick(Result):
    """The number that was picked."""

    value: float
    unit: str

    @property
    def text(self) -> str:
        """The number with its unit."""
        return f"{self.value} {self.unit}"


class Picker(System[list[float], Pick, PickOptions]):
    """Picks the largest of some numbers."""

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
        return [len(numbers) for numbers in inputs]

    pick = System.predict

    @classmethod
    def is_one(cls, given: Any) -> bool:
        return not isinstance(given[0], list | tuple)

    def parse(self, line: str, options: PickOptions) -> list[float] | None:
        return [float(number) for number in line.split()] or None

    def read_arguments(self, given: Sequence[str], *others: Any) -> list[Any] | None:
        return super().read_arguments([" ".join(given)] if given else [], *others)

    def predict_batch(self, inputs: Sequence[Sequence[float]], options: PickOptions) -> list[Pick]:
        results = []
        for numbers in inputs:
            context, weights = self(torch.tensor([list(numbers)], device=self.device))
            trace = regard.Trace.from_weights([str(number) for number in numbers], ["largest"], weights[0].cpu())
            results.append(Pick(round(float(context), options.digits), self.units[0], trace=trace))
        return results
