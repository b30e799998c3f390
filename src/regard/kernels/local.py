"""Local attention on a GPU, one kernel each for the forward and the backward pass; the cost grows with the window.

Where several queries see one key, their gradients are added in any order, so that two runs may differ in the last bits.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.kernels.additive import additive_logits_reference
from regard.kernels.numerics import masked_softmax, next_power_of_2, plain_gradients, triton_kernels

MAX_WINDOW = 500
"""The largest window that the kernels support, in positions on each side of the centre."""
TILE = 4096
"""Number of elements of the keys that a program loads at a time."""


class Window(NamedTuple):
    """Which keys a query attends to, and how."""

    size: int
    """Keys within this distance of the centre; positions are counted from 0."""
    sigma: float | None = None
    """Weights are multiplied by exp(-(position - centre)^2 / (2 sigma^2)), if there is a sigma."""
    scale: float = 1.0
    """Factor of products; additive scores have none."""
    mask: Tensor | None = None
    """Which keys may be attended to; broadcasts to (b, q, k)."""


def local_attention(
    query: Tensor, keys: Tensor, values: Tensor, centres: Tensor, direction: Tensor | None, window: Window
) -> Tensor:
    """Attend to the keys within a window around a centre: (b, q, d), (b, k, d), (b, k, v), (b, q) to (b, q, v).

    The weights inside the window are softmax(v' tanh(query + key)), or softmax(scale query' key) without a direction.
    Gradients reach the centres through the Gaussian only.
    """
    if window.mask is not None:
        window = window._replace(mask=window.mask.expand(query.shape[0], query.shape[1], keys.shape[1]))
    query, keys, values = query.contiguous(), keys.contiguous(), values.contiguous()
    context: Tensor = _LocalAttention.apply(  # type: ignore[no-untyped-call]
        query, keys, values, centres.float().contiguous(), direction, window
    )
    return context


def local_attention_reference(
    query: Tensor, keys: Tensor, values: Tensor, centres: Tensor, direction: Tensor | None, window: Window
) -> Tensor:
    """Compute `local_attention` by the plain formula over all keys, in the precision of the centres."""
    query, keys, dtype = query.to(centres.dtype), keys.to(centres.dtype), values.dtype
    if direction is None:
        logits = window.scale * (query.unsqueeze(2) * keys.unsqueeze(1)).sum(-1)
    else:
        logits = additive_logits_reference(query, keys, direction.to(centres.dtype))
    offsets = torch.arange(keys.shape[1], device=keys.device) - centres.unsqueeze(-1)
    is_open = offsets.detach().abs() <= window.size
    weights = masked_softmax(logits, is_open if window.mask is None else is_open & window.mask)
    if window.sigma is not None:
        weights = weights * torch.exp(-offsets.square() / (2 * window.sigma**2))
    return (weights @ values.to(centres.dtype)).to(dtype)


class _LocalAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        query, _, values, *_, window = inputs
        tensors, numbers, blocks = _arguments(*inputs)
        context: Tensor = values.new_empty(*query.shape[:2], values.shape[-1])
        weights = query.new_empty(*query.shape[:2], blocks["BLOCK_W"], dtype=torch.float32)
        triton_kernels("local").focus[query.shape[1], query.shape[0]](*tensors, context, weights, *numbers, **blocks)
        ctx.save_for_backward(*inputs[:-1], weights)
        ctx.window = window
        return context

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        *saved, weights = ctx.saved_tensors
        inputs = *saved, ctx.window
        if torch.is_grad_enabled():
            # The gradient will be differentiated again, which the plain formula supports.
            return plain_gradients(local_attention_reference, inputs, ctx.needs_input_grad, upstream)
        query, keys, values, centres, direction = saved
        grad_keys, grad_values = (torch.zeros_like(part, dtype=torch.float32) for part in (keys, values))
        grad_query, grad_centres = torch.empty_like(query), torch.empty_like(centres)
        grad_directions = grad_query if direction is None else torch.empty_like(query, dtype=torch.float32)
        grads = grad_query, grad_keys, grad_values, grad_directions, grad_centres
        tensors, numbers, blocks = _arguments(*inputs)
        triton_kernels("local").focus_back[query.shape[1], query.shape[0]](
            *tensors, weights, upstream.contiguous(), *grads, *numbers, **blocks
        )
        grad_direction = None if direction is None else grad_directions.sum((0, 1)).to(direction.dtype)
        return grad_query, grad_keys.to(keys.dtype), grad_values.to(values.dtype), grad_centres, grad_direction, None


def _arguments(
    query: Tensor, keys: Tensor, values: Tensor, centres: Tensor, direction: Tensor | None, window: Window
) -> tuple[tuple[Tensor, ...], tuple[int | float, ...], dict[str, int]]:
    """The tensors, numbers and block sizes that both kernels take; the query stands for a tensor that is not there."""
    tensors = query, keys, values, query if direction is None else direction, centres
    mask, strides = (query, (0, 0, 0)) if window.mask is None else (window.mask, window.mask.stride())
    steepness = 0.0 if window.sigma is None else 1 / (2 * window.sigma**2)
    sizes = query.shape[1], keys.shape[1], keys.shape[2], values.shape[2]
    width = next_power_of_2(2 * window.size + 1)
    blocks = {
        "ADDITIVE": direction is not None,
        "HAS_MASK": window.mask is not None,
        "BLOCK_W": width,
        "BLOCK_DIM": max(16, min(TILE // width, next_power_of_2(max(sizes[2:])))),
    }
    return (*tensors, mask), (*sizes, float(window.scale), float(window.size), steepness, *strides), blocks
