"""Attention to images against gold regions: by hand, and far above its shuffled control if it is correct."""

from itertools import permutations

import numpy as np
import pytest

from regard.errors import OptionError
from regard.metrics.regions import (
    PhraseMaps,
    attention_correctness,
    distinct_cells,
    map_scores,
    phrase_scores,
    pointing_game,
    region_scores,
    shuffled,
)

# Five words over seven cells; the first word, an article, has no gold, and the last two share a region.
GOLD = np.zeros((5, 7), dtype=bool)
GOLD[1, :2] = GOLD[2, 2:4] = GOLD[3, 4:] = GOLD[4, 4:] = True
RIGHT = np.array(
    [[0, 0, 0, 0, 0, 0, 1.0], [1, 0, 0, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 0, 0], [0] * 6 + [1]]
)


def test_the_control_is_the_mean_over_all_permutations_of_the_maps(rng):
    weights = rng.dirichlet(np.ones(7), size=5)
    for measure in (pointing_game, attention_correctness):
        dealt = [measure(weights[[0, *order]], GOLD) for order in permutations(range(1, 5))]
        assert shuffled(measure, [weights], [GOLD]) == pytest.approx(np.mean(dealt))


def test_correct_maps_score_1_and_shuffled_ones_what_shared_regions_give():
    scores = region_scores([RIGHT, RIGHT], [GOLD, GOLD])
    assert scores.pointing == scores.correctness == 1
    # Of the 16 pairs of a map and a word, 1 + 1 + 4 belong together.
    assert scores.pointing_shuffled == scores.correctness_shuffled == pytest.approx(6 / 16)
    assert scores.chance == pytest.approx((2 + 2 + 3 + 3) / 4 / 7)
    assert scores.words == 8


def test_constant_maps_score_as_much_as_their_control():
    still = np.tile(RIGHT[1], (5, 1))
    scores = region_scores([still], [GOLD])
    assert scores.pointing == scores.pointing_shuffled == 1 / 4
    moved = map_scores([still])
    assert (moved.variation, moved.entropy, moved.distinct_cells, moved.captions) == (0, 0, 1, 1)


def test_captions_of_several_lengths_are_one_corpus(rng):
    maps = [rng.dirichlet(np.ones(7), size=5), RIGHT[1:3], RIGHT[:1]]
    masks = [GOLD, GOLD[1:3], GOLD[:1]]
    scores = region_scores(maps, masks)
    assert scores.words == 6
    assert scores.pointing == pointing_game(maps, masks)
    parts = [shuffled(pointing_game, maps[n : n + 1], masks[n : n + 1]) for n in (0, 1)]
    assert scores.pointing_shuffled == pytest.approx((4 * parts[0] + 2 * parts[1]) / 6)


def test_moving_maps_vary_and_have_many_strongest_cells():
    scores = map_scores([RIGHT, np.eye(3)])
    assert scores.variation == pytest.approx(1)
    assert scores.distinct_cells == (4 + 3) / 2
    assert map_scores([np.full((4, 7), 1 / 7)]).entropy == pytest.approx(np.log(7))


def test_a_word_that_attends_to_nothing_has_no_strongest_cell():
    assert distinct_cells(np.array([[0.0, 0, 0], [0, 1, 0]])) == 1
    assert distinct_cells(np.zeros((2, 3))) == 0


def test_invalid_maps_are_explained():
    with pytest.raises(OptionError, match="at least one caption"):
        map_scores([])
    with pytest.raises(OptionError, match="No row has gold"):
        region_scores([RIGHT], [np.zeros_like(GOLD)])
    with pytest.raises(OptionError, match="No row has gold"):
        shuffled(pointing_game, [], [])


def test_phrases_are_scored_by_their_last_word_beside_the_controls():
    grid = (1, 4)
    weights = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 0.1, 0.9, 0.0], [0.25, 0.25, 0.25, 0.25]])
    covers = np.array([[0.0, 0.0, 1.0, 0.4]])
    found = phrase_scores([PhraseMaps(weights, [1], covers)], grid)
    assert found.pointing.mean == 1
    assert found.mass.mean == pytest.approx(0.9)
    assert found.pointing_random == 0.25, "A cell that is covered by less than a half is not inside."
    assert found.mass_random == pytest.approx(1.4 / 4)
    assert found.pointing_center.mean == 0.5, "Two cells are the middle of four."
    assert found.pointing_shuffled == pytest.approx(1 / 3), "Only one of the three words points there."
    assert found.mass_shuffled == pytest.approx((0 + 0.9 + 0.35) / 3)
    assert (found.phrases, found.captions) == (1, 1)


def test_weights_of_a_word_that_attends_to_more_than_the_image_are_shares_of_what_the_image_got():
    weights, covers = np.array([[0.1, 0.3]]), np.array([[0.0, 1.0]])
    assert phrase_scores([PhraseMaps(weights, [0], covers)], (1, 2)).mass.mean == pytest.approx(0.75)


def test_a_word_that_attends_to_nothing_points_nowhere():
    weights, covers = np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([[1.0, 0.0]])
    found = phrase_scores([PhraseMaps(weights, [0], covers)], (1, 2))
    assert found.pointing.mean == pointing_game(weights[:1], covers >= 0.5) == 0
    assert found.pointing_shuffled == 0.5


def test_without_phrases_there_is_nothing_to_score():
    with pytest.raises(OptionError, match="nothing to score"):
        phrase_scores([PhraseMaps(np.ones((2, 3)), [], np.zeros((0, 3)))], (1, 3))
