"""Recurrent cells whose inputs are projected for all steps at once, so that a step only computes the recurrent part.

The gates of a cell are `inputs + U hidden`, where the caller computes `inputs` (W x_t + b and any other terms).
"""

from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.kernels.cells import gru_blend, gru_gates, lstm
from regard.kernels.hoisted import Hoisted

Hidden = Float[Tensor, "b h"]
Linear = TypeVar("Linear", bound=nn.Linear)


class GRU(nn.Module):
    """Gated recurrent unit (Cho et al. 2014), with update gate z, reset gate r and a candidate.

    s = (1 - z) s + z tanh(x_c + U_c (r s)). The reset gate is applied before the matrix product, as in the paper;
    torch's GRU applies it after the product (and swaps z with 1 - z).
    """

    num_gates = 3

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.gates = Hoisted(hidden, 2 * hidden, bias=False)
        self.candidate = Hoisted(hidden, hidden, bias=False)
        for layer in (self.gates, self.candidate):
            _orthogonal(layer)

    def start(self, hidden: Hidden) -> tuple[Hidden, ...]:
        """Return the state that begins with a hidden vector."""
        return (hidden,)

    def forward(self, inputs: Float[Tensor, "b g"], state: tuple[Hidden, ...]) -> tuple[Hidden, ...]:
        """Compute the next state."""
        (hidden,) = state
        update, kept, for_candidate, hidden = gru_gates(inputs, self.gates(hidden), hidden)
        return (gru_blend(for_candidate, self.candidate(kept), hidden, update),)


class LSTM(nn.Module):
    """Long short-term memory (Hochreiter and Schmidhuber 1997), with a forget gate whose bias is 1."""

    num_gates = 4

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.gates = Hoisted(hidden, 4 * hidden, bias=False)
        _orthogonal(self.gates)

    def start(self, hidden: Hidden) -> tuple[Hidden, ...]:
        """Return the state that begins with a hidden vector and an empty cell."""
        return hidden, torch.zeros_like(hidden)

    def forward(self, inputs: Float[Tensor, "b g"], state: tuple[Hidden, ...]) -> tuple[Hidden, ...]:
        """Compute the next state."""
        hidden, cell = state
        return lstm(inputs, self.gates(hidden), cell)


def _orthogonal(layer: nn.Linear) -> None:
    with torch.no_grad():
        for block in layer.weight.split(layer.in_features):
            nn.init.orthogonal_(block)


def uniform_(layer: Linear) -> Linear:
    """Initialise a linear layer with Glorot's uniform distribution and a zero bias, and return it."""
    nn.init.xavier_uniform_(layer.weight)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


CELLS: dict[str, type[GRU] | type[LSTM]] = {"gru": GRU, "lstm": LSTM}

__all__ = ["CELLS", "GRU", "LSTM", "uniform_"]
