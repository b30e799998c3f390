"""The feed-forward network of the Transformer, and its residual connections."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.layers.cells import uniform_


class FeedForward(nn.Module):
    """W_2 relu(W_1 x) at each position (Vaswani et al. 2017, section 3.3)."""

    def __init__(self, dim: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.first, self.second = uniform_(nn.Linear(dim, inner)), uniform_(nn.Linear(inner, dim))
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: Float[Tensor, "b n d"]) -> Float[Tensor, "b n d"]:
        """Apply the network to every position."""
        result: Tensor = self.second(self.dropout(torch.relu(self.first(states))))
        return result


class Residual(nn.Module):
    """Residual connection: x + part(norm(x)) if `prenorm`, otherwise norm(x + part(x)) as in the paper."""

    def __init__(self, dim: int, dropout: float, *, prenorm: bool) -> None:
        super().__init__()
        self.norm, self.dropout, self.prenorm = nn.LayerNorm(dim), nn.Dropout(dropout), prenorm

    def forward(self, states: Float[Tensor, "b n d"], part: Callable[[Tensor], Tensor]) -> Float[Tensor, "b n d"]:
        """Apply a part with the residual connection around it."""
        result: Tensor = states + self.dropout(part(self.norm(states) if self.prenorm else states))
        return result if self.prenorm else self.norm(result)
