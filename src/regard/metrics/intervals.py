"""Confidence intervals of means."""

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


def clustered_mean(sums: Sequence[float], counts: Sequence[int], *, samples: int = 1000, seed: int = 0) -> Interval:
    """The mean of values that come in groups, such as the words of a sentence, of which only the sums are needed.

    Values of a group are not independent, so whole groups are drawn with replacement.
    """
    totals, numbers = np.asarray(sums, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    if totals.shape != numbers.shape or totals.ndim != 1:
        raise ShapeError(f"Each group needs its sum and its count; got shapes {totals.shape} and {numbers.shape}.")
    if not len(totals) or not numbers.sum():
        raise OptionError("There are no values to average.")
    drawn = np.random.default_rng(seed).multinomial(len(totals), np.full(len(totals), 1 / len(totals)), size=samples)
    means = (drawn @ totals) / np.maximum(drawn @ numbers, 1)
    low, high = np.quantile(means, (0.025, 0.975))
    return Interval(float(totals.sum() / numbers.sum()), float(low), float(high))
