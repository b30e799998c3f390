"""Intervals of means over groups."""

import numpy as np
import pytest

from regard.errors import OptionError, ShapeError
from regard.metrics.intervals import clustered_mean


def test_the_mean_is_over_values_and_not_over_groups():
    assert clustered_mean([3.0, 0.0], [3, 1]).mean == 0.75


def test_the_interval_covers_the_true_mean_about_as_often_as_it_says():
    random = np.random.default_rng(0)
    hits = 0
    for _ in range(200):
        groups = random.normal(1.0, 1.0, 60)  # all values of a group are the same
        found = clustered_mean((groups * 5).tolist(), [5] * 60, samples=300)
        hits += found.low <= 1.0 <= found.high
    assert 172 <= hits <= 198, "95 % of 200 are 190; with few groups, bootstrap intervals are a little short."


def test_equal_groups_have_no_spread():
    found = clustered_mean([2.0] * 10, [4] * 10)
    assert found.low == found.mean == found.high == 0.5


def test_nothing_to_average_is_refused():
    with pytest.raises(OptionError, match="no values"):
        clustered_mean([], [])
    with pytest.raises(ShapeError, match="sum and its count"):
        clustered_mean([1.0], [1, 2])
