"""The parts of a Transformer (Vaswani et al. 2017, section 3)."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.attend import Attention
from regard.attention.heads import MultiHead
from regard.attention.memory import Attended, Memory
from regard.kernels.layer_norm import layer_norm
from regard.kernels.linear import Linear
from regard.layers.cells import uniform_


class FeedForward(nn.Module):
    """W_2 relu(W_1 x) at each position (Vaswani et al. 2017, section 3.3)."""

    def __init__(self, dim: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.first, self.second = uniform_(Linear(dim, inner)), uniform_(Linear(inner, dim))
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: Float[Tensor, "b n d"]) -> Float[Tensor, "b n d"]:
        """Apply the network to every position."""
        result: Tensor = self.second(self.dropout(torch.relu(self.first(states))))
        return result


class LayerNorm(nn.LayerNorm):
    """Layer normalisation, with kernels of its own on a GPU.

    With `feeds_products`, only matrix products read the result: on a GPU, it has their precision under autocast.
    """

    def __init__(self, dim: int, *, feeds_products: bool = False) -> None:
        super().__init__(dim)
        self.feeds_products = feeds_products

    def forward(self, states: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        """Normalise the features of each position."""
        if not states.is_cuda:
            return super().forward(states)
        is_half = self.feeds_products and torch.is_autocast_enabled("cuda")
        dtype = torch.get_autocast_dtype("cuda") if is_half else torch.float32
        return layer_norm(states, self.weight, self.bias, self.eps, dtype)


class Residual(nn.Module):
    """Residual connection: x + part(norm(x)) if `prenorm`, otherwise norm(x + part(x)) as in the paper."""

    def __init__(self, dim: int, dropout: float, *, prenorm: bool) -> None:
        super().__init__()
        self.norm, self.dropout, self.prenorm = LayerNorm(dim, feeds_products=prenorm), nn.Dropout(dropout), prenorm

    def forward(self, states: Float[Tensor, "b n d"], part: Callable[[Tensor], Tensor]) -> Float[Tensor, "b n d"]:
        """Apply a part with the residual connection around it."""
        result: Tensor = states + self.dropout(part(self.norm(states) if self.prenorm else states))
        return result if self.prenorm else self.norm(result)


def sinusoids(
    num_positions: int, dim: int, *, first: int = 0, device: torch.device | None = None
) -> Float[Tensor, "n d"]:
    """Return sin(p / 10000^(2i/d)) and cos(p / 10000^(2i/d)), interleaved, for positions first, first + 1, ..."""
    positions = torch.arange(first, first + num_positions, device=device, dtype=torch.float32).unsqueeze(-1)
    rates = torch.exp(torch.arange(0, dim, 2, device=device) * (-math.log(10_000.0) / dim))
    angles = positions * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)[:, :dim]


def embed_with_positions(
    embedding: nn.Embedding, tokens: Int[Tensor, "b n"], *, first: int = 0
) -> Float[Tensor, "b n d"]:
    """Embed tokens, scale by sqrt(d), and add the sinusoids of positions first, first + 1, ..."""
    dim = embedding.embedding_dim
    embedded: Tensor = embedding(tokens) * math.sqrt(dim)
    return embedded + sinusoids(tokens.shape[1], dim, first=first, device=tokens.device)


class SelfAttentionBlock(nn.Module):
    """Self-attention, then a feed-forward network, each with a residual connection around it."""

    def __init__(
        self,
        dim: int,
        num_heads: int,
        inner: int,
        dropout: float,
        *,
        prenorm: bool,
        attention: Attention | None = None,
    ) -> None:
        """`attention` has the score and the alignment of each head; a scaled dot product and a softmax by default."""
        super().__init__()
        parts = attention or Attention()
        self.heads = MultiHead(dim, num_heads, score=parts.score, align=parts.align)
        self.feed_forward = FeedForward(dim, inner, dropout)
        self.around_heads, self.around_feed_forward = (Residual(dim, dropout, prenorm=prenorm) for _ in range(2))

    def remember(self, states: Float[Tensor, "b n d"], *, after: Memory | None = None) -> Memory:
        """Prepare states to be attended to, after earlier ones."""
        return self.heads.remember(self.around_heads.norm(states), after=after)

    def forward(
        self,
        states: Float[Tensor, "b n d"],
        memory: Memory | None = None,
        *,
        mask: Bool[Tensor, "..."],
        weights: bool = False,
    ) -> tuple[Float[Tensor, "b n d"], Attended]:
        """Compute the states of the next layer and the attention to the memory, or to the states if there is none."""
        found: list[Attended] = []

        def attend(x: Tensor) -> Tensor:
            found.append(self.heads(x, memory, mask=mask, weights=weights))
            return found[0].context

        states = self.around_heads(states, attend)
        return self.around_feed_forward(states, self.feed_forward), found[0]
