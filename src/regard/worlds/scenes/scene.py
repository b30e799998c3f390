"""An endless stream of scenes with captions and gold regions, and statistics of them."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from random import Random

import numpy as np
from jaxtyping import Bool, UInt8

from regard.errors import OptionError
from regard.worlds.described import Described, check_count, described
from regard.worlds.scenes.meaning import Meaning, describe
from regard.worlds.scenes.rendering import render
from regard.worlds.scenes.sampling import Sampler, SceneObject
from regard.worlds.splits import NINETY, check_split, split_of

SIDE = 64
MIN_SIDE, MAX_SIDE = 32, 512
# Rows and columns of the grid that statistics use.
GRID = 8

Box = tuple[float, float, float, float]
"""Left, top, right and bottom, in pixels from the top left corner of the image."""
Region = tuple[Box, ...]
"""A box around each of the objects that a word refers to."""


@dataclass(frozen=True, eq=False)
class Scene:
    """An image, its caption, and the region that each word of the caption refers to."""

    image: UInt8[np.ndarray, "side side 3"]
    words: tuple[str, ...]
    regions: tuple[Region | None, ...]
    """The boxes of the objects that each word refers to; None for articles and words that describe relations."""

    @property
    def caption(self) -> str:
        """The words joined by spaces."""
        return " ".join(self.words)

    @cached_property
    def _boxes(self) -> tuple[Box, ...]:
        return tuple(dict.fromkeys(box for region in self.regions for box in region or ()))

    @property
    def boxes(self) -> tuple[Box, ...]:
        """The boxes of all objects, each once, in the order of the caption."""
        return self._boxes

    def gold_cells(self, grid: int | tuple[int, int], *, min_cover: float = 0.1) -> Bool[np.ndarray, "words cells"]:
        """Return which cells of a grid of (rows, columns) belong to each word, in row-major order.

        A cell belongs to a word if a box of the word covers at least the fraction `min_cover` of it, or has its centre
        in it, so that every object has a cell. The row of a word without a region is False throughout; metrics leave
        it out.
        """
        rows, columns = (grid, grid) if isinstance(grid, int) else grid
        if min(rows, columns) < 1 or not 0 <= min_cover <= 1:
            raise OptionError(
                f"A grid needs at least one cell, and min_cover is a fraction; got grid={grid}, min_cover={min_cover}."
            )
        cells = {box: self._cells(box, rows, columns, min_cover) for box in self.boxes}
        gold = np.zeros((len(self.words), rows * columns), dtype=bool)
        for row, region in zip(gold, self.regions, strict=True):
            for box in region or ():
                row |= cells[box]
        return gold

    def _cells(self, box: Box, rows: int, columns: int, min_cover: float) -> Bool[np.ndarray, "cells"]:
        side = len(self.image)
        left, right = (x * columns / side for x in (box[0], box[2]))
        top, bottom = (y * rows / side for y in (box[1], box[3]))
        across, down = np.arange(columns), np.arange(rows)
        width = np.clip(np.minimum(right, across + 1) - np.maximum(left, across), 0, 1)
        height = np.clip(np.minimum(bottom, down + 1) - np.maximum(top, down), 0, 1)
        covered = height[:, None] * width
        cells = (covered >= min_cover) & (covered > 0)
        cells[min(rows - 1, int((top + bottom) / 2)), min(columns - 1, int((left + right) / 2))] = True
        return np.asarray(cells.reshape(-1))


@dataclass(frozen=True)
class Statistics(Described):
    """Statistics of a sample of scenes; `rows` describes each number."""

    distinct_captions: int = described("different captions in the sample")
    vocabulary: int = described("different words in the sample")
    mean_length: float = described("words per caption, on average")
    min_length: int = described("words of the shortest caption")
    max_length: int = described("words of the longest caption")
    mean_objects: float = described("objects per image, on average")
    mean_groups: float = described("groups of objects per caption, on average: the places that must be looked at")
    grounded_words: float = described("fraction of words that refer to a region of the image")
    chance_pointing: float = described(
        "fraction of an 8 x 8 grid that belongs to such a word, on average: the score of pointing at random"
    )
    most_frequent_caption: float = described(
        "fraction of images with the most frequent caption: the score without looking"
    )
    test_overlap: int = described("captions of a test sample that occur in the training sample; 0 is intended")


def scenes(*, split: str = "train", seed: int = 0, side: int = SIDE) -> Iterator[Scene]:
    """Generate an endless stream of scenes, `side` pixels wide and high.

    The same seed gives the same scenes. A caption belongs to one split only, whatever the seed.
    """
    check_split("scenes", split)
    if not MIN_SIDE <= side <= MAX_SIDE:
        raise OptionError(f"The side of a scene must be from {MIN_SIDE} to {MAX_SIDE} pixels; got side={side}.")
    random = Random(seed)  # noqa: S311
    return (
        _scene(meaning, objects, render(meaning.groups, objects, side, random))
        for meaning, objects in _samples(split, random)
    )


def statistics(*, count: int = 2000, seed: int = 0) -> Statistics:
    """Measure `count` training scenes, and their overlap with as many test scenes."""
    check_count(count)
    samples = list(islice(_samples("train", Random(seed)), count))  # noqa: S311
    test = islice(_samples("test", Random(seed)), count)  # noqa: S311
    canvas = np.zeros((SIDE, SIDE, 3), np.uint8)
    measured = [_scene(meaning, objects, canvas) for meaning, objects in samples]
    captions = Counter(scene.caption for scene in measured)
    lengths = [len(scene.words) for scene in measured]
    gold = [row.mean() for scene in measured for row in scene.gold_cells(GRID) if row.any()]
    return Statistics(
        distinct_captions=len(captions),
        vocabulary=len({word for scene in measured for word in scene.words}),
        mean_length=sum(lengths) / count,
        min_length=min(lengths),
        max_length=max(lengths),
        mean_objects=sum(len(objects) for _, objects in samples) / count,
        mean_groups=sum(len(meaning.groups) for meaning, _ in samples) / count,
        grounded_words=len(gold) / sum(lengths),
        chance_pointing=float(np.mean(gold)),
        most_frequent_caption=captions.most_common(1)[0][1] / count,
        test_overlap=sum(meaning.caption in captions for meaning, _ in test),
    )


def _samples(split: str, random: Random) -> Iterator[tuple[Meaning, list[SceneObject]]]:
    sampler = Sampler(random)
    while True:
        meaning = sampler.meaning()
        if split_of(meaning.caption, NINETY) == split:
            yield meaning, sampler.layout(meaning)


def _scene(meaning: Meaning, objects: list[SceneObject], image: UInt8[np.ndarray, "side side 3"]) -> Scene:
    side = len(image)
    regions = [
        tuple(
            ((x - radius) * side, (y - radius) * side, (x + radius) * side, (y + radius) * side)
            for group, x, y, radius in objects
            if group == number
        )
        for number in range(len(meaning.groups))
    ]
    words = describe(meaning)
    return Scene(image, tuple(word for word, _ in words), tuple(None if n is None else regions[n] for _, n in words))
