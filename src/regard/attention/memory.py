"""Memory: projected keys, values and mask, prepared once and queried many times; Attended: what queries read there."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor


@dataclass(eq=False, slots=True)
class Memory:
    """Keys as the score projected them, the values to read, and the mask of those that exist.

    `Attention.remember` and `MultiHead.remember` create it. It belongs to that attention, since another one projects
    its keys differently.
    """

    keys: Shaped[Tensor, "... k p"]
    values: Float[Tensor, "... k v"]
    mask: Bool[Tensor, "..."] | None = None

    @property
    def num_keys(self) -> int:
        """The number of keys. Unlike `len`, it may be a symbol, for which torch.export keeps a dynamic size."""
        return self.values.shape[-2]

    def __len__(self) -> int:
        return self.num_keys

    def extended(self, newer: "Memory") -> "Memory":
        """Append a newer memory to this one, as the cache of a decoder grows."""
        keys, values = torch.cat([self.keys, newer.keys], dim=-2), torch.cat([self.values, newer.values], dim=-2)
        if self.mask is None and newer.mask is None:
            return Memory(keys, values)
        masks = [
            torch.ones(1, memory.num_keys, dtype=torch.bool, device=values.device)
            if memory.mask is None
            else memory.mask
            for memory in (self, newer)
        ]
        lead = torch.broadcast_shapes(*(mask.shape[:-1] for mask in masks))
        return Memory(keys, values, torch.cat([mask.expand(*lead, mask.shape[-1]) for mask in masks], dim=-1))


@dataclass(slots=True)
class Attended:
    """The result of attention: unpack it as `context, weights = attend(...)`, or read its fields."""

    context: Float[Tensor, "... q v"]
    weights: Float[Tensor, "... q k"] | None = None
    """The attention weights, if the call asked for them."""
    log_prob: Float[Tensor, "... q"] | None = None
    """The log-probability of a sampled choice."""
    state: Any = None
    """What the alignment needs at the next step."""
    extras: dict[str, Any] = field(default_factory=dict)
    """Further results of the alignment, such as a predicted centre, a chosen index or an entropy."""

    def __iter__(self) -> Iterator[Any]:
        return iter((self.context, self.weights))
