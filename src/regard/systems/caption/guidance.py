"""Which cells the words of training captions should attend to, from boxes around what their phrases name."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool

from regard.data.captioned_images import Right
from regard.data.captions import ImageCaptions
from regard.data.images import Images
from regard.data.regions import Phrase, Regions, cover, image_key
from regard.errors import DataError
from regard.metrics.captions import caption_words
from regard.systems.caption.config import CaptionConfig

Cells = Bool[np.ndarray, "cells"]


def right_cells(
    config: CaptionConfig, captioned: Sequence[ImageCaptions], regions: Regions, images: Images
) -> list[list[Right | None]]:
    """The right cells of each word of each caption; None for captions without a phrase that has boxes.

    All words of a phrase should attend to the cells that lie inside its boxes at least by half; where there is none,
    to those that are covered most. In the other captions of an image, words that are the last of just one phrase, such
    as "dog" of "a brown dog", should attend to the same cells.
    """
    tables = [_of_image(config, one, regions.get(image_key(one.image), ()), images) for one in captioned]
    if not any(table is not None for row in tables for table in row):
        raise DataError("None of the training images has a box around a phrase of its captions.")
    return tables


def _of_image(
    config: CaptionConfig, one: ImageCaptions, phrases: Sequence[Phrase], images: Images
) -> list[Right | None]:
    if not phrases:
        return [None] * len(one.captions)
    size = images.size(one.image)
    cells = [inside(config, phrase, size) for phrase in phrases]
    by_last_word: dict[str, list[Cells]] = {}
    for phrase, mask in zip(phrases, cells, strict=True):
        if words := caption_words(phrase.text):
            by_last_word.setdefault(words[-1], []).append(mask)
    named = {word: masks[0] for word, masks in by_last_word.items() if len(masks) == 1}
    tables: list[Right | None] = []
    for number, text in enumerate(one.captions):
        rows = [named.get(word) for word in caption_words(text)]
        for phrase, mask in zip(phrases, cells, strict=True):
            if phrase.caption == number and (end := phrase.end_in(text)) is not None:
                first = len(caption_words(text[: end - len(phrase.text)]))
                last = len(caption_words(text[:end]))
                rows[first:last] = [mask] * (last - first)
        nothing = np.zeros(config.grid[0] * config.grid[1], dtype=bool)
        is_guided = any(row is not None for row in rows)
        tables.append(np.stack([nothing if row is None else row for row in rows]) if is_guided else None)
    return tables


def inside(config: CaptionConfig, phrase: Phrase, size: tuple[int, int]) -> Cells:
    """The cells inside the boxes of a phrase, in an image of this width and height.

    At least one, unless the boxes are outside of the part of the image that the model sees.
    """
    covered = cover(config.seen(phrase.fractions(*size), size), config.grid)
    mask: Cells = covered >= min(0.5, float(covered.max()))
    return mask & (covered > 0)
