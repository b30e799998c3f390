"""Logits of any function of query + key, without the (batch, query, key, feature) tensor."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.kernels.blocks import blocks, flatten_lead, plain_gradients

# function(features, *parameters) computes the (...) logits of pairs from their (..., d) features.
PairFunction = Callable[..., Tensor]


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
    logits: Tensor = _PairwiseLogits.apply(query, key, function, width, *parameters)  # type: ignore[no-untyped-call]
    return logits.view(*lead, *logits.shape[1:])


class _PairwiseLogits(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, function: PairFunction, width: int, *parameters: Tensor
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
            needed = [*ctx.needs_input_grad[:2], *ctx.needs_input_grad[4:]]
            first, second, *rest = plain_gradients(
                lambda q, k, *p: pairwise_logits_reference(q, k, ctx.function, *p), ctx.saved_tensors, needed, grad
            )
            return first, second, None, None, *rest
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
        return grad_query, grad_key, None, None, *grad_parameters
