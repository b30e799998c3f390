"""Whether the attention of a picker explains what it picks: it is asked again without each number."""

from collections.abc import Sequence

import numpy as np

from helpers.picker.config import PickOptions
from helpers.picker.model import Pick, Picker, numbers_of
from regard.systems.faithfulness import Ablation, Evidence


def evidence(model: Picker, given: str | Sequence[float], options: PickOptions, result: Pick) -> Evidence:
    numbers, weights = numbers_of(given), result.trace.weights
    without = [[other for place, other in enumerate(numbers) if place != left_out] for left_out in range(len(numbers))]
    drops = np.array([[result.value - one.value for one in model.answer(without, options)]])
    ablation = Ablation.from_effects([weights], [drops], unit=result.unit, method="Each number is left out once.")
    return Evidence([weights], "numbers", ablation)
