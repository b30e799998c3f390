"""Additive attention on a GPU: scores, softmax and read in one pass over the keys, forward and backward.

Nothing of size (batch, query, key, feature) is ever held, and of size (batch, query, key) only the logits or weights
that are asked for; the backward pass holds SCRATCH pairs at a time. additive_triton.py has the kernels and their idea.
"""

import math
from typing import Any

import torch
import triton
from torch import Tensor
from torch.nn import functional

from regard.kernels import additive_triton as kernels
from regard.kernels.additive import additive_logits_reference
from regard.kernels.blocks import plain_gradients

SCRATCH = 1 << 24
"""Most pairs (batch x query x key) whose weights and gradients are held at a time in the backward pass."""
PROGRAMS = 2048
"""How many programs of one warp fill a GPU."""
TILE: int = kernels.PEAK_TILE.value


def additive_attention(
    query: Tensor, key: Tensor, values: Tensor, direction: Tensor, mask: Tensor | None = None
) -> Tensor:
    """softmax(v' tanh(query + key)) values: (b, q, d), (b, k, d), (b, k, v), (d,) to (b, q, v).

    `mask` broadcasts to (b, q, k); a query that may attend to nothing reads zeros.
    """
    if mask is not None:
        mask = mask.expand(query.shape[0], query.shape[1], key.shape[1])
    context: Tensor = _AdditiveAttention.apply(query, key, values, direction, mask)  # type: ignore[no-untyped-call]
    return context


def additive_logits(query: Tensor, key: Tensor, direction: Tensor) -> Tensor:
    """v' tanh(query + key): (b, q, d), (b, k, d), (d,) to (b, q, k)."""
    logits: Tensor = _AdditiveLogits.apply(query, key, direction)  # type: ignore[no-untyped-call]
    return logits


def additive_attention_reference(
    query: Tensor, key: Tensor, values: Tensor, direction: Tensor, mask: Tensor | None = None
) -> Tensor:
    """The same by the plain formula, with all pairs in memory."""
    return _reference_weights(query, key, direction, mask) @ values


class Sides:
    """Queries and keys made ready for the kernels."""

    def __init__(self, query: Tensor, key: Tensor, direction: Tensor, mask: Tensor | None) -> None:
        self.query, self.key = query, key
        self.batch, self.num_queries, self.dim = query.shape
        self.num_keys = key.shape[1]
        self.padded_dim = triton.cdiv(self.dim, 4) * 4
        self.direction = functional.pad(direction.float(), (0, self.padded_dim - self.dim))
        self.exp_query, self.query_peaks = self._exponentials(query)
        self.exp_key, self.key_peaks = self._exponentials(key)
        self.mask = query if mask is None else mask
        self.mask_strides = (0, 0, 0) if mask is None else mask.stride()
        self.has_mask = mask is not None
        self.fast = query.is_cuda and torch.version.hip is None

    def _exponentials(self, side: Tensor) -> tuple[Tensor, Tensor]:
        batch, count, _ = side.shape
        tiles = triton.cdiv(count, TILE)
        exponentials = torch.empty(batch, self.padded_dim, count, device=side.device, dtype=torch.float32)
        peaks = torch.empty(batch, tiles, device=side.device, dtype=torch.float32)
        kernels.prepare[(tiles, batch)](side, exponentials, peaks, count, self.dim, self.padded_dim, BLOCK_DIM=32)
        return exponentials, peaks

    def attend(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """The context, in float32, and the logarithm of the divisor of each query's weights."""
        value_dim = values.shape[-1]
        block_v = max(16, triton.next_power_of_2(value_dim))
        block_q, block_k = 16, 64 if block_v <= 256 else 32 if block_v <= 1024 else 16
        context = torch.empty(self.batch, self.num_queries, value_dim, device=values.device, dtype=torch.float32)
        normalisers = torch.empty(self.batch, self.num_queries, device=values.device, dtype=torch.float32)
        kernels.attend[(triton.cdiv(self.num_queries, block_q), self.batch)](
            self.query,
            self.key,
            self.exp_query,
            self.exp_key,
            self.query_peaks,
            self.key_peaks,
            self.direction,
            values,
            self.mask,
            context,
            normalisers,
            self.num_queries,
            self.num_keys,
            self.dim,
            self.padded_dim,
            value_dim,
            *self.mask_strides,
            HAS_MASK=self.has_mask,
            FAST=self.fast,
            PRECISION="tf32x3" if values.dtype == torch.float32 else "tf32",
            BLOCK_Q=block_q,
            BLOCK_K=block_k,
            BLOCK_V=block_v,
            num_warps=4 if block_v <= 256 else 8 if block_v <= 1024 else 16,
        )
        return context, normalisers

    def weigh(self, normalisers: Tensor | None = None) -> Tensor:
        """The weights (b, q, k) in float32; without normalisers, the logits."""
        output = torch.empty(self.batch, self.num_queries, self.num_keys, device=self.query.device, dtype=torch.float32)
        block_q, block_k = min(32, triton.next_power_of_2(self.num_queries)), 64
        kernels.weigh[(triton.cdiv(self.num_keys, block_k), triton.cdiv(self.num_queries, block_q), self.batch)](
            self.query,
            self.key,
            self.exp_query,
            self.exp_key,
            self.query_peaks,
            self.key_peaks,
            self.direction,
            self.mask,
            self.query if normalisers is None else normalisers,
            output,
            self.num_queries,
            self.num_keys,
            self.dim,
            self.padded_dim,
            *self.mask_strides,
            HAS_MASK=self.has_mask,
            FAST=self.fast,
            AS_WEIGHTS=normalisers is not None,
            BLOCK_Q=block_q,
            BLOCK_K=block_k,
        )
        return output

    def backward(self, upstream: Tensor, grad_query: Tensor, grad_key: Tensor) -> Tensor:
        """Add what reaches queries and keys through the logits (b, q, k); gives the gradient of the direction."""
        block_q, block_dim = 16, 32
        blocks = self.batch * triton.cdiv(self.dim, block_dim)
        share = _share(self.num_queries, self.num_keys, PROGRAMS // blocks)
        query_shares, key_shares = triton.cdiv(self.num_queries, share), triton.cdiv(self.num_keys, share)
        query_parts = upstream.new_empty(key_shares, *self.query.shape)
        key_parts = upstream.new_zeros(query_shares, *self.key.shape)
        fractions = upstream.new_empty(query_shares * key_shares, self.batch, self.dim)
        kernels.slopes[(query_shares * key_shares, triton.cdiv(self.dim, block_dim), self.batch)](
            self.query,
            self.key,
            self.query_peaks,
            self.key_peaks,
            self.direction,
            upstream,
            query_parts,
            key_parts,
            fractions,
            self.num_queries,
            self.num_keys,
            self.dim,
            *upstream.stride(),
            SHARE=share,
            FAST=self.fast,
            BLOCK_Q=block_q,
            BLOCK_DIM=block_dim,
            num_warps=1,
        )
        grad_query += query_parts.sum(0)
        grad_key += key_parts.sum(0)
        return upstream.sum() - 2 * fractions.sum((0, 1))


def _share(num_queries: int, num_keys: int, programs: int) -> int:
    """How many queries, and how many keys, one program takes, so that about so many share the work of an example."""
    share: int = triton.next_power_of_2(math.isqrt(num_queries * num_keys // max(1, programs)))
    return max(TILE, share)


class _AdditiveAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, values: Tensor, direction: Tensor, mask: Tensor | None) -> Tensor:
        query, key, values = query.contiguous(), key.contiguous(), values.contiguous()
        context, normalisers = Sides(query, key, direction, mask).attend(values)
        ctx.save_for_backward(query, key, values, direction, mask, context, normalisers)
        return context.to(values.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        query, key, values, direction, mask, context, normalisers = ctx.saved_tensors
        if torch.is_grad_enabled():
            # The gradient is to be differentiated again, which the plain formula can do.
            needed = ctx.needs_input_grad[:4]
            return *plain_gradients(
                lambda q, k, x, v: additive_attention_reference(q, k, x, v, mask), ctx.saved_tensors[:4], needed, grad
            ), None
        grad_query, grad_key, grad_values = (
            torch.zeros(side.shape, device=side.device, dtype=torch.float32) for side in (query, key, values)
        )
        grad_direction = torch.zeros(direction.shape, device=direction.device, dtype=torch.float32)
        upstream = grad.float()
        common = (upstream * context).sum(-1, keepdim=True)
        for b, q in _chunks(len(query), query.shape[1], key.shape[1]):
            sides = Sides(query[b, q], key[b], direction, None if mask is None else mask[b, q])
            weights = sides.weigh(normalisers[b, q].contiguous())
            grad_values[b] += weights.mT @ upstream[b, q]
            through_weights = upstream[b, q] @ values[b].float().mT
            grad_logits = through_weights.sub_(common[b, q]).mul_(weights)
            grad_direction += sides.backward(grad_logits, grad_query[b, q], grad_key[b])
        return (
            grad_query.to(query.dtype),
            grad_key.to(key.dtype),
            grad_values.to(values.dtype),
            grad_direction.to(direction.dtype),
            None,
        )


class _AdditiveLogits(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, direction: Tensor) -> Tensor:
        query, key = query.contiguous(), key.contiguous()
        ctx.save_for_backward(query, key, direction)
        return Sides(query, key, direction, None).weigh().to(query.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        query, key, direction = ctx.saved_tensors
        if torch.is_grad_enabled():
            # The gradient is to be differentiated again, which the plain formula can do.
            return plain_gradients(additive_logits_reference, ctx.saved_tensors, ctx.needs_input_grad, grad)
        grad_query, grad_key = (
            torch.zeros(side.shape, device=side.device, dtype=torch.float32) for side in (query, key)
        )
        grad_direction = Sides(query, key, direction, None).backward(grad.float(), grad_query, grad_key)
        return grad_query.to(query.dtype), grad_key.to(key.dtype), grad_direction.to(direction.dtype)


def _chunks(batch: int, num_queries: int, num_keys: int) -> list[tuple[slice, slice]]:
    """Parts of the batch, or of one example's queries, with at most SCRATCH pairs, so that each lies in one piece."""
    examples = max(1, SCRATCH // max(1, num_queries * num_keys))
    queries = max(num_queries, 1) if examples > 1 else max(TILE, SCRATCH // max(1, num_keys) // TILE * TILE)
    return [
        (slice(b, min(b + examples, batch)), slice(q, min(q + queries, num_queries)))
        for b in range(0, batch, examples)
        for q in range(0, num_queries, queries)
    ]


def _reference_weights(query: Tensor, key: Tensor, direction: Tensor, mask: Tensor | None) -> Tensor:
    logits = additive_logits_reference(query, key, direction)
    if mask is None:
        return logits.softmax(-1)
    closed = ~mask.any(-1, keepdim=True)
    return logits.masked_fill(~(mask | closed), float("-inf")).softmax(-1).masked_fill(closed, 0)
