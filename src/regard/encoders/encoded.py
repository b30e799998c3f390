"""What every encoder gives."""

from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor


@dataclass(frozen=True)
class Encoded:
    """The states of the input, which of them exist, and a summary of the whole."""

    states: Float[Tensor, "b n d"]
    mask: Bool[Tensor, "b 1 n"]
    summary: Float[Tensor, "b s"]
    """Of a recurrent encoder its last states, forward then backward; of others the mean state."""
