"""Measures of attention: closed forms at prime sizes, and what they say of rows without attention or gold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy as scipy_entropy

from regard.errors import NonFiniteError, OptionError, ShapeError
from regard.metrics.attention import entropy, map_variation
from regard.metrics.regions import attention_correctness, pointing_game


def test_entropy_is_0_for_one_key_and_the_logarithm_for_a_uniform_row():
    rows = np.zeros((3, 7))
    rows[0, 2], rows[1], rows[2, :5] = 1, 1 / 7, 1 / 5
    np.testing.assert_allclose(entropy(rows), [0, np.log(7), np.log(5)])
    assert not np.signbit(entropy(rows)[0]), "0, not -0"


def test_a_row_of_zeros_has_entropy_0():
    assert entropy(np.zeros((2, 3, 5))).tolist() == [[0] * 3] * 2
    assert entropy(np.zeros(5)).shape == ()


def test_entropy_is_that_of_scipy(rng):
    weights = rng.dirichlet(np.full(13, 0.3), size=(5, 3))
    np.testing.assert_allclose(entropy(weights), scipy_entropy(weights, axis=-1))
    np.testing.assert_allclose(entropy(weights * 3), entropy(weights), err_msg="only shares count")
    np.testing.assert_allclose(entropy(weights.astype(np.float32)), entropy(weights), rtol=1e-5)


def test_variation_is_0_for_constant_and_1_for_disjoint_rows():
    assert map_variation(np.tile([0.5, 0.3, 0.2], (5, 1))) == pytest.approx(0, abs=1e-12)
    assert map_variation(np.eye(7)) == pytest.approx(1)
    # Half of the weight stays: JS = 1/2.
    assert map_variation(np.array([[0.5, 0.5, 0], [0, 0.5, 0.5]])) == pytest.approx(0.5)


def test_variation_is_the_mean_divergence_of_neighbours(rng):
    weights = rng.dirichlet(np.ones(11), size=7)
    expected = np.mean([jensenshannon(weights[t], weights[t + 1], base=2) ** 2 for t in range(6)])
    assert map_variation(weights) == pytest.approx(expected)


def test_variation_leaves_out_rows_that_attend_to_nothing():
    rows = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    assert map_variation(rows) == 1
    assert map_variation(rows[:2]) == map_variation(rows[:1]) == map_variation(np.zeros((0, 2))) == 0


@given(st.lists(st.lists(st.floats(0, 1e6), min_size=3, max_size=3), min_size=2, max_size=5))
def test_measures_stay_in_their_bounds(rows):
    weights = np.array(rows)
    assert 0 <= map_variation(weights) <= 1
    assert (entropy(weights) >= -1e-12).all()
    assert (entropy(weights) <= np.log(3) + 1e-9).all()


WEIGHTS = np.array([[0.7, 0.2, 0.1], [0.4, 0.5, 0.1], [0.3, 0.3, 0.4], [0.0, 0.0, 0.0], [0.1, 0.1, 0.8]])
GOLD = np.array([[1, 0, 0], [1, 0, 1], [0, 1, 1], [0, 1, 0], [0, 0, 0]], dtype=bool)


def test_pointing_and_mass_by_hand():
    assert pointing_game(WEIGHTS, GOLD) == 2 / 4, "hit, miss, hit, miss; the last has no gold"
    assert attention_correctness(WEIGHTS, GOLD) == pytest.approx((0.7 + 0.5 + 0.7 + 0) / 4)


def test_a_corpus_is_scored_over_all_its_rows():
    parts = [WEIGHTS[:1], WEIGHTS[1:, :]], [GOLD[:1], GOLD[1:, :]]
    assert pointing_game(*parts) == pointing_game(WEIGHTS, GOLD)
    assert attention_correctness(*parts) == pytest.approx(attention_correctness(WEIGHTS, GOLD))
    wider = [WEIGHTS, np.ones((1, 7))], [GOLD, np.eye(7, dtype=bool)[:1]]
    assert pointing_game(*wider) == 3 / 5


def test_uniform_attention_scores_the_size_of_its_gold():
    gold = np.zeros((5, 11), dtype=bool)
    gold[:, 3:6] = True
    assert attention_correctness(np.full((5, 11), 1 / 11), gold) == pytest.approx(3 / 11)


def test_invalid_weights_are_explained():
    with pytest.raises(OptionError, match="No row has gold"):
        pointing_game(WEIGHTS, np.zeros_like(GOLD))
    with pytest.raises(ShapeError, match=r"maps \[\(5, 3\)\] and masks \[\(4, 3\)\]"):
        attention_correctness(WEIGHTS, GOLD[:4])
    with pytest.raises(OptionError, match=r"smallest weight is -0\.5"):
        entropy(np.array([1.5, -0.5]))
    with pytest.raises(NonFiniteError, match="NaN"):
        map_variation(np.full((2, 3), np.nan))


@pytest.mark.usefixtures("as_a_user")
def test_a_map_of_another_shape_is_refused():
    with pytest.raises(ShapeError, match=r"got shape \(3,\)"):
        map_variation(np.ones(3))
