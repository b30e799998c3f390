"""Does attention to a picture lie on what each word speaks of? Measures of captions with gold regions, and a control.

Maps stand as in a Trace, (words, cells); a gold mask of the same shape says which cells belong to each word.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from regard.errors import OptionError
from regard.metrics.attention import attention_correctness, entropy, map_variation, pointing_game

Map = Float[np.ndarray, "_ _"]
Mask = Bool[np.ndarray, "_ _"]


@dataclass(frozen=True)
class MapScores:
    """How attention to pictures behaves, whatever is right: a captioner whose maps stand still looks at nothing."""

    variation: float
    """Base-2 Jensen-Shannon divergence between the maps of consecutive words, 0 to 1, averaged over captions."""
    entropy: float
    """Entropy of a map in nats, averaged over words."""
    distinct_cells: float
    """Different strongest cells in a caption, on average."""
    captions: int
    """Captions measured."""


@dataclass(frozen=True)
class RegionScores:
    """Whether words look at what they speak of, and how much of that is no merit of theirs."""

    pointing: float
    """Share of words with gold whose strongest cell is gold (Zhang et al. 2018)."""
    pointing_shuffled: float
    """The same if each caption's maps were dealt to its words at random."""
    correctness: float
    """Weight inside the gold cells, averaged over words with gold (Liu et al. 2017)."""
    correctness_shuffled: float
    """The same if each caption's maps were dealt to its words at random."""
    chance: float
    """Share of cells that are gold, averaged over words with gold: what looking anywhere would score."""
    words: int
    """Words with gold."""


def map_scores(weights: Sequence[Map]) -> MapScores:
    """Measures of the maps of a corpus, (words, cells) for each caption, that need no gold."""
    if not len(weights):
        raise OptionError("map_scores needs the maps of at least one caption; got none.")
    return MapScores(
        variation=float(np.mean([map_variation(table) for table in weights])),
        entropy=float(np.mean(np.concatenate([entropy(table) for table in weights]))),
        distinct_cells=float(np.mean([distinct_cells(table) for table in weights])),
        captions=len(weights),
    )


def region_scores(weights: Sequence[Map], gold: Sequence[Mask]) -> RegionScores:
    """The pointing game and attention correctness of the captions of a corpus, beside their shuffled controls."""
    rows = [row for mask in gold for row in np.asarray(mask) if row.any()]
    return RegionScores(
        pointing=pointing_game(weights, gold),
        pointing_shuffled=shuffled(pointing_game, weights, gold),
        correctness=attention_correctness(weights, gold),
        correctness_shuffled=shuffled(attention_correctness, weights, gold),
        chance=float(np.mean([row.mean() for row in rows])),
        words=len(rows),
    )


def shuffled(measure: Callable[[Map, Mask], float], weights: Sequence[Map], gold: Sequence[Mask]) -> float:
    """A measure of maps dealt at random to the words with gold of their own caption.

    This is no sample: it is the mean over every way to deal them, which is that over all pairs of a map and a word. A
    caption with one such word keeps its map. What is left of a score here comes from words that share a region, and
    from maps that look at the likely places of any picture; a right model stands far above it.
    """
    scores, words = 0.0, 0
    for table, mask in zip(weights, gold, strict=True):
        told = np.asarray(mask).any(-1)
        if number := int(told.sum()):
            maps, regions = np.asarray(table)[told], np.asarray(mask)[told]
            scores += number * measure(np.repeat(maps, number, 0), np.tile(regions, (number, 1)))
            words += number
    if not words:
        raise OptionError("No row has gold, so there is nothing to score: the masks are False everywhere.")
    return scores / words


def distinct_cells(weights: Map) -> int:
    """How many different cells are the strongest for some word; words that attend to nothing have none."""
    table = np.asarray(weights)
    return len(set(table.argmax(-1)[table.any(-1)].tolist()))
