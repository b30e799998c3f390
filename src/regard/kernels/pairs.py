"""Logits of any function of query + key, block by block, without the (batch, query, key, feature) tensor."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.kernels.numerics import plain_gradients

# function(features, *parameters) computes the (...) logits of pairs from their (..., d) features.
PairFunction = Callable[..., Tensor]
Block = tuple[slice, slice, slice]
"""Slices of the batch, of the queries and of the keys."""

# Number of elements of a (batch, query, key, feature) block: 1 MiB in float32 fits in the cache of each of a few CPU
# cores, while a GPU needs larger blocks to be busy.
CPU_BLOCK = 1 << 18
MAX_CORES = 4
GPU_BLOCK = 1 << 23


def pairwise_logits_reference(
    query: Float[Tensor, "... q d"], key: Float[Tensor, "... k d"], function: PairFunction, *parameters: Tensor
) -> Float[Tensor, "... q k"]:
    """Compute function(query_t + key_i) with the features of all pairs in memory."""
    return function(query.unsqueeze(-2) + key.unsqueeze(-3), *parameters)


def pairwise_logits(
    query: Float[Tensor, "... q d"],
    key: Float[Tensor, "... k d"],
    function: PairFunction,
    *parameters: Tensor,
    width: int,
) -> Float[Tensor, "... q k"]:
    """Compute function(query_t + key_i) block by block; the backward pass computes each block again.

    Gradients reach the query, the key and `parameters`, so these must include every parameter of `function`. `width`
    is the number of features that `function` holds for a pair, over all its layers; it determines the block size.
    """
    query, key, lead = flatten_lead(query, key)
    logits: Tensor = _PairwiseLogits.apply(width, query, key, function, *parameters)  # type: ignore[no-untyped-call]
    return logits.view(*lead, *logits.shape[1:])


class _PairwiseLogits(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, width: int, query: Tensor, key: Tensor, function: PairFunction, *parameters: Tensor
    ) -> Tensor:
        ctx.save_for_backward(query, key, *parameters)
        ctx.function, ctx.width = function, width
        logits = query.new_empty(query.shape[0], query.shape[1], key.shape[1])
        for b, q, k in blocks(query, key, features=width):
            logits[b, q, k] = pairwise_logits_reference(query[b, q], key[b, k], function, *parameters)
        return logits

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        query, key, *parameters = ctx.saved_tensors
        if torch.is_grad_enabled():
            # The gradient will be differentiated again, which the plain formula supports.
            inputs = query, key, ctx.function, *parameters
            return None, *plain_gradients(pairwise_logits_reference, inputs, ctx.needs_input_grad[1:], grad)
        leaves = [parameter.detach().requires_grad_() for parameter in parameters]
        grad_query, grad_key = torch.zeros_like(query), torch.zeros_like(key)
        grad_parameters = [torch.zeros_like(parameter) for parameter in parameters]
        for b, q, k in blocks(query, key, features=ctx.width):
            with torch.enable_grad():
                query_part, key_part = query[b, q].detach().requires_grad_(), key[b, k].detach().requires_grad_()
                logits = pairwise_logits_reference(query_part, key_part, ctx.function, *leaves)
            parts = torch.autograd.grad(logits, [query_part, key_part, *leaves], grad[b, q, k])
            for total, part in zip([grad_query[b, q], grad_key[b, k], *grad_parameters], parts, strict=True):
                total += part
        return None, grad_query, grad_key, None, *grad_parameters


def flatten_lead(query: Tensor, key: Tensor) -> tuple[Tensor, Tensor, torch.Size]:
    """Reshape to one batch axis, (b, q, d) and (b, k, d); also return the leading axes that both broadcast to."""
    lead = query.shape[:-2]
    if lead != key.shape[:-2]:
        lead = torch.broadcast_shapes(lead, key.shape[:-2])
    flat_query, flat_key = (
        side.expand(*lead, *side.shape[-2:]).reshape(lead.numel(), *side.shape[-2:]) for side in (query, key)
    )
    return flat_query, flat_key, lead


def blocks(query: Tensor, key: Tensor, *, features: int) -> Iterator[Block]:
    """Yield slices over the batch, the queries (b, q, d) and the keys (b, k, d), of at least one pair each.

    A block consists of whole examples if they fit, otherwise of whole rows of keys, otherwise of a part of a row, so
    that its pairs are contiguous in a (b, q, k) tensor. No block is larger than the first.
    """
    size = CPU_BLOCK * min(MAX_CORES, torch.get_num_threads()) if query.device.type == "cpu" else GPU_BLOCK
    batch, queries, keys = query.shape[0], query.shape[1], key.shape[1]
    if 0 in (batch, queries, keys):
        return
    features = max(1, features)
    key_step = min(keys, max(1, size // features))
    query_step = min(queries, max(1, size // (features * key_step)))
    batch_step = min(batch, max(1, size // (features * key_step * query_step)))
    for b in range(0, batch, batch_step):
        for q in range(0, queries, query_step):
            for k in range(0, keys, key_step):
                stops = min(b + batch_step, batch), min(q + query_step, queries), min(k + key_step, keys)
                yield slice(b, stops[0]), slice(q, stops[1]), slice(k, stops[2])
