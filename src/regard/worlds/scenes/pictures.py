"""Pictures with captions and gold regions, without end, and what can be measured of them."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from random import Random

import numpy as np
from jaxtyping import Bool, UInt8

from regard.errors import OptionError
from regard.worlds.scenes.drawing import Draw, Thing
from regard.worlds.scenes.meaning import SPLITS, Meaning, say, split_of
from regard.worlds.scenes.painting import paint

SIDE = 64
SMALLEST, LARGEST = 32, 512
# The grid over which statistics are taken.
GRID = 8

Box = tuple[float, float, float, float]
"""Left, top, right and bottom, in pixels from the top left corner."""
Region = tuple[Box, ...]
"""A box around each of the things that a word speaks of."""


@dataclass(frozen=True, eq=False)
class Picture:
    """A picture, its caption, and for each word where it belongs."""

    image: UInt8[np.ndarray, "side side 3"]
    words: tuple[str, ...]
    regions: tuple[Region | None, ...]
    """For each word the boxes of its things; None for words that say how things stand, and for articles."""

    @property
    def caption(self) -> str:
        """The words in a line."""
        return " ".join(self.words)

    @cached_property
    def _boxes(self) -> tuple[Box, ...]:
        return tuple(dict.fromkeys(box for region in self.regions for box in region or ()))

    @property
    def boxes(self) -> tuple[Box, ...]:
        """The boxes of all things, each once, in the order in which they are told."""
        return self._boxes

    def gold_cells(self, grid: int | tuple[int, int], *, least: float = 0.1) -> Bool[np.ndarray, "words cells"]:
        """Which cells of a grid of (rows, columns) belong to each word, row by row as encoders count them.

        A cell belongs to a word when a box of the word covers at least `least` of it, or has its centre in it, so that
        no thing is without a cell. The row of a word without region is False throughout, and measures leave it out.
        """
        rows, columns = (grid, grid) if isinstance(grid, int) else grid
        if min(rows, columns) < 1 or not 0 <= least <= 1:
            raise OptionError(f"A grid has at least one cell, and least is a share; got grid={grid}, least={least}.")
        cells = {box: self._cells(box, rows, columns, least) for box in self.boxes}
        gold = np.zeros((len(self.words), rows * columns), dtype=bool)
        for row, region in zip(gold, self.regions, strict=True):
            for box in region or ():
                row |= cells[box]
        return gold

    def _cells(self, box: Box, rows: int, columns: int, least: float) -> Bool[np.ndarray, "cells"]:
        side = len(self.image)
        left, right = (x * columns / side for x in (box[0], box[2]))
        top, bottom = (y * rows / side for y in (box[1], box[3]))
        across, down = np.arange(columns), np.arange(rows)
        wide = np.clip(np.minimum(right, across + 1) - np.maximum(left, across), 0, 1)
        high = np.clip(np.minimum(bottom, down + 1) - np.maximum(top, down), 0, 1)
        covered = high[:, None] * wide
        cells = (covered >= least) & (covered > 0)
        cells[min(rows - 1, int((top + bottom) / 2)), min(columns - 1, int((left + right) / 2))] = True
        return np.asarray(cells.reshape(-1))


@dataclass(frozen=True)
class Statistics:
    """What `statistics` measures."""

    captions: int
    """Different captions in the sample."""
    vocabulary: int
    """Different words in the sample."""
    length: float
    """Words of a caption, on average."""
    shortest: int
    longest: int
    things: float
    """Things in a picture, on average."""
    places: float
    """Groups of things that a caption speaks of, on average: so many places must be looked at."""
    content: float
    """The share of words that have a gold region."""
    gold_share: float
    """The share of an 8 x 8 grid that is gold for such a word, on average: what pointing at random would score."""
    likeliest: float
    """The share of the most frequent caption: what can be had without looking."""
    overlap: int
    """Captions of the test sample that are in the training sample."""


def pictures(*, split: str = "train", seed: int = 0, side: int = SIDE) -> Iterator[Picture]:
    """Pictures without end, `side` pixels wide and high.

    The same seed gives the same pictures. A caption belongs to one split only, whatever the seed.
    """
    if split not in SPLITS:
        raise OptionError(f"scenes has no split {split!r}; choose from {', '.join(SPLITS)}.")
    if not SMALLEST <= side <= LARGEST:
        raise OptionError(f"scenes paints pictures of {SMALLEST} to {LARGEST} pixels a side; got side={side}.")
    random = Random(seed)  # noqa: S311
    return (
        _picture(meaning, things, paint(meaning.groups, things, side, random))
        for meaning, things in _drawn(split, random)
    )


def statistics(*, count: int = 2000, seed: int = 0) -> Statistics:
    """Measures `count` training pictures, and their overlap with as many test pictures."""
    if count < 1:
        raise OptionError(f"statistics needs at least one picture to measure; got count={count}.")
    drawn = list(islice(_drawn("train", Random(seed)), count))  # noqa: S311
    test = islice(_drawn("test", Random(seed)), count)  # noqa: S311
    canvas = np.zeros((SIDE, SIDE, 3), np.uint8)
    sample = [_picture(meaning, things, canvas) for meaning, things in drawn]
    captions = Counter(picture.caption for picture in sample)
    lengths = [len(picture.words) for picture in sample]
    gold = [row.mean() for picture in sample for row in picture.gold_cells(GRID) if row.any()]
    return Statistics(
        captions=len(captions),
        vocabulary=len({word for picture in sample for word in picture.words}),
        length=sum(lengths) / count,
        shortest=min(lengths),
        longest=max(lengths),
        things=sum(len(things) for _, things in drawn) / count,
        places=sum(len(meaning.groups) for meaning, _ in drawn) / count,
        content=len(gold) / sum(lengths),
        gold_share=float(np.mean(gold)),
        likeliest=captions.most_common(1)[0][1] / count,
        overlap=sum(" ".join(word for word, _ in say(meaning)) in captions for meaning, _ in test),
    )


def _drawn(split: str, random: Random) -> Iterator[tuple[Meaning, list[Thing]]]:
    draw = Draw(random)
    while True:
        meaning = draw.meaning()
        if split_of(meaning) == split:
            yield meaning, draw.places(meaning)


def _picture(meaning: Meaning, things: list[Thing], image: UInt8[np.ndarray, "side side 3"]) -> Picture:
    side = len(image)
    regions = [
        tuple(
            ((x - radius) * side, (y - radius) * side, (x + radius) * side, (y + radius) * side)
            for group, x, y, radius in things
            if group == number
        )
        for number in range(len(meaning.groups))
    ]
    words = say(meaning)
    return Picture(image, tuple(word for word, _ in words), tuple(None if n is None else regions[n] for _, n in words))
