"""Local attention on a GPU, one kernel each for the forward and the backward pass; the cost grows with the window.

Where several queries see one key, their gradients are added in any order, so that two runs may differ in the last bits.
"""

from typing import Any

import torch
import triton
from torch import Tensor

from regard.kernels import local_triton as kernels
from regard.kernels.blocks import plain_gradients

MAX_WINDOW = 500
"""The largest window that the kernels support, in positions on each side of the centre."""
TILE = 4096
"""Number of elements of the keys that a program loads at a time."""


def local_attention(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    centres: Tensor,
    mask: Tensor | None = None,
    *,
    window: int,
    sigma: float | None = None,
    direction: Tensor | None = None,
    scale: float = 1.0,
) -> Tensor:
    """Attend to the keys within `window` of a centre: (b, q, d), (b, k, d), (b, k, v), (b, q) to (b, q, v).

    The weights inside the window are softmax(v' tanh(query + key)), or softmax(scale query' key) without a direction,
    times exp(-(position - centre)^2 / (2 sigma^2)) if there is a sigma. Positions are counted from 0. `mask` broadcasts
    to (b, q, k). Gradients reach the centres through the Gaussian only.
    """
    if mask is not None:
        mask = mask.expand(query.shape[0], query.shape[1], keys.shape[1])
    query, keys, values = query.contiguous(), keys.contiguous(), values.contiguous()
    centres = centres.float().contiguous()
    context: Tensor = _LocalAttention.apply(  # type: ignore[no-untyped-call]
        query, keys, values, centres, direction, mask, window, sigma, scale
    )
    return context


def local_attention_reference(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    centres: Tensor,
    mask: Tensor | None = None,
    *,
    window: int,
    sigma: float | None = None,
    direction: Tensor | None = None,
    scale: float = 1.0,
) -> Tensor:
    """Compute `local_attention` by the plain formula over all keys, in the precision of the centres."""
    wide_query, wide_keys = query.to(centres.dtype).unsqueeze(2), keys.to(centres.dtype).unsqueeze(1)
    if direction is None:
        logits = scale * (wide_query * wide_keys).sum(-1)
    else:
        logits = torch.tanh(wide_query + wide_keys) @ direction.to(centres.dtype)
    offsets = torch.arange(keys.shape[1], device=keys.device) - centres.unsqueeze(-1)
    is_open = offsets.detach().abs() <= window
    is_open = is_open if mask is None else is_open & mask
    closed = ~is_open.any(-1, keepdim=True)
    weights = logits.masked_fill(~(is_open | closed), float("-inf")).softmax(-1).masked_fill(closed, 0)
    if sigma is not None:
        weights = weights * torch.exp(-offsets.square() / (2 * sigma**2))
    return (weights @ values.to(centres.dtype)).to(values.dtype)


class _LocalAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        keys: Tensor,
        values: Tensor,
        centres: Tensor,
        direction: Tensor | None,
        mask: Tensor | None,
        window: int,
        sigma: float | None,
        scale: float,
    ) -> Tensor:
        context = values.new_empty(*query.shape[:2], values.shape[-1])
        options = _Options(query, keys, values, direction, mask, window, sigma, scale)
        weights = query.new_empty(*query.shape[:2], options.blocks["BLOCK_W"], dtype=torch.float32)
        kernels.focus[options.grid](
            *(query, keys, values, options.direction, centres, options.mask, context, weights),
            *options.numbers,
            **options.blocks,
        )
        ctx.save_for_backward(query, keys, values, centres, direction, mask, weights)
        ctx.window, ctx.sigma, ctx.scale = window, sigma, scale
        return context

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        query, keys, values, centres, direction, mask, weights = ctx.saved_tensors
        if torch.is_grad_enabled():
            return _differentiable_gradients(ctx, upstream)
        grad_keys, grad_values = (torch.zeros_like(part, dtype=torch.float32) for part in (keys, values))
        grad_query, grad_centres = torch.empty_like(query), torch.empty_like(centres)
        grad_directions = grad_query if direction is None else torch.empty_like(query, dtype=torch.float32)
        options = _Options(query, keys, values, direction, mask, ctx.window, ctx.sigma, ctx.scale)
        kernels.focus_back[options.grid](
            *(query, keys, values, options.direction, centres, options.mask, weights, upstream.contiguous()),
            *(grad_query, grad_keys, grad_values, grad_directions, grad_centres),
            *options.numbers,
            **options.blocks,
        )
        grad_direction = None if direction is None else grad_directions.sum((0, 1)).to(direction.dtype)
        grads = grad_query, grad_keys.to(keys.dtype), grad_values.to(values.dtype), grad_centres, grad_direction
        return *grads, None, None, None, None


class _Options:
    """The arguments of both kernels, other than their tensors."""

    def __init__(
        self,
        query: Tensor,
        keys: Tensor,
        values: Tensor,
        direction: Tensor | None,
        mask: Tensor | None,
        window: int,
        sigma: float | None,
        scale: float,
    ) -> None:
        self.grid = query.shape[1], query.shape[0]
        self.direction = query if direction is None else direction
        self.mask = query if mask is None else mask
        steepness = 0.0 if sigma is None else 1 / (2 * sigma**2)
        strides = (0, 0, 0) if mask is None else mask.stride()
        sizes = query.shape[1], keys.shape[1], keys.shape[2], values.shape[2]
        self.numbers = *sizes, float(scale), float(window), steepness, *strides
        width = triton.next_power_of_2(2 * window + 1)
        self.blocks = {
            "ADDITIVE": direction is not None,
            "HAS_MASK": mask is not None,
            "BLOCK_W": width,
            "BLOCK_DIM": max(16, min(TILE // width, triton.next_power_of_2(max(sizes[2:])))),
        }


def _differentiable_gradients(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
    """Compute the gradients by the plain formula, so that they can be differentiated again."""
    query, keys, values, centres, direction, mask, _ = ctx.saved_tensors
    options = {"window": ctx.window, "sigma": ctx.sigma, "scale": ctx.scale}
    inputs, needed = [query, keys, values, centres], list(ctx.needs_input_grad[:4])
    if direction is not None:
        inputs, needed = [*inputs, direction], [*needed, ctx.needs_input_grad[4]]

    def reference(query: Tensor, keys: Tensor, values: Tensor, centres: Tensor, *rest: Tensor) -> Tensor:
        direction = rest[0] if rest else None
        return local_attention_reference(query, keys, values, centres, mask, direction=direction, **options)

    gradients = plain_gradients(reference, inputs, needed, upstream)
    return *gradients, *(None,) * (9 - len(gradients))
