"""Additive logits, v' tanh(query + key), without the (batch, query, key, feature) tensor.

The plain broadcast holds that tensor, forward and backward. Here it exists one cache-sized block at a time and is
computed again in the backward pass. Each block uses

    tanh(a + b) = 1 - 2 r,  r = 1 / (1 + exp(2a) exp(2b)),  d tanh / da = 4 (r - r^2),

so that the exponentials are taken once per query and once per key instead of once per pair, and a pair costs one
product, one sum and one reciprocal. exp(2a) must stay finite: inputs beyond the range take tanh itself, block by block.
"""

import math
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.kernels.additive_compiled import compiling_pays, fractions, slopes
from regard.kernels.blocks import blocks, flatten_lead, plain_gradients
from regard.kernels.gpu import has_gpu_kernels, kernels_pay


def additive_logits_reference(
    query: Float[Tensor, "... q d"], key: Float[Tensor, "... k d"], direction: Float[Tensor, "d"]
) -> Float[Tensor, "... q k"]:
    """The formula as the papers write it, for reading and for comparing with."""
    return torch.tanh(query.unsqueeze(-2) + key.unsqueeze(-3)) @ direction


def additive_logits(
    query: Float[Tensor, "... q d"], key: Float[Tensor, "... k d"], direction: Float[Tensor, "d"]
) -> Float[Tensor, "... q k"]:
    """The same numbers from blocks: extra memory is one block, whatever the sizes."""
    if has_gpu_kernels(query) and not kernels_pay(query, key):
        return additive_logits_reference(query, key, direction)
    query, key, lead = flatten_lead(query, key)
    if kernels_pay(query, key):
        from regard.kernels.additive_gpu import additive_logits as by_gpu

        return by_gpu(query, key, direction).view(*lead, query.shape[1], key.shape[1])
    logits: Tensor = _AdditiveLogits.apply(query, key, direction)  # type: ignore[no-untyped-call]
    return logits.view(*lead, *logits.shape[1:])


FEW = 4
"""With fewer queries, as in decoding, the exponentials of the keys are shared by too few."""


class _Pairs(NamedTuple):
    """The two sides of every pair, prepared once: exponentials where they are finite, else the inputs themselves."""

    query: Tensor
    key: Tensor
    rational: bool

    def complement(self, block: tuple[slice, slice, slice]) -> Tensor:
        """r = (1 - tanh(query + key)) / 2 for one block, (b, q, k, d)."""
        b, q, k = block
        query, key = self.query[b, q].unsqueeze(2), self.key[b, k].unsqueeze(1)
        if self.rational:
            return (query * key).add_(1).reciprocal_()
        return (query + key).tanh_().mul_(-0.5).add_(0.5)


def _pairs(query: Tensor, key: Tensor) -> _Pairs:
    # On the CPU the range is checked; on other devices the check would stop the queue, and tanh is cheap there. A few
    # queries, as in decoding, share the exponentials of the keys with too few others.
    if query.device.type == "cpu" and query.shape[1] >= FEW and query.numel() and key.numel():
        largest = 0.49 * math.log(torch.finfo(query.dtype).max)
        if max(query.abs().amax().item(), key.abs().amax().item()) < largest:
            return _Pairs((2 * query).exp_(), (2 * key).exp_(), rational=True)
    return _Pairs(query, key, rational=False)


class _AdditiveLogits(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, direction: Tensor) -> Tensor:
        ctx.save_for_backward(query, key, direction)
        pairs = _pairs(query, key)
        if pairs.rational and compiling_pays(query, key):
            return fractions(pairs.query, pairs.key, direction).mul_(-2).add_(direction.sum())
        logits = query.new_empty(query.shape[0], query.shape[1], key.shape[1])
        for block in blocks(query, key, features=query.shape[2]):
            logits[block] = pairs.complement(block) @ direction
        return logits.mul_(-2).add_(direction.sum())

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        query, key, direction = ctx.saved_tensors
        if torch.is_grad_enabled():
            # The gradient is to be differentiated again, which the plain formula can do.
            return plain_gradients(additive_logits_reference, ctx.saved_tensors, ctx.needs_input_grad, grad)
        pairs = _pairs(query, key)
        if pairs.rational and compiling_pays(query, key):
            grad_query, through_complement = slopes(pairs.query, pairs.key, grad)
            grad_key, _ = slopes(pairs.key, pairs.query, grad.mT.contiguous())
            grad_direction = grad.sum() - 2 * through_complement.sum((0, 1))
            return grad_query.mul_(4 * direction), grad_key.mul_(4 * direction), grad_direction
        grad_query, grad_key = torch.zeros_like(query), torch.zeros_like(key)
        through_complement = torch.zeros_like(direction)
        for block in blocks(query, key, features=query.shape[2]):
            b, q, k = block
            complement, upstream = pairs.complement(block), grad[block]
            through_complement += upstream.reshape(-1) @ complement.flatten(0, 2)
            slope = complement.addcmul_(complement, complement, value=-1).mul_(upstream.unsqueeze(-1))
            grad_query[b, q] += slope.sum(2)
            grad_key[b, k] += slope.sum(1)
        grad_direction = grad.sum() - 2 * through_complement
        return grad_query.mul_(4 * direction), grad_key.mul_(4 * direction), grad_direction
