"""The addressing of the neural Turing machine (Graves et al. 2014, section 3.3)."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.interfaces import Align, Focus, Mask, Soft, Window, masked_softmax
from regard.attention.mask import unpadded_length
from regard.errors import DtypeError, ShapeError

Logits = Float[Tensor, "... q k"]


class Addressing(Align):
    """Content-based focus, interpolated with the last focus, shifted in a circle, and sharpened.

    1. w_c = softmax(logits), with logits beta cos(key, memory) from `score.Cosine(beta)`
    2. w_g = gate w_c + (1 - gate) w_(t-1), where w_(t-1) is the state; without a state, w_g = w_c
    3. w_s(i) = sum_j w_g(i - j) shift(j), circular, for j = -max_shift .. max_shift
    4. w(i) = w_s(i)^sharpen / sum_j w_s(j)^sharpen, with sharpen >= 1

    The controller produces gate, shift and sharpen at each step, so an Addressing is created for one call. Its state
    is its weights. Under a padding mask the circle has the unpadded length.
    """

    equivariant = False
    gate: Tensor
    shift: Tensor
    sharpen: Tensor

    def __init__(
        self,
        gate: Float[Tensor, "... q 1"],
        shift: Float[Tensor, "... q s"],
        sharpen: Float[Tensor, "... q 1"],
    ) -> None:
        super().__init__()
        for name, part in [("gate", gate), ("shift", shift), ("sharpen", sharpen)]:
            if not isinstance(part, Tensor) or part.ndim < 2:
                raise ShapeError(f"The {name} must be a tensor (..., q, n), one row per query; got {part!r:.60}.")
        if shift.shape[-1] % 2 == 0:
            raise ShapeError(
                "The shift has one weight for each step from -max_shift to max_shift, an odd number; got "
                f"{shift.shape[-1]}."
            )
        for name, part in [("gate", gate), ("shift", shift), ("sharpen", sharpen)]:
            self.register_buffer(name, part, persistent=False)

    def state_after(self, weights: Float[Tensor, "... q k"], state: Any) -> Any:
        """Return the weights, which are the state."""
        return weights

    def weigh(self, logits: Logits, allowed: Mask, state: Any, window: Window | None, *, soft: Soft = False) -> Focus:
        """Run the four steps."""
        if self.gate.device != logits.device:
            raise DtypeError(
                f"The gate of Addressing is on {self.gate.device}, the memory on {logits.device}. Move one with "
                ".to(device)."
            )
        gate, shift, sharpen = (part.to(logits.dtype) for part in (self.gate, self.shift, self.sharpen))
        weights = masked_softmax(logits, allowed)
        if state is not None:
            if state.shape[-1] != weights.shape[-1]:
                raise ShapeError(
                    f"The state holds weights of {state.shape[-1]} memory slots, but the memory has "
                    f"{weights.shape[-1]}: {tuple(state.shape)} and {tuple(weights.shape)}."
                )
            weights = gate * weights + (1 - gate) * state.to(logits.dtype)
        weights = circular_shift(weights, shift, allowed)
        # The largest weight is divided out first: (1/128)^100 would underflow to 0, and give 0/0.
        weights = weights / weights.amax(-1, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny)
        weights = weights.pow(sharpen)
        weights = weights / weights.sum(-1, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny)
        return Focus(weights, state=weights)


def circular_shift(
    weights: Float[Tensor, "... q k"], shift: Float[Tensor, "... q s"], allowed: Mask = None
) -> Float[Tensor, "... q k"]:
    """Compute sum_j weights((i - j) mod n) shift(j), j = -max_shift .. max_shift; n is the unpadded number of keys."""
    num_keys, max_shift = weights.shape[-1], shift.shape[-1] // 2
    length: Tensor | int = num_keys
    if allowed is not None:
        length = unpadded_length(allowed).clamp_min(1).unsqueeze(-1)
    positions = torch.arange(num_keys, device=weights.device)
    shifted = torch.zeros_like(weights)
    for column, step in enumerate(range(-max_shift, max_shift + 1)):
        source = ((positions - step) % length).expand_as(weights)
        shifted = shifted + weights.gather(-1, source) * shift[..., column : column + 1]
    return shifted if allowed is None else shifted.masked_fill(~allowed, 0)
