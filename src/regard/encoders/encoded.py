"""The result of every encoder."""

from dataclasses import dataclass

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
