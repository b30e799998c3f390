"""Whether attention to an image lies on the objects that each word refers to: metrics with gold regions, and a control.

Maps are (words, cells), as in a Trace; a gold mask of the same shape marks the cells that belong to each word.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from regard.errors import OptionError, ShapeError
from regard.metrics.attention import entropy, map_variation, nonnegative_array
from regard.metrics.intervals import Interval, bootstrap

Map = Float[np.ndarray, "_ _"]
Mask = Bool[np.ndarray, "_ _"]
Maps = Map | Sequence[Map]
"""One map, or the maps of a corpus, which may differ in size."""
Masks = Mask | Sequence[Mask]


@dataclass(frozen=True)
class MapScores:
    """Properties of attention maps that need no gold regions. If the maps hardly vary, they explain nothing."""

    variation: float
    """Base-2 Jensen-Shannon divergence between the maps of consecutive words, 0 to 1, averaged over captions."""
    entropy: float
    """Entropy of the maps in nats, averaged over words."""
    distinct_cells: float
    """Number of different strongest cells in a caption, averaged over captions."""
    captions: int
    """Number of captions measured."""


@dataclass(frozen=True)
class RegionScores:
    """How often words attend to their gold regions, with a control for maps that do so by chance."""

    pointing: float
    """Fraction of words with gold whose strongest cell is gold (Zhang et al. 2018)."""
    pointing_shuffled: float
    """`pointing` if the maps of each caption are permuted among its words at random."""
    correctness: float
    """Weight inside the gold cells, averaged over words with gold (Liu et al. 2017)."""
    correctness_shuffled: float
    """`correctness` if the maps of each caption are permuted among its words at random."""
    chance: float
    """Fraction of cells that are gold, averaged over words with gold: the score of attending at random."""
    words: int
    """Number of words with gold."""


@dataclass(frozen=True)
class PhraseMaps:
    """The maps of a caption, and its phrases whose regions are known."""

    weights: Map
    """(words, cells)."""
    words: Sequence[int]
    """The last word of each phrase, a row of `weights`."""
    covers: Map
    """(phrases, cells): the fraction of each cell that lies inside the boxes of a phrase."""


@dataclass(frozen=True)
class PhraseScores:
    """How often the last word of a phrase attends to what the phrase names, beside three controls.

    Intervals are 95 % bootstrap intervals over captions.
    """

    pointing: Interval
    """Fraction of phrases whose strongest cell lies inside their boxes, at least by half of its area."""
    mass: Interval
    """Weight inside the boxes; cells that lie inside in part count in part."""
    pointing_center: Interval
    """`pointing` of a model that always looks at the middle of the image."""
    mass_center: Interval
    """`mass` of a model that always looks at the middle of the image."""
    pointing_shuffled: float
    """`pointing` if every phrase has the map of a random word of its caption."""
    mass_shuffled: float
    """`mass` if every phrase has the map of a random word of its caption."""
    pointing_random: float
    """`pointing` of a random cell."""
    mass_random: float
    """`mass` of uniform weights."""
    phrases: int
    captions: int


def phrase_scores(captions: Sequence[PhraseMaps], grid: tuple[int, int]) -> PhraseScores:
    """Measure the attention of phrases against the boxes of what they name."""
    captions = [caption for caption in captions if len(caption.words)]
    if not captions:
        raise OptionError("No phrase has a box, so there is nothing to score.")
    middle = _middle(grid)
    counts = [len(caption.words) for caption in captions]

    def mean(values: Callable[[PhraseMaps], np.ndarray]) -> Interval:
        return bootstrap([float(values(caption).sum()) for caption in captions], counts)

    return PhraseScores(
        pointing=mean(lambda caption: _points(caption.weights[list(caption.words)], caption.covers)),
        mass=mean(lambda caption: (_shares(caption.weights[list(caption.words)]) * caption.covers).sum(-1)),
        pointing_center=mean(lambda caption: (caption.covers >= 0.5) @ middle),
        mass_center=mean(lambda caption: caption.covers @ middle),
        pointing_shuffled=mean(lambda caption: _pointed(caption).mean(-1)).mean,
        mass_shuffled=mean(lambda caption: (caption.covers @ _shares(caption.weights).T).mean(-1)).mean,
        pointing_random=mean(lambda caption: (caption.covers >= 0.5).mean(-1)).mean,
        mass_random=mean(lambda caption: caption.covers.mean(-1)).mean,
        phrases=sum(counts),
        captions=len(captions),
    )


def _points(weights: Map, covers: Map) -> np.ndarray:
    """Whether the strongest cell of each row is covered at least by half; a row of zeros has none."""
    covered = np.take_along_axis(covers, weights.argmax(-1)[:, None], -1)[:, 0]
    return np.asarray(weights.any(-1) & (covered >= 0.5))


def _pointed(caption: PhraseMaps) -> np.ndarray:
    """(phrases, words): whether the strongest cell of each word is covered by the boxes of each phrase."""
    return np.asarray(caption.weights.any(-1) & (caption.covers[:, caption.weights.argmax(-1)] >= 0.5))


def _shares(weights: Map) -> np.ndarray:
    """Weights that sum to 1, where a model did not attend to the image alone."""
    return np.asarray(weights / np.maximum(weights.sum(-1, keepdims=True), 1e-12))


def _middle(grid: tuple[int, int]) -> np.ndarray:
    """Weights on the middle cell, or evenly on the middle cells where a side is even."""
    sides = []
    for size in grid:
        side = np.zeros(size)
        side[[(size - 1) // 2, size // 2]] = 1
        sides.append(side / side.sum())
    return np.asarray(np.outer(*sides).reshape(-1))


def map_scores(weights: Sequence[Map]) -> MapScores:
    """Measure the maps of a corpus, (words, cells) for each caption, without gold."""
    if not len(weights):
        raise OptionError("map_scores needs the maps of at least one caption; got none.")
    return MapScores(
        variation=float(np.mean([map_variation(table) for table in weights])),
        entropy=float(np.mean(np.concatenate([entropy(table) for table in weights]))),
        distinct_cells=float(np.mean([distinct_cells(table) for table in weights])),
        captions=len(weights),
    )


def pointing_game(weights: Maps, gold: Masks) -> float:
    """Fraction of rows whose largest weight lies inside the gold mask (Zhang et al. 2018, section 4.2).

    Rows without gold are left out; a row of zeros counts as a miss. Several maps are scored as one corpus.
    """
    return float(np.mean([row.any() and mask[row.argmax()] for row, mask in _rows_with_gold(weights, gold)]))


def attention_correctness(weights: Maps, gold: Masks) -> float:
    """Mean weight inside the gold mask, over the rows that have gold (Liu et al. 2017, section 4.1).

    Weights are not normalized: a row that sums to less than 1 scores less. Several maps are scored as one corpus.
    """
    return float(np.mean([row[mask].sum() for row, mask in _rows_with_gold(weights, gold)]))


def _rows_with_gold(weights: Maps, gold: Masks) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the rows that have gold, each with its mask."""
    maps = [weights] if isinstance(weights, np.ndarray) else list(weights)
    masks = [gold] if isinstance(gold, np.ndarray) else list(gold)
    if [np.shape(table) for table in maps] != [np.shape(mask) for mask in masks]:
        raise ShapeError(
            f"Each map needs a gold mask of its own shape; got maps {[np.shape(table) for table in maps][:5]} and "
            f"masks {[np.shape(mask) for mask in masks][:5]}."
        )
    rows = [
        (row, inside)
        for table, mask in zip(maps, masks, strict=True)
        for row, inside in zip(nonnegative_array(table), np.asarray(mask, dtype=bool), strict=True)
        if inside.any()
    ]
    if not rows:
        raise OptionError("No row has gold, so there is nothing to score: the masks are False everywhere.")
    return rows


def region_scores(weights: Sequence[Map], gold: Sequence[Mask]) -> RegionScores:
    """Compute the pointing game and attention correctness of a corpus of captions, with their shuffled controls."""
    rows = [row for mask in gold for row in np.asarray(mask) if row.any()]
    return RegionScores(
        pointing=pointing_game(weights, gold),
        pointing_shuffled=shuffled(pointing_game, weights, gold),
        correctness=attention_correctness(weights, gold),
        correctness_shuffled=shuffled(attention_correctness, weights, gold),
        chance=float(np.mean([row.mean() for row in rows])),
        words=len(rows),
    )


def shuffled(metric: Callable[[Map, Mask], float], weights: Sequence[Map], gold: Sequence[Mask]) -> float:
    """Compute the expectation of a metric if maps are permuted at random among the words with gold of their caption.

    It is exact, not sampled: the mean over all permutations equals the mean over all pairs of a map and a word. A
    caption with one such word keeps its map. The remaining score comes from words that share a region, and from maps
    that attend to likely places of any image; a correct model scores far above it.
    """
    scores, words = 0.0, 0
    for table, mask in zip(weights, gold, strict=True):
        has_gold = np.asarray(mask).any(-1)
        if number := int(has_gold.sum()):
            maps, regions = np.asarray(table)[has_gold], np.asarray(mask)[has_gold]
            scores += number * metric(np.repeat(maps, number, 0), np.tile(regions, (number, 1)))
            words += number
    if not words:
        raise OptionError("No row has gold, so there is nothing to score: the masks are False everywhere.")
    return scores / words


def distinct_cells(weights: Map) -> int:
    """Count the different cells that are the strongest for some word; rows of zeros have none."""
    table = np.asarray(weights)
    return len(set(table.argmax(-1)[table.any(-1)].tolist()))
