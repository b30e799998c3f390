"""The encoder of the Transformer (Vaswani et al. 2017, section 3.1)."""

import math

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention import mask
from regard.attention.heads import MultiHead
from regard.encoders.encoded import Encoded
from regard.layers.feedforward import FeedForward, Residual
from regard.layers.position import sinusoids


def embed_with_positions(
    embedding: nn.Embedding, tokens: Int[Tensor, "b n"], *, first: int = 0
) -> Float[Tensor, "b n d"]:
    """Embed tokens, scale by sqrt(d), and add the sinusoids of positions first, first + 1, ..."""
    dim = embedding.embedding_dim
    embedded: Tensor = embedding(tokens) * math.sqrt(dim)
    return embedded + sinusoids(tokens.shape[1], dim, first=first, device=tokens.device)


class TransformerEncoder(nn.Module):
    """Layers of self-attention and feed-forward network, each with a residual connection."""

    def __init__(
        self, embedding: nn.Embedding, *, num_layers: int, num_heads: int, inner: int, dropout: float, prenorm: bool
    ) -> None:
        super().__init__()
        self.embedding, self.dim = embedding, embedding.embedding_dim
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(
            TransformerEncoderLayer(self.dim, num_heads, inner, dropout, prenorm) for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(self.dim) if prenorm else nn.Identity()

    def forward(self, source: Int[Tensor, "b n"], lengths: Int[Tensor, "b"], *, weights: bool = False) -> Encoded:
        """Encode padded sentences of these lengths; `weights` asks for the self-attention maps of each layer."""
        allowed = mask.padding(lengths, source.shape[1])
        allowed, lengths = (part.to(source.device, non_blocking=source.is_cuda) for part in (allowed, lengths))
        states = self.dropout(embed_with_positions(self.embedding, source))
        maps: list[Tensor] = []
        for layer in self.layers:
            states = layer(states, allowed, maps if weights else None)
        states = self.norm(states)
        summary = (states * allowed.mT).sum(1) / lengths.unsqueeze(-1)
        return Encoded(states, allowed, summary, tuple(maps))


class TransformerEncoderLayer(nn.Module):
    """Self-attention, then a feed-forward network."""

    def __init__(self, dim: int, num_heads: int, inner: int, dropout: float, prenorm: bool) -> None:
        super().__init__()
        self.heads = MultiHead(dim, num_heads)
        self.feed_forward = FeedForward(dim, inner, dropout)
        self.around_heads = Residual(dim, dropout, prenorm=prenorm)
        self.around_feed_forward = Residual(dim, dropout, prenorm=prenorm)

    def forward(
        self, states: Float[Tensor, "b n d"], allowed: Bool[Tensor, "b 1 n"], maps: list[Tensor] | None = None
    ) -> Float[Tensor, "b n d"]:
        """Compute the states of the next layer; if there is a list of maps, append the attention weights to it."""

        def attend_to_self(x: Tensor) -> Tensor:
            context, weights = self.heads(x, mask=allowed, weights=maps is not None)
            if maps is not None:
                maps.append(weights)
            return context  # type: ignore[no-any-return]

        states = self.around_heads(states, attend_to_self)
        return self.around_feed_forward(states, self.feed_forward)  # type: ignore[no-any-return]
