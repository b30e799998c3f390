"""Dropout for recurrent networks: what is dropped stays dropped for a whole sentence."""

from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional


class LockedDropout(nn.Module):
    """Drops the same features at every word of a sentence (Gal and Ghahramani 2016)."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, states: Float[Tensor, "b n d"]) -> Float[Tensor, "b n d"]:
        """Drop features in training, and scale the others."""
        if not self.training or not self.rate:
            return states
        mask = states.new_ones(states.shape[0], 1, states.shape[2])
        return states * functional.dropout(mask, self.rate)


class DroppedWords(nn.Module):
    """An embedding that, in training, drops whole words of the vocabulary from a batch (Merity et al. 2018)."""

    def __init__(self, embedding: nn.Embedding, rate: float) -> None:
        super().__init__()
        self.embedding, self.rate = embedding, rate

    def forward(self, words: Int[Tensor, "*b"]) -> Float[Tensor, "*b e"]:
        """Embed the words; a dropped word is zero wherever it occurs."""
        embedded: Tensor = self.embedding(words)
        if not self.training or not self.rate:
            return embedded
        kept = functional.dropout(embedded.new_ones(self.embedding.num_embeddings, 1), self.rate)
        return embedded * functional.embedding(words, kept)
