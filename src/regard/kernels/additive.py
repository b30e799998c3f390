"""Additive logits, v' tanh(query + key), without the (batch, query, key, feature) tensor.

The plain formula holds that tensor in the forward and in the backward pass. Here, unless it is small, only one
cache-sized block of it exists at a time, and the backward pass computes it again. Large calls on a CPU with a compiler
use compiled loops of

    tanh(a + b) = 1 - 2 r,  r = 1 / (1 + exp(2a) exp(2b)),  d tanh / da = 4 (r - r^2),

with exponentials once per query and once per key instead of once per pair, so that a pair costs one product, one sum
and one reciprocal. exp(2a) must not overflow; larger inputs are computed block by block.
"""

import math
from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.kernels.additive_compiled import fractions, prefers_compiled_loops, slopes
from regard.kernels.blocks import Block, blocks, flatten_lead, plain_gradients
from regard.kernels.numerics import has_gpu_kernels


def additive_logits_reference(
    query: Float[Tensor, "... q d"], key: Float[Tensor, "... k d"], direction: Float[Tensor, "d"]
) -> Float[Tensor, "... q k"]:
    """Compute v' tanh(query + key) by the plain formula, with the features of all pairs in memory."""
    return torch.tanh(query.unsqueeze(-2) + key.unsqueeze(-3)) @ direction


def additive_logits(
    query: Float[Tensor, "... q d"], key: Float[Tensor, "... k d"], direction: Float[Tensor, "d"]
) -> Float[Tensor, "... q k"]:
    """Compute v' tanh(query + key) in bounded memory: large calls are computed block by block."""
    if _prefers_formula(query, key):
        return (query.unsqueeze(-2) + key.unsqueeze(-3)).tanh_() @ direction
    query, key, lead = flatten_lead(query, key)
    if prefers_gpu_kernels(query, key):
        from regard.kernels.additive_gpu import additive_logits as additive_logits_on_gpu

        return additive_logits_on_gpu(query, key, direction).view(*lead, query.shape[1], key.shape[1])
    logits: Tensor = _AdditiveLogits.apply(query, key, direction)  # type: ignore[no-untyped-call]
    return logits.view(*lead, *logits.shape[1:])


MAX_FEATURES_FOR_FORMULA = 1 << 22
"""Number of pair features (batch x query x key x feature) up to which the plain formula is fastest on a CPU.

It then needs one tensor of at most 16 MiB in float32, in which tanh overwrites the sum, and computes nothing twice.
"""


def _prefers_formula(query: Tensor, key: Tensor) -> bool:
    if query.device.type != "cpu":
        return has_gpu_kernels(query) and not prefers_gpu_kernels(query, key)
    return query.numel() * key.shape[-2] <= MAX_FEATURES_FOR_FORMULA


MIN_FEATURES_FOR_KERNEL, MIN_FEATURES_FOR_KERNEL_WITH_GRADIENTS = 60_000_000, 80_000_000
"""Number of pair features (batch x query x key x feature) from which on the kernels of additive scores are faster.

Below, the plain formula is faster, since its launches cost less. `benchmarks/additive_sizes.py` measures this.
"""


def prefers_gpu_kernels(query: Tensor, key: Tensor) -> bool:
    """Whether the kernels of additive scores support these queries and keys and are faster than the formula."""
    has_gradients = torch.is_grad_enabled() and (query.requires_grad or key.requires_grad)
    least = MIN_FEATURES_FOR_KERNEL_WITH_GRADIENTS if has_gradients else MIN_FEATURES_FOR_KERNEL
    return query.numel() * key.shape[-2] >= least and has_gpu_kernels(query) and has_gpu_kernels(key)


class _AdditiveLogits(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, direction: Tensor) -> Tensor:
        ctx.save_for_backward(query, key, direction)
        exponentials = _exponentials(query, key)
        if exponentials is not None:
            return fractions(*exponentials, direction).mul_(-2).add_(direction.sum())
        logits = query.new_empty(query.shape[0], query.shape[1], key.shape[1])
        flat, start = logits.view(-1), 0
        for _, features in _features(query, key):
            pairs = features.flatten(0, 2)
            torch.mv(pairs, direction, out=flat[start : start + len(pairs)])
            start += len(pairs)
        return logits

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        query, key, direction = ctx.saved_tensors
        if torch.is_grad_enabled():
            # The gradient will be differentiated again, which the plain formula supports.
            return plain_gradients(additive_logits_reference, ctx.saved_tensors, ctx.needs_input_grad, grad)
        exponentials = _exponentials(query, key)
        if exponentials is not None:
            exp_query, exp_key = exponentials
            grad_query, through_complement = slopes(exp_query, exp_key, grad)
            grad_key, _ = slopes(exp_key, exp_query, grad.mT.contiguous())
            grad_direction = grad.sum() - 2 * through_complement.sum((0, 1))
            return grad_query.mul_(4 * direction), grad_key.mul_(4 * direction), grad_direction
        grad_direction = torch.zeros_like(direction)
        new = torch.empty_like if grad.numel() else torch.zeros_like
        grad_query, grad_key = new(query), new(key)
        for block, features in _features(query, key):
            b, q, k = block
            upstream = grad[block]
            grad_direction += upstream.reshape(-1) @ features.flatten(0, 2)
            slope = torch.ops.aten.tanh_backward(upstream.unsqueeze(-1), features)
            _add(grad_query[b, q], _sum(slope, 2), direction, first=k.start == 0)
            _add(grad_key[b, k], _sum(slope, 1), direction, first=q.start == 0)
        return grad_query, grad_key, grad_direction


def _features(query: Tensor, key: Tensor) -> Iterator[tuple[Block, Tensor]]:
    """Compute tanh(query + key), (b, q, k, d), of every block; all blocks share one buffer."""
    queries, keys = query.unsqueeze(2), key.unsqueeze(1)
    shape, buffer, features = None, query.new_empty(0), query.new_empty(0)
    for block in blocks(query, key, features=query.shape[2]):
        b, q, k = block
        before, shape = shape, (b.stop - b.start, q.stop - q.start, k.stop - k.start, query.shape[2])
        if before is None:
            buffer = query.new_empty(math.prod(shape))  # no later block is larger
        if shape != before:
            features = buffer[: math.prod(shape)].view(shape)
        torch.add(queries[b, q], keys[b, :, k], out=features).tanh_()
        yield block, features


def _sum(slope: Tensor, dim: int) -> Tensor:
    return slope.squeeze(dim) if slope.shape[dim] == 1 else slope.sum(dim)


def _add(total: Tensor, part: Tensor, factors: Tensor, *, first: bool) -> None:
    if first:
        torch.mul(part, factors, out=total)
    else:
        total.addcmul_(part, factors)


def _exponentials(query: Tensor, key: Tensor) -> tuple[Tensor, Tensor] | None:
    """Return exp(2x) of queries and keys if the compiled loops apply and the exponentials are finite; else None."""
    if not prefers_compiled_loops(query, key):
        return None
    largest = 0.49 * math.log(torch.finfo(query.dtype).max)
    if max(query.abs().amax().item(), key.abs().amax().item()) >= largest:
        return None
    return (2 * query).exp_(), (2 * key).exp_()
