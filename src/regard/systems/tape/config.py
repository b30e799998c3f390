"""The options of `tape`, and what a model is evaluated on."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from regard.config import Checked, Count, PositiveInt


@dataclass(frozen=True)
class TapeOptions(Checked):
    """Options of `tape`."""

    repeats: PositiveInt | None = None
    """repeat-copy: how many times to copy the sequence, by default 2."""
    query: PositiveInt | None = None
    """recall: which item is shown again, counted from 1 (the default); the answer is the item after it."""
    slots: Count = 0
    """Slots of the memory; 0 for as many as in training. A machine can use more than it was trained with."""
    traces: bool = True
    """Whether to report how the heads moved and what the memory holds."""


@dataclass(frozen=True)
class TapeTest(Checked):
    """What a memory machine is evaluated on: fresh tapes of its task."""

    count: PositiveInt = 1000
    """Number of tapes of the lengths that it was trained on, all lengths alike."""
    lengths: tuple[Count, ...] = ()
    """Further lengths; by default one, two, three and six times the longest of the training, as far as the slots of
    the memory suffice."""
    per_length: PositiveInt = 200
    """Number of tapes of each further length."""
    slots: Count = 0
    """Slots of the memory; 0 for as many as in training."""
    seed: Annotated[int, Meta(ge=0, le=2**32 - 1)] = 1
    """Seed of the tapes; training and validation use others."""
