"""Whether importance scores explain a model: erasing words, shuffling attention, and agreement with other scores.

A `Predictor` is any function (tokens, masks) -> probabilities, so that any model can be measured: `masks` is (m, n),
True where a token is kept, and the result is (m, classes). All measures are about the class that the model predicts for
the whole input.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from regard.errors import OptionError, ShapeError
from regard.metrics.attention import finite_array

Predictor = Callable[[Sequence[str], Bool[np.ndarray, "m n"]], Float[np.ndarray, "m y"]]
Scores = Float[np.ndarray, "n"]

FRACTIONS = (0.01, 0.05, 0.10, 0.20, 0.50)
"""Shares of the tokens that are erased or kept (DeYoung et al. 2020, section 4)."""


@dataclass(frozen=True)
class Erasure:
    """What erasing words does to the probability of the predicted class, averaged over FRACTIONS (AOPC)."""

    comprehensiveness: float
    """Drop of the probability when the most important tokens are erased: higher means that they were needed."""
    sufficiency: float
    """Drop of the probability when only the most important tokens are kept: lower means that they are enough."""
    random_comprehensiveness: float
    """Comprehensiveness of tokens chosen at random: the baseline of any explanation."""
    random_sufficiency: float
    """Sufficiency of tokens chosen at random."""


def top_mask(scores: Scores, fraction: float) -> Bool[np.ndarray, "n"]:
    """The most important tokens: this share of all, rounded up, at least one; ties go to the earlier token."""
    if not 0 < fraction <= 1:
        raise OptionError(f"fraction must be above 0 and at most 1; got {fraction}.")
    scores = _vector(scores)
    count = min(len(scores), max(1, int(np.ceil(fraction * len(scores) - 1e-9))))
    mask = np.zeros(len(scores), dtype=bool)
    mask[np.argsort(-scores, kind="stable")[:count]] = True
    return mask


def erasure(
    predict: Predictor,
    tokens: Sequence[str],
    scores: Scores,
    *,
    fractions: Sequence[float] = FRACTIONS,
    draws: int = 5,
    seed: int = 0,
) -> Erasure:
    """Comprehensiveness and sufficiency (DeYoung et al. 2020, section 4) of scores and of `draws` random orders."""
    scores = _vector(scores, len(tokens))
    random = np.random.default_rng(seed)
    orders = [scores, *(random.permutation(len(tokens)).astype(np.float64) for _ in range(draws))]
    tops = [top_mask(order, fraction) for order in orders for fraction in fractions]
    whole = np.ones(len(tokens), dtype=bool)
    masks = np.stack([whole, *(~top for top in tops), *tops])
    probabilities = np.asarray(predict(tokens, masks))
    best = int(probabilities[0].argmax())
    drops = probabilities[0, best] - probabilities[1:, best]
    erased, kept = (part.reshape(len(orders), len(fractions)).mean(1) for part in np.split(drops, 2))
    others = slice(1, None) if draws else slice(0, 1)
    return Erasure(float(erased[0]), float(kept[0]), float(erased[others].mean()), float(kept[others].mean()))


def leave_one_out(predict: Predictor, tokens: Sequence[str]) -> Scores:
    """The drop of the predicted class's probability when each token alone is erased."""
    if len(tokens) < 2:
        return np.zeros(len(tokens))
    masks = np.concatenate([np.ones((1, len(tokens)), dtype=bool), ~np.eye(len(tokens), dtype=bool)])
    probabilities = np.asarray(predict(tokens, masks))
    best = int(probabilities[0].argmax())
    return np.asarray(probabilities[0, best] - probabilities[1:, best], dtype=np.float64)


def attended_effect(
    weights: Sequence[Float[np.ndarray, "_ _"]], effects: Sequence[Float[np.ndarray, "_ _"]]
) -> tuple[float, float] | None:
    """The mean effect of the most attended part of each output, and that of a part chosen at random.

    `effects[t, i]` is what happens to output t without part i, NaN where part i cannot be erased. Rows that attend to
    nothing, or for which no part can be erased, are left out; None where no row is left. The second number is the exact
    expectation over all parts, so that it needs no draws.
    """
    attended, random = [], []
    for table, changes in zip(weights, effects, strict=True):
        if np.shape(table) != np.shape(changes):
            raise ShapeError(
                f"Each weight needs its effect; got {np.shape(table)} weights, {np.shape(changes)} effects."
            )
        for row, change in zip(np.asarray(table, dtype=np.float64), np.asarray(changes, np.float64), strict=True):
            possible = np.flatnonzero(~np.isnan(change))
            if len(possible) and row[possible].any():
                attended.append(change[possible[row[possible].argmax()]])
                random.append(change[possible].mean())
    return (float(np.mean(attended)), float(np.mean(random))) if attended else None


def permutation_test(
    predict: Callable[[Float[np.ndarray, "m n"]], Float[np.ndarray, "m y"]],
    weights: Scores,
    groups: Int[np.ndarray, "n"] | None = None,
    *,
    shuffles: int = 100,
    seed: int = 0,
) -> float:
    """The median change of the output when the attention weights are shuffled (Jain and Wallace 2019, section 4.2.1).

    `predict` gives the probabilities (m, classes) under m rows of weights. Weights are shuffled within their group, as
    within a sentence. The change is the total variation distance, from 0 to 1; near 0, where the model attends hardly
    matters for what it predicts.
    """
    if shuffles < 1:
        raise OptionError(f"shuffles must be at least 1; got {shuffles}.")
    weights = _vector(weights)
    groups = np.zeros(len(weights), dtype=int) if groups is None else np.asarray(groups)
    random = np.random.default_rng(seed)
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    rows = np.repeat(weights[None], shuffles + 1, axis=0)
    for row in rows[1:]:
        for group in members:
            row[group] = row[random.permutation(group)]
    probabilities = np.asarray(predict(rows), dtype=np.float64)
    return float(np.median(np.abs(probabilities[1:] - probabilities[0]).sum(1) / 2))


def kendall_tau(first: Scores, second: Scores) -> float:
    """Kendall's tau-b of two rankings, from -1 (reversed) to 1 (the same); 0 where one of them is constant."""
    first, second = _vector(first), _vector(second, len(_vector(first)))
    upper = np.triu_indices(len(first), 1)
    signs = [np.sign(each[:, None] - each[None, :])[upper] for each in (first, second)]
    scale = np.sqrt(np.abs(signs[0]).sum() * np.abs(signs[1]).sum())
    return float((signs[0] * signs[1]).sum() / scale) if scale else 0.0


@dataclass(frozen=True)
class Agreement:
    """How far scores agree with the words that people marked, in one document."""

    token_f1: float
    """F1 of the tokens chosen by the scores: as many as people marked."""
    iou_precision: float
    """Share of the chosen spans that match a marked one: two spans match if they share at least half of their union."""
    iou_recall: float
    """Share of the marked spans that match a chosen one."""
    auprc: float
    """Area under the precision-recall curve of the scores, with straight lines between its points, as in ERASER."""
    average_precision: float
    """Area under the precision-recall curve as a sum of steps, which does not reward chance."""

    @property
    def iou_f1(self) -> float:
        """F1 of the spans of this document. ERASER's of a corpus is `f1` of the mean precision and recall instead."""
        return f1(self.iou_precision, self.iou_recall)


def agreement(scores: Scores, gold: Bool[np.ndarray, "n"]) -> Agreement:
    """Compare scores with marked tokens; at least one token must be marked."""
    gold = np.asarray(gold, dtype=bool)
    scores = _vector(scores, len(gold))
    if not gold.any():
        raise OptionError("Scores can be compared with a rationale only where at least one token is marked.")
    chosen = top_mask(scores, gold.sum() / len(gold))
    iou = iou_scores(spans(chosen), spans(gold))
    return Agreement(token_f1(chosen, gold), *iou, auprc(scores, gold), average_precision(scores, gold))


def f1(precision: float, recall: float) -> float:
    """The harmonic mean of precision and recall; 0 where both are."""
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def token_f1(predicted: Bool[np.ndarray, "n"], gold: Bool[np.ndarray, "n"]) -> float:
    """F1 of the predicted tokens; 0 where none is right."""
    both = int((np.asarray(predicted) & np.asarray(gold)).sum())
    total = int(np.sum(predicted)) + int(np.sum(gold))
    return 2 * both / total if total else 0.0


def spans(mask: Bool[np.ndarray, "n"]) -> list[tuple[int, int]]:
    """Runs of marked tokens, as [start, end)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], np.asarray(mask, dtype=int), [0]])))
    return [(int(start), int(end)) for start, end in edges.reshape(-1, 2)]


def iou_scores(
    predicted: Sequence[tuple[int, int]], gold: Sequence[tuple[int, int]], *, threshold: float = 0.5
) -> tuple[float, float]:
    """Precision and recall of spans, which match if intersection over union is at least `threshold`.

    The IoU F1 of a corpus in DeYoung et al. 2020, section 4.1, is the F1 of the two means over all documents.
    """
    if not predicted or not gold:
        return 0.0, 0.0
    overlap = np.array([[_iou(span, marked) for marked in gold] for span in predicted]) >= threshold
    return float(overlap.any(1).mean()), float(overlap.any(0).mean())


def auprc(scores: Scores, gold: Bool[np.ndarray, "n"]) -> float:
    """Area under the precision-recall curve by the trapezoidal rule from (recall 0, precision 1) on, as in ERASER.

    Davis and Goadrich 2006 show that straight lines between the points of this curve are too optimistic.
    """
    precision, recall = _precision_recall(scores, gold)
    heights = np.concatenate([[1.0], precision])
    return float((np.diff(recall, prepend=0.0) * (heights[1:] + heights[:-1]) / 2).sum())


def average_precision(scores: Scores, gold: Bool[np.ndarray, "n"]) -> float:
    """The sum of precision x gain in recall over the precision-recall curve."""
    precision, recall = _precision_recall(scores, gold)
    return float((np.diff(recall, prepend=0.0) * precision).sum())


def _precision_recall(
    scores: Scores, gold: Bool[np.ndarray, "n"]
) -> tuple[Float[np.ndarray, "k"], Float[np.ndarray, "k"]]:
    """Precision and recall if the k highest scores are chosen, for every k; tied scores are chosen together."""
    scores, gold = _vector(scores), np.asarray(gold, dtype=bool)
    order = np.argsort(-scores, kind="stable")
    last_of_tie = np.append(np.diff(scores[order]) != 0, True)
    hits, counts = np.cumsum(gold[order])[last_of_tie], np.flatnonzero(last_of_tie) + 1
    return hits / counts, hits / max(1, gold.sum())


def _iou(first: tuple[int, int], second: tuple[int, int]) -> float:
    shared = max(0, min(first[1], second[1]) - max(first[0], second[0]))
    return shared / ((first[1] - first[0]) + (second[1] - second[0]) - shared)


def _vector(scores: Scores, length: int | None = None) -> Scores:
    needed = "one score per token" if length is None else f"{length} scores, one per token"
    vector = finite_array(scores, needed, axes=1, length=length)
    if not len(vector):
        raise ShapeError(f"There must be {needed}; got none.")
    return vector
