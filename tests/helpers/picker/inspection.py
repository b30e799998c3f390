"""What if: the numbers without one of them."""

from dataclasses import dataclass

from helpers.picker.model import Picker
from regard.systems.endpoint import endpoint


@dataclass(frozen=True)
class Without:
    """What is picked where one number is missing."""

    value: float


@endpoint("without", input="numbers", example={"numbers": [1.0, 3.0, 2.0]})
def without(model: Picker, numbers: list[float], index: int = 0) -> Without:
    """Pick the largest number without one of them."""
    return Without(model.pick(numbers[:index] + numbers[index + 1 :]).value)
