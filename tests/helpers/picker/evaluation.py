"""How good a picker is: its mean error."""

import torch

from helpers.picker.config import PickTest
from helpers.picker.model import Picker
from regard.systems.report import Measure, Report


def evaluate(model: Picker, test_set: PickTest, *, name: str = "model") -> Report:
    numbers = torch.randn(test_set.count, 5, generator=torch.Generator().manual_seed(3)).tolist()
    errors = [abs(result.value - max(row)) for result, row in zip(model.pick(numbers), numbers, strict=True)]
    scores = {"mean error": Measure(sum(errors) / len(errors), "{:.3f}", model.units[0])}
    return Report(name, f"{len(numbers)} lists", scores)
