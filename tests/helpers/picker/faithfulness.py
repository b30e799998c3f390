"""Whether the attention of a picker explains what it picks: it is asked again without each number."""

import numpy as np

from helpers.picker.config import PickOptions
from helpers.picker.inspection import without
from helpers.picker.model import Pick, Picker
from regard.systems.faithfulness import Ablation, Evidence


def evidence(model: Picker, numbers: list[float], options: PickOptions, result: Pick) -> Evidence:
    weights = result.trace.weights
    drops = [[result.value - without(model, numbers, index).value for index in range(len(numbers))]]
    ablation = Ablation.from_effects([weights], [np.array(drops)], unit=result.unit, method="Leave each number out.")
    return Evidence([weights], "numbers", ablation)
