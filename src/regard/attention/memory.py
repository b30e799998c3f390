"""Memory: what can be attended to, prepared once and asked many times."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from regard.errors import MaskError


@dataclass(frozen=True)
class Memory:
    """Keys as the score projected them, the values to read, and which of them exist.

    Made by `remember`, and meant for the attention that made it: another one projects its keys otherwise.
    """

    keys: Shaped[Tensor, "... k p"]
    values: Float[Tensor, "... k v"]
    mask: Bool[Tensor, "... k"] | None = None

    def __len__(self) -> int:
        return self.values.shape[-2]

    def extended(self, newer: "Memory") -> "Memory":
        """This memory with a newer one behind it: how a decoder's cache grows."""
        if self.mask is not None or newer.mask is not None:
            raise MaskError("A memory with a mask cannot be extended; keep the mask apart and give it with the query.")
        return Memory(torch.cat([self.keys, newer.keys], dim=-2), torch.cat([self.values, newer.values], dim=-2))
