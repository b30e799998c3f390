"""Confidence intervals of means, by the bootstrap."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regard.errors import OptionError, ShapeError


@dataclass(frozen=True)
class Interval:
    """A mean with its 95 % bootstrap interval."""

    mean: float
    low: float
    high: float


def bootstrap(
    values: Sequence[float], counts: Sequence[int] | None = None, *, samples: int = 1000, seed: int = 0
) -> Interval:
    """The mean of some values, and the interval of the mean of as many drawn with replacement.

    With `counts`, each value is the sum of a group of so many, such as those of the words of a sentence. Values of a
    group are not independent, so whole groups are drawn.
    """
    totals = np.asarray(values, dtype=np.float64)
    numbers = np.ones_like(totals) if counts is None else np.asarray(counts, dtype=np.float64)
    if totals.shape != numbers.shape or totals.ndim != 1:
        raise ShapeError(f"Each group needs its sum and its count; got shapes {totals.shape} and {numbers.shape}.")
    if not numbers.sum():
        raise OptionError("There are no values to average.")
    drawn = np.random.default_rng(seed).multinomial(len(totals), np.full(len(totals), 1 / len(totals)), size=samples)
    means = (drawn @ totals) / np.maximum(drawn @ numbers, 1)
    low, high = np.quantile(means, (0.025, 0.975))
    return Interval(float(totals.sum() / numbers.sum()), float(low), float(high))
