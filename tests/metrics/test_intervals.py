"""Intervals of means over groups."""

import numpy as np
import pytest

from regard.errors import OptionError, ShapeError
from regard.metrics.intervals import Interval, bootstrap


def test_the_mean_is_over_values_and_not_over_groups():
    assert bootstrap([3.0, 0.0], [3, 1]).mean == 0.75


def test_the_interval_covers_the_true_mean_about_as_often_as_it_says():
    random = np.random.default_rng(0)
    hits = 0
    for _ in range(200):
        groups = random.normal(1.0, 1.0, 60)  # all values of a group are the same
        found = bootstrap((groups * 5).tolist(), [5] * 60, samples=300)
        hits += found.low <= 1.0 <= found.high
    assert 172 <= hits <= 198, "95 % of 200 are 190; with few groups, bootstrap intervals are a little short."


def test_the_interval_holds_the_mean_and_shrinks_with_more_values():
    random = np.random.default_rng(1)
    few, many = (bootstrap(random.standard_normal(count).tolist()) for count in (20, 2000))
    assert few.low < few.mean < few.high
    assert many.high - many.low < (few.high - few.low) / 4
    assert many.high - many.low == pytest.approx(2 * 1.96 / np.sqrt(2000), rel=0.15)
    assert bootstrap([0.5, 0.5]) == Interval(0.5, 0.5, 0.5)


def test_equal_groups_have_no_spread():
    found = bootstrap([2.0] * 10, [4] * 10)
    assert found.low == found.mean == found.high == 0.5


def test_nothing_to_average_is_refused():
    with pytest.raises(OptionError, match="no values"):
        bootstrap([], [])
    with pytest.raises(ShapeError, match="sum and its count"):
        bootstrap([1.0], [1, 2])
