"""Faithfulness in closed form: models whose important words are known."""

import numpy as np
import pytest
from scipy.stats import kendalltau

from regard.errors import OptionError, ShapeError
from regard.metrics.faithfulness import (
    agreement,
    attended_effect,
    auprc,
    average_precision,
    erasure,
    f1,
    iou_scores,
    kendall_tau,
    leave_one_out,
    permutation_test,
    spans,
    token_f1,
    top_mask,
)

TOKENS = [f"word{number}" for number in range(10)]


def decided_by_third(tokens, masks):
    """Sure of class 1 if the third word is there, and undecided otherwise."""
    sure = np.where(masks[:, 2], 1.0, 0.5)
    return np.stack([1 - sure, sure], axis=1)


def additive(tokens, masks):
    """Each word that is kept adds a twentieth to class 0."""
    share = 0.5 + masks.sum(1) / 20
    return np.stack([share, 1 - share], axis=1)


def test_erasing_the_decisive_word_drops_the_probability_and_keeping_it_does_not():
    right = np.arange(10) == 2
    found = erasure(decided_by_third, TOKENS, right.astype(float), draws=200)
    assert found.comprehensiveness == pytest.approx(0.5)
    assert found.sufficiency == pytest.approx(0.0)
    # At random, k of 10 words hold the decisive one with probability k/10; k is 1, 1, 1, 2 and 5.
    share = np.mean([0.1, 0.1, 0.1, 0.2, 0.5])
    assert found.random_comprehensiveness == pytest.approx(0.5 * share, abs=0.03)
    assert found.random_sufficiency == pytest.approx(0.5 * (1 - share), abs=0.03)


def test_scores_that_miss_the_decisive_word_are_not_faithful():
    wrong = -(np.arange(10) == 2).astype(float)
    found = erasure(decided_by_third, TOKENS, wrong)
    assert found.comprehensiveness == 0
    assert found.sufficiency == pytest.approx(0.5)


def test_erasure_of_an_additive_model_is_the_number_of_erased_words():
    found = erasure(additive, TOKENS, np.arange(10.0), fractions=(0.2, 0.5), draws=3)
    assert found.comprehensiveness == pytest.approx((2 + 5) / 2 / 20)
    assert found.sufficiency == pytest.approx((8 + 5) / 2 / 20)
    assert found.random_comprehensiveness == pytest.approx(found.comprehensiveness)


def test_the_top_is_rounded_up_and_ties_go_to_the_earlier_word():
    assert top_mask(np.array([1.0, 3.0, 3.0, 2.0]), 0.25).tolist() == [False, True, False, False]
    assert top_mask(np.ones(100), 0.01).sum() == 1
    assert top_mask(np.ones(3), 0.5).sum() == 2
    with pytest.raises(OptionError, match="above 0"):
        top_mask(np.ones(3), 0.0)


def test_leaving_out_one_word_at_a_time():
    assert leave_one_out(decided_by_third, TOKENS).tolist() == [0.5 if index == 2 else 0 for index in range(10)]
    assert leave_one_out(additive, TOKENS) == pytest.approx(np.full(10, 0.05))
    assert leave_one_out(additive, ["one"]).tolist() == [0.0]


def test_shuffling_attention_changes_what_depends_on_it_and_nothing_else():
    def first_weight(rows):
        return np.stack([rows[:, 0], 1 - rows[:, 0]], axis=1)

    weights = np.array([1.0, 0.0, 0.0, 0.0, 0.0])
    assert permutation_test(first_weight, weights) == 1.0  # the peak moves away in four of five shuffles
    assert permutation_test(lambda rows: np.full((len(rows), 2), 0.5), weights) == 0.0
    # In a group of its own, a weight has nowhere to go.
    assert permutation_test(first_weight, weights, np.array([0, 1, 1, 1, 1])) == 0.0
    with pytest.raises(OptionError, match="shuffles must be at least 1; got 0"):
        permutation_test(first_weight, weights, shuffles=0)


@pytest.mark.parametrize("seed", range(3))
def test_kendalls_tau_is_that_of_scipy(seed):
    random = np.random.default_rng(seed)
    first, second = random.integers(0, 4, 23).astype(float), random.standard_normal(23)
    assert kendall_tau(first, second) == pytest.approx(kendalltau(first, second).statistic)
    assert kendall_tau(first, first) == pytest.approx(1.0)
    assert kendall_tau(second, -second) == pytest.approx(-1.0)
    assert kendall_tau(second, np.ones(23)) == 0.0


def test_token_and_span_f1_by_hand():
    gold = np.array([0, 1, 1, 1, 0, 0, 1, 0], dtype=bool)
    predicted = np.array([0, 1, 1, 0, 0, 1, 0, 0], dtype=bool)
    assert spans(gold) == [(1, 4), (6, 7)]
    assert spans(predicted) == [(1, 3), (5, 6)]
    assert token_f1(predicted, gold) == pytest.approx(2 * 2 / (3 + 4))
    assert iou_scores(spans(predicted), spans(gold)) == (0.5, 0.5)  # one span of two matches, on both sides
    assert iou_scores([], spans(gold)) == (0.0, 0.0)
    assert f1(0.5, 0.5) == pytest.approx(0.5)
    assert f1(0.0, 0.0) == 0.0
    assert token_f1(~gold, gold) == 0.0


def test_the_iou_f1_of_eraser_is_that_of_mean_precision_and_recall():
    """Its rationale benchmark averages precision and recall over documents; the mean of their F1 is another number."""
    documents = [([(0, 2)], [(0, 2)]), ([(0, 2), (4, 5), (6, 7)], [(0, 2)]), ([(0, 1)], [(3, 4)])]
    precisions, recalls = zip(*(iou_scores(predicted, gold) for predicted, gold in documents), strict=True)
    assert (precisions, recalls) == ((1, 1 / 3, 0), (1, 1, 0))
    assert f1(np.mean(precisions), np.mean(recalls)) == pytest.approx(2 * (4 / 9) * (2 / 3) / (4 / 9 + 2 / 3))
    assert np.mean([f1(*each) for each in zip(precisions, recalls, strict=True)]) == pytest.approx((1 + 1 / 2) / 3)


def test_auprc_is_the_trapezoid_from_recall_0_and_precision_1_and_not_average_precision():
    gold = np.array([True, False, True, False])
    scores = np.array([4.0, 3.0, 2.0, 1.0])
    assert auprc(scores, gold) == pytest.approx(0.5 * 1 + 0.5 * (1 / 2 + 2 / 3) / 2)
    assert average_precision(scores, gold) == pytest.approx(0.5 * 1 + 0.5 * 2 / 3)
    assert auprc(np.array([4.0, 1.0, 3.0, 2.0]), gold) == 1.0
    assert auprc(np.ones(4), gold) == 0.75  # without any ranking: halfway from 1 to the share of marked tokens


def test_average_precision_by_hand():
    gold = np.array([True, False, True, False])
    assert average_precision(np.array([4.0, 3.0, 2.0, 1.0]), gold) == pytest.approx((1 / 1 + 2 / 3) / 2)
    assert average_precision(np.array([4.0, 1.0, 3.0, 2.0]), gold) == 1.0
    assert average_precision(np.ones(4), gold) == 0.5  # without any ranking, the share of marked tokens


def test_agreement_is_perfect_for_scores_that_are_the_rationale(as_a_user):
    gold = np.array([0, 0, 1, 1, 0], dtype=bool)
    found = agreement(gold.astype(float), gold)
    assert (found.token_f1, found.iou_f1, found.auprc, found.average_precision) == (1.0, 1.0, 1.0, 1.0)
    with pytest.raises(OptionError, match="at least one token is marked"):
        agreement(np.ones(5), np.zeros(5, dtype=bool))
    with pytest.raises(ShapeError, match="5 scores"):
        agreement(np.ones(4), gold)


def test_the_effect_of_attended_parts_is_compared_with_that_of_any_part():
    weights = [np.array([[0.1, 0.7, 0.2], [0.0, 0.0, 0.0], [0.5, 0.2, 0.3]])]
    effects = [np.array([[1.0, 5.0, 0.0], [9.0, 9.0, 9.0], [np.nan, 2.0, 4.0]])]
    assert attended_effect(weights, effects) == ((5 + 4) / 2, (2 + 3) / 2)
    assert attended_effect([np.zeros((2, 3))], [np.ones((2, 3))]) is None
    with pytest.raises(ShapeError):
        attended_effect([np.ones((2, 3))], [np.ones((3, 2))])
