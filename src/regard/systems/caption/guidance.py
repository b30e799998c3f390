"""Which cells the words of training captions should attend to, from boxes around what their phrases name."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from regard.data.captioned_images import Right
from regard.data.captions import ImageCaptions
from regard.data.images import Images
from regard.data.regions import Phrase, Regions, cover, image_key
from regard.data.tokenizer import PAD
from regard.errors import DataError
from regard.metrics.captions import caption_words
from regard.systems.caption.config import CaptionConfig

Cells = Bool[np.ndarray, "cells"]
DIM = 256
"""Features in which words and cells are compared."""
FIRST_SCALE = 10.0
"""Factor on the cosines before it is learned."""


class WordCells(nn.Module):
    """The similarity of words and cells, by a contrastive loss (as for phrases and boxes in Gupta et al. 2020).

    z(w, i) = scale cos(E w, W a_i). A word attends to all cells of all images of a batch, softmax over i of z(w, i).
    The loss is -log of the attention that stays in the image that the word describes: a word has to match some cell of
    its image better than the cells of others. Words that say nothing about an image match all cells alike.

    It is used in training only, and is no part of the model.
    """

    def __init__(self, vocabulary: int, cell_dim: int, dim: int = DIM) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, dim)
        self.cells = nn.Linear(cell_dim, dim)
        self.log_scale = nn.Parameter(torch.tensor(math.log(FIRST_SCALE)))

    def forward(
        self, words: Int[Tensor, "b m"], cells: Float[Tensor, "b n d"], images: Int[Tensor, "b"]
    ) -> tuple[Float[Tensor, ""], Float[Tensor, "b m n"]]:
        """Compute the loss, and how well each cell matches each word: 1 for the best cell of its image, down to 0.

        `images` tells which image each row describes; other captions of the same image are no contrast. The matches
        have no gradient, and are 0 for padding.
        """
        real = words != PAD
        query = self.log_scale.exp() * functional.normalize(self.words(words[real]), dim=-1)
        keys = functional.normalize(self.cells(cells), dim=-1)
        row = real.nonzero()[:, 0]
        by_image = (query @ keys.flatten(0, 1).T).view(len(query), len(cells), -1)
        is_same = images.unsqueeze(1) == images
        is_own = torch.eye(len(cells), dtype=torch.bool, device=cells.device)
        scores = by_image.logsumexp(-1).masked_fill((is_same & ~is_own)[row], -torch.inf)
        loss = functional.cross_entropy(scores, row)
        own = by_image.detach()[torch.arange(len(row), device=row.device), row]
        matches = cells.new_zeros(*words.shape, cells.shape[1], dtype=own.dtype)
        matches[real] = (own - own.amax(-1, keepdim=True)).exp()
        return loss, matches


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
