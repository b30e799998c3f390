"""The settings of a picker: its parts, options, data, training and test set."""

from dataclasses import dataclass

from regard.config import Checked, PositiveInt
from regard.systems.config import Options
from regard.training.settings import TrainSettings


@dataclass(frozen=True)
class PickerConfig(Checked):
    """The parts of a picker."""

    hidden: PositiveInt = 8
    """Units of the score."""


@dataclass(frozen=True)
class PickOptions(Options):
    """Options of `pick`."""

    digits: PositiveInt = 2
    """Digits after the point."""


@dataclass(frozen=True)
class PickerData(Checked):
    """Which numbers to learn from."""

    examples: PositiveInt = 256
    """How many lists of numbers."""
    unit: str = "metres"
    """What the numbers count."""


@dataclass(frozen=True)
class PickerTrain(TrainSettings):
    """How to train a picker."""

    batch_size: PositiveInt = 32
    """Lists in a batch."""


@dataclass(frozen=True)
class PickTest(Checked):
    """What a picker is evaluated on."""

    count: PositiveInt = 100
    """How many lists of numbers."""
