"""The result of every encoder."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor


@dataclass(frozen=True)
class Encoded:
    """The states of an encoded input, the mask of those that exist, and a summary of the whole input."""

    states: Float[Tensor, "b n d"]
    mask: Bool[Tensor, "b 1 n"]
    summary: Float[Tensor, "b s"]
    """The last states (forward, then backward) of a recurrent encoder; the mean state of other encoders."""
    maps: tuple[Float[Tensor, "b h n n"], ...] = ()
    """The self-attention weights of each layer of a Transformer encoder, if the call asked for them."""

    @classmethod
    def whole(cls, states: Float[Tensor, "b n d"]) -> "Encoded":
        """Inputs of equal length, all of whose states exist; their mean is the summary."""
        return cls(states, states.new_ones(len(states), 1, states.shape[1], dtype=torch.bool), states.mean(1))
