"""Links between words: error rate by hand, subwords merged, both directions combined."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from regard.errors import NonFiniteError, OptionError, ShapeError
from regard.metrics.alignment import (
    alignment_error_rate,
    diagonal,
    links_from_weights,
    merge_subwords,
    symmetrize,
)

LINKS = st.sets(st.tuples(st.integers(0, 6), st.integers(0, 4)))


def test_the_error_rate_by_hand():
    predicted = [{(0, 0), (1, 1), (2, 1)}, {(0, 0), (1, 2)}]
    sure = [{(0, 0), (1, 1)}, {(1, 1)}]
    possible = [{(2, 1), (0, 1)}, {(0, 0)}]
    scores = alignment_error_rate(predicted, sure, possible)
    # A = 5, S = 3, A&S = 2, A&P = 3 + 1 = 4, where P contains S.
    assert scores.error_rate == pytest.approx(1 - (2 + 4) / (5 + 3))
    assert scores.precision == 4 / 5
    assert scores.recall == 2 / 3
    assert (scores.predicted, scores.sure) == (5, 3)


@given(st.lists(st.tuples(LINKS, LINKS, LINKS), max_size=5))
def test_error_rates_are_shares_and_the_sure_links_have_none(triples):
    predicted, sure, possible = ([triple[k] for triple in triples] for k in range(3))
    scores = alignment_error_rate(predicted, sure, possible)
    assert 0 <= scores.error_rate <= 1
    assert 0 <= scores.precision <= 1
    assert 0 <= scores.recall <= 1
    assert alignment_error_rate(sure, sure, possible).error_rate == 0
    if not any(possible):
        f1 = 2 * scores.precision * scores.recall / ((scores.precision + scores.recall) or 1)
        assert (scores.predicted + scores.sure == 0) or scores.error_rate == pytest.approx(1 - f1)


def test_a_missing_sentence_is_counted():
    with pytest.raises(OptionError, match="2 predicted, 1 sure and 1 possible"):
        alignment_error_rate([set(), set()], [set()], [set()])


def test_pieces_of_a_source_word_are_summed_and_of_a_target_word_averaged():
    weights = np.array([[0.1, 0.2, 0.3, 0.4, 0.0], [0.5, 0.1, 0.1, 0.1, 0.2], [0.0, 0.0, 1.0, 0.0, 0.0]])
    merged = merge_subwords(weights, [0, 0, 1, 2, 2], [0, 0, 1])
    np.testing.assert_allclose(merged, [[0.45, 0.2, 0.35], [0.0, 1.0, 0.0]])


def test_merging_keeps_the_weight_of_each_row_and_leaves_out_what_is_no_word(rng):
    weights = rng.dirichlet(np.ones(11), size=7)
    source_words, target_words = [0, 0, 0, 1, 2, 2, 3, 4, 4, 4, 4], [0, 1, 1, 2, 2, 2, 3]
    merged = merge_subwords(weights, source_words, target_words)
    assert merged.shape == (4, 5)
    np.testing.assert_allclose(merged.sum(1), 1)
    np.testing.assert_allclose(merge_subwords(weights, list(range(11)), list(range(7))), weights)
    without_end = merge_subwords(weights, [*source_words[:7], -1, -1, -1, -1], [*target_words[:6], -1])
    np.testing.assert_allclose(without_end, merged[:3, :4])


def test_merging_needs_the_word_of_each_piece():
    with pytest.raises(ShapeError, match="weights 3 x 5, target_words of 5 and source_words of 3"):
        merge_subwords(np.ones((3, 5)), [0, 1, 2], [0, 1, 2, 3, 4])


def test_links_are_the_heaviest_or_the_heavy_ones():
    weights = np.array([[0.7, 0.2, 0.1], [0.4, 0.35, 0.25], [0.0, 0.0, 0.0], [0.1, 0.1, 0.8], [0.2, 0.2, 0.6]])
    assert links_from_weights(weights) == {(0, 0), (0, 1), (2, 3), (2, 4)}
    assert links_from_weights(weights, threshold=0.5) == {(0, 0), (2, 3), (2, 4)}
    assert links_from_weights(weights, "threshold", threshold=0.35) == {(0, 0), (0, 1), (1, 1), (2, 3), (2, 4)}
    assert links_from_weights(weights, "both") == {(0, 0), (2, 3)}
    assert links_from_weights(np.zeros((0, 3))) == set()


def test_equal_weights_link_the_first():
    assert links_from_weights(np.full((2, 3), 1 / 3)) == {(0, 0), (0, 1)}


def test_wrong_settings_of_links_are_explained():
    with pytest.raises(OptionError, match="argmax, threshold, both; got 'softmax'"):
        links_from_weights(np.ones((2, 3)), "softmax")
    with pytest.raises(OptionError, match=r"threshold=0\.2"):
        links_from_weights(np.ones((2, 3)), "threshold")
    with pytest.raises(NonFiniteError, match="NaN"):
        links_from_weights(np.full((2, 3), np.nan))
    with pytest.raises(OptionError, match="grow-diag-final-and; got 'grow'"):
        symmetrize({(0, 0)}, {(0, 0)}, "grow")


@pytest.mark.usefixtures("as_a_user")
def test_lists_and_tuples_serve_as_maps_and_other_shapes_are_refused():
    assert links_from_weights(((0.1, 0.9), (0.8, 0.2))) == {(1, 0), (0, 1)}
    with pytest.raises(ShapeError, match=r"got shape \(2, 3, 5\)"):
        links_from_weights(np.ones((2, 3, 5)))


def test_growing_adds_neighbours_of_words_without_a_link():
    forward, backward = {(0, 0), (1, 1), (2, 1), (4, 4), (6, 0)}, {(0, 0), (1, 1), (3, 2), (1, 0), (4, 5)}
    assert symmetrize(forward, backward, "intersection") == {(0, 0), (1, 1)}
    assert symmetrize(forward, backward, "union") == forward | backward
    # (2, 1) is next to (1, 1) and source 2 is free; then (3, 2) is next to (2, 1). (1, 0): both words are taken.
    # (4, 4), (4, 5) and (6, 0) touch nothing.
    assert symmetrize(forward, backward) == {(0, 0), (1, 1), (2, 1), (3, 2)}
    # Then (4, 4), whose words are both free; after it (4, 5) and (6, 0) have a word that is taken.
    assert symmetrize(forward, backward, "grow-diag-final-and") == symmetrize(forward, backward) | {(4, 4)}


@given(LINKS, LINKS)
@example({(0, 0), (1, 1), (2, 2), (1, 2)}, {(0, 0), (2, 2), (2, 1), (3, 1)})
def test_growing_scans_word_by_word_until_nothing_is_added(forward, backward):
    """The pseudo-code of Koehn's GROW-DIAG, word for word: English words are those of the target."""
    union, alignment = forward | backward, forward & backward
    added = True
    while added:
        added = False
        for e in range(5):
            for f in range(7):
                if (f, e) not in alignment:
                    continue
                for e_step, f_step in ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)):
                    e_new, f_new = e + e_step, f + f_step
                    aligned_e, aligned_f = {e for _, e in alignment}, {f for f, _ in alignment}
                    if (e_new not in aligned_e or f_new not in aligned_f) and (f_new, e_new) in union:
                        alignment.add((f_new, e_new))
                        added = True
    assert symmetrize(forward, backward) == alignment


@given(LINKS, LINKS)
def test_growing_stays_between_intersection_and_union(forward, backward):
    grown = symmetrize(forward, backward)
    assert forward & backward <= grown <= forward | backward
    assert grown == symmetrize(backward, forward)


def test_the_diagonal_links_each_target_word_once():
    assert diagonal(5, 5) == {(i, i) for i in range(5)}
    assert diagonal(2, 5) == {(0, 0), (0, 1), (1, 2), (1, 3), (1, 4)}
    assert diagonal(7, 3) == {(1, 0), (3, 1), (5, 2)}
    assert diagonal(0, 3) == diagonal(3, 0) == set()
