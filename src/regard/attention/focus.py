"""What an alignment is: it may choose a window of keys to look at, and it turns logits into a focus.

Each alignment declares what holds of its weights, and the property tests read that.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

Query = Shaped[Tensor, "... q d"]
Logits = Float[Tensor, "... q k"]
Mask = Bool[Tensor, "... k"] | None


@dataclass(frozen=True)
class Window:
    """For each query, the indices of the keys it sees, and which of them exist (the rest hang over an edge)."""

    index: Int[Tensor, "*b q w"]
    inside: Bool[Tensor, "*b q w"]
    offset: Float[Tensor, "*b q w"]
    """How far each position lies from the centre; gradients flow to a predicted centre through it."""
    centre: Float[Tensor, "*b q"]

    @classmethod
    def around(cls, centre: Float[Tensor, "*b q"], reach: int, num_keys: int) -> "Window":
        """The positions within `reach` of a centre, counted from 0."""
        first = (centre.detach() - reach).ceil().long()
        index = first.unsqueeze(-1) + torch.arange(2 * reach + 1, device=centre.device)
        offset = index - centre.unsqueeze(-1)
        inside = (offset.detach().abs() <= reach) & (index >= 0) & (index < num_keys)
        return cls(index.clamp(0, num_keys - 1), inside, offset, centre)

    def allowed(self, mask: Mask, num_keys: int) -> Bool[Tensor, "*b q w"]:
        """Which positions of the window exist and may be attended to."""
        if mask is None:
            return self.inside
        return self.inside & mask.expand(*self.index.shape[:-1], num_keys).gather(-1, self.index)

    def spread(self, weights: Float[Tensor, "*b q w"], num_keys: int) -> Float[Tensor, "*b q k"]:
        """The weights of the window as weights of all keys, 0 outside."""
        everywhere = weights.new_zeros(*weights.shape[:-1], num_keys)
        return everywhere.scatter_add(-1, self.index, weights.masked_fill(~self.inside, 0))


@dataclass(frozen=True)
class Focus:
    """Where each query looks: the weights of the keys, or the index of the one key that was chosen."""

    weights: Float[Tensor, "... q k"] | None = None
    index: Int[Tensor, "... q"] | None = None
    """The chosen key; -1 where there was none to choose from."""
    always: bool = False
    """Whether there was always one to choose from."""
    log_prob: Float[Tensor, "... q"] | None = None
    state: Any = None
    extras: dict[str, Any] = field(default_factory=dict)

    def read(self, values: Float[Tensor, "... k v"]) -> Float[Tensor, "... q v"]:
        """The weighted average of the values, or the one value that was chosen."""
        if self.index is None:
            return self.all_weights(values.shape[-2]) @ values
        if self.always:
            return rows(values, self.index)
        return rows(values, self.index.clamp_min(0)).masked_fill(self.index.unsqueeze(-1) < 0, 0)

    def all_weights(self, num_keys: int) -> Float[Tensor, "... q k"]:
        """The weights, one-hot where one key was chosen."""
        if self.weights is not None:
            return self.weights
        if self.index is None:
            raise TypeError("A focus needs weights or an index.")
        return (self.index.unsqueeze(-1) == torch.arange(num_keys, device=self.index.device)).float()


class Align(nn.Module):
    """What every alignment answers; a new one needs `weigh`."""

    normalised: bool = True
    """Weights are not negative and sum to 1, or to 0 where nothing may be attended to."""
    equivariant: bool = True
    """Permuting the keys permutes the weights."""
    differentiable: bool = True
    """Gradients reach the logits through the context."""
    uses_scores: bool = True
    """Without scores, the focus depends on positions alone."""

    def look(self, query: Query, num_keys: int, mask: Mask, state: Any) -> Window | None:
        """The window of keys that each query sees; None: all of them."""
        return None

    def start_at(self, step: int) -> Any:
        """The state after `step` queries, of an alignment that counts them; None of others."""
        return None

    def state_after(self, weights: Float[Tensor, "... q k"], state: Any) -> Any:
        """The state after a focus with these weights; None of an alignment that needs none."""
        return None

    def weigh(self, logits: Logits, allowed: Mask, state: Any, window: Window | None) -> Focus:
        """The focus. `allowed` is the mask where there is one, `state` what the last focus gave as its state.

        With a window, each query comes alone with its own keys: logits are (..., q, 1, w).
        """
        raise TypeError(f"{type(self).__name__} does not say how to align: define weigh(...).")


def masked_softmax(logits: Logits, allowed: Mask) -> Float[Tensor, "... q k"]:
    """Softmax over the allowed keys; exactly 0 elsewhere, and everywhere in a row where nothing is allowed."""
    if allowed is not None:
        logits = logits.masked_fill(~allowed, -math.inf)
    closed = logits.detach().amax(-1, keepdim=True) == -math.inf
    return torch.softmax(logits.masked_fill(closed, 0), dim=-1).masked_fill(closed, 0)


def rows(table: Shaped[Tensor, "*b k d"], index: Int[Tensor, "..."]) -> Shaped[Tensor, "... d"]:
    """table[b, index[b, ...]] for index (*b, ...): only those rows are touched."""
    lead, (num_rows, width) = table.shape[:-2], table.shape[-2:]
    if table.is_cuda or not table.is_contiguous():
        # One launch on a GPU; and what is expanded or transposed need not be laid out anew.
        places = index.flatten(len(lead)).unsqueeze(-1)
        return table.gather(-2, places.expand(*places.shape[:-1], width)).view(*index.shape, width)
    first_row = torch.arange(lead.numel(), device=index.device).view(*lead, *(1,) * (index.ndim - len(lead))) * num_rows
    return table.view(-1, width).index_select(0, (index + first_row).flatten()).view(*index.shape, width)


def widen(tensor: Tensor) -> Tensor:
    """Half precision as float32, in which scores, softmax and sums are taken; anything else as it is."""
    return tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor
