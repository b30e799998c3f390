"""Which cells of an image match a word, learned from captions alone: guidance of the attention without boxes."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from regard.data.tokenizer import PAD

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
