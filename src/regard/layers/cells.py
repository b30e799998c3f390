"""Recurrent cells whose input part is computed for all steps at once, so that a step only adds what it must.

A cell's gates are `inputs + U hidden`, where `inputs` (W x_t + b, and whatever else enters) come from outside.
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
    """Gated recurrent unit (Cho et al. 2014): z, r and a candidate.

    s = (1 - z) s + z tanh(x_c + U_c (r s)): the reset gate acts before the matrix product, as in the paper. torch's GRU
    applies it after the product (and swaps z with 1 - z).
    """

    num_gates = 3

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.gates = Hoisted(hidden, 2 * hidden, bias=False)
        self.candidate = Hoisted(hidden, hidden, bias=False)
        for layer in (self.gates, self.candidate):
            _orthogonal(layer)

    def start(self, hidden: Hidden) -> tuple[Hidden, ...]:
        """The state that begins with this hidden vector."""
        return (hidden,)

    def forward(self, inputs: Float[Tensor, "b g"], state: tuple[Hidden, ...]) -> tuple[Hidden, ...]:
        """The next state."""
        (hidden,) = state
        for_gates, for_candidate = inputs.split([2 * hidden.shape[-1], hidden.shape[-1]], dim=-1)
        update, kept = gru_gates(for_gates, self.gates(hidden), hidden)
        return (gru_blend(for_candidate, self.candidate(kept), hidden, update),)


class LSTM(nn.Module):
    """Long short-term memory (Hochreiter and Schmidhuber 1997), with a forget gate that starts open."""

    num_gates = 4

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.gates = Hoisted(hidden, 4 * hidden, bias=False)
        _orthogonal(self.gates)

    def start(self, hidden: Hidden) -> tuple[Hidden, ...]:
        """The state that begins with this hidden vector and an empty cell."""
        return hidden, torch.zeros_like(hidden)

    def forward(self, inputs: Float[Tensor, "b g"], state: tuple[Hidden, ...]) -> tuple[Hidden, ...]:
        """The next state."""
        hidden, cell = state
        return lstm(inputs, self.gates(hidden), cell)


def _orthogonal(layer: nn.Linear) -> None:
    with torch.no_grad():
        for block in layer.weight.split(layer.in_features):
            nn.init.orthogonal_(block)


def uniform_(layer: Linear) -> Linear:
    """Glorot's initialisation with a zero bias."""
    nn.init.xavier_uniform_(layer.weight)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


CELLS: dict[str, type[GRU] | type[LSTM]] = {"gru": GRU, "lstm": LSTM}

__all__ = ["CELLS", "GRU", "LSTM", "uniform_"]
