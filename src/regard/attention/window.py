"""Windows: the keys that each query of local attention sees, with their distances from its centre."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

Mask = Bool[Tensor, "... k"] | None


@dataclass(frozen=True)
class Window:
    """The keys that each query sees: their indices, and which of them exist (the others lie beyond an edge)."""

    index: Int[Tensor, "*b q w"]
    inside: Bool[Tensor, "*b q w"]
    offset: Float[Tensor, "*b q w"]
    """Distance of each position from the centre; gradients flow to a predicted centre through it."""
    centre: Float[Tensor, "*b q"]

    @classmethod
    def around(cls, centre: Float[Tensor, "*b q"], radius: int, num_keys: int) -> "Window":
        """Create the window of the positions within `radius` of a centre, counted from 0."""
        first, size = (centre.detach() - radius).ceil().long(), 2 * radius + 1
        if not torch.compiler.is_compiling() and radius > num_keys:
            # Of so wide a window, only the positions that exist, which are fewer.
            first, size = first.clamp_min(0), num_keys
        index = first.unsqueeze(-1) + torch.arange(size, device=centre.device)
        offset = index - centre.unsqueeze(-1)
        inside = (offset.detach().abs() <= radius) & (index >= 0) & (index < num_keys)
        return cls(index.clamp(0, num_keys - 1), inside, offset, centre)

    def take(self, table: Shaped[Tensor, "..."], num_keys: int) -> Shaped[Tensor, "*b q w"]:
        """Return the part inside the window of a tensor that broadcasts to (*b, q, k)."""
        return table.expand(*self.index.shape[:-1], num_keys).gather(-1, self.index)

    def allowed(self, mask: Mask, num_keys: int) -> Bool[Tensor, "*b q w"]:
        """Return which positions of the window exist and may be attended to."""
        return self.inside if mask is None else self.inside & self.take(mask, num_keys)

    def spread(self, weights: Float[Tensor, "*b q w"], num_keys: int) -> Float[Tensor, "*b q k"]:
        """Turn the weights of the window into weights of all keys, 0 outside."""
        everywhere = weights.new_zeros(*weights.shape[:-1], num_keys)
        return everywhere.scatter_add(-1, self.index, weights.masked_fill(~self.inside, 0))
