"""Additive attention on a GPU, forward and backward; additive_triton.py has the kernels and explains them.

No tensor of size (batch, query, key, feature) exists. The logits of at most MAX_PAIRS_IN_MEMORY pairs
(batch x query x key) exist at a time; they are normalised in place and multiplied with the values. A call of no more
pairs keeps its weights for the backward pass; a larger one keeps only the logarithms of the softmax denominators, and
computes the weights again.
"""

import math
from typing import Any

import torch
import triton
from torch import Tensor
from torch.nn import functional

from regard.kernels import additive_slopes_triton as slope_kernels
from regard.kernels import additive_triton as kernels
from regard.kernels.additive import additive_logits_reference
from regard.kernels.blocks import plain_gradients

MAX_PAIRS_IN_MEMORY = 1 << 24
"""Number of pairs whose weights exist at a time: 64 MiB."""
TARGET_PROGRAMS = 4096
"""Number of programs of one warp that keep a GPU busy: somewhat more than run at once."""
MAX_REGISTERS = 168
"""Registers per thread of the gradient kernel; with more, too few programs run at once to hide memory latency."""
TILE: int = kernels.PEAK_TILE.value
QUERIES: int = kernels.QUERIES.value
GROUP: int = slope_kernels.GROUP.value


def additive_attention(
    query: Tensor, key: Tensor, values: Tensor, direction: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Compute softmax(v' tanh(query + key)) values: (b, q, d), (b, k, d), (b, k, v), (d,) to (b, q, v).

    `mask` broadcasts to (b, q, k); the context of a query that may attend to nothing is zero.
    """
    if mask is not None:
        mask = mask.expand(query.shape[0], query.shape[1], key.shape[1])
    query, key, values = query.contiguous(), key.contiguous(), values.contiguous()
    context: Tensor = _AdditiveAttention.apply(query, key, values, direction, mask)  # type: ignore[no-untyped-call]
    return context


def additive_logits(query: Tensor, key: Tensor, direction: Tensor) -> Tensor:
    """Compute v' tanh(query + key): (b, q, d), (b, k, d), (d,) to (b, q, k)."""
    query, key = query.contiguous(), key.contiguous()
    logits: Tensor = _AdditiveLogits.apply(query, key, direction)  # type: ignore[no-untyped-call]
    return logits


def additive_attention_reference(
    query: Tensor, key: Tensor, values: Tensor, direction: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Compute `additive_attention` by the plain formula, with the features of all pairs in memory."""
    return _reference_weights(query, key, direction, mask) @ values


class Sides:
    """Queries and keys, prepared for the kernels."""

    def __init__(self, query: Tensor, key: Tensor, direction: Tensor, mask: Tensor | None) -> None:
        self.query, self.key, self.direction = query, key, direction.float()
        self.batch, self.num_queries, self.dim = query.shape
        self.num_keys = key.shape[1]
        self.mask = query if mask is None else mask
        self.mask_strides = (0, 0, 0) if mask is None else mask.stride()
        self.has_mask = mask is not None
        self.fast = query.is_cuda and torch.version.hip is None

    def logits(self) -> Tensor:
        """Compute v' tanh(query + key), (b, q, k) in float32; -inf where the mask is False."""
        exp_query, exp_key, query_peaks, key_peaks = self._exponentials()
        padded_dim = exp_query.shape[2]
        fill = padded_dim - self.dim
        direction = functional.pad(self.direction, (0, fill)) if fill else self.direction
        output = torch.empty(self.batch, self.num_queries, self.num_keys, device=self.query.device, dtype=torch.float32)
        block = 64 if self.num_keys > 32 else 32
        kernels.score[(triton.cdiv(self.num_queries, QUERIES), triton.cdiv(self.num_keys, block), self.batch)](
            self.query,
            self.key,
            exp_query.view(torch.int64),
            exp_key,
            query_peaks,
            key_peaks,
            direction,
            direction.view(torch.int64),
            self.mask,
            output,
            self.num_queries,
            self.num_keys,
            self.dim,
            padded_dim,
            exp_key.shape[2],
            *self.mask_strides,
            HAS_MASK=self.has_mask,
            FAST=self.fast,
            BLOCK=block,
            num_warps=1,
        )
        return output

    def _exponentials(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Compute exp(2x) of queries and keys in the layout of `score`, and the largest |x| of each tile of rows."""
        padded_dim = triton.cdiv(self.dim, 4) * 4
        tiles = triton.cdiv(self.num_queries, TILE), triton.cdiv(self.num_keys, TILE)
        padded_queries = triton.cdiv(self.num_queries, QUERIES) * QUERIES
        shapes = [(padded_queries, padded_dim), (padded_dim, tiles[1] * TILE), (tiles[0],), (tiles[1],)]
        outputs = [torch.empty(self.batch, *shape, device=self.query.device, dtype=torch.float32) for shape in shapes]
        kernels.prepare[(sum(tiles), self.batch)](
            self.query,
            self.key,
            *outputs,
            self.num_queries,
            self.num_keys,
            self.dim,
            padded_dim,
            tiles[1] * TILE,
            TILE=TILE,
            BLOCK=32,
        )
        return outputs[0], outputs[1], outputs[2], outputs[3]

    def backward(self, upstream: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Compute the gradients of queries, keys and direction, in float32.

        `upstream` is the gradient of the logits, (b, group of queries, k, query). The gradient of the direction lacks
        the sum of `upstream`, which the caller adds.
        """
        block = 64 if self.dim > 32 else 32
        blocks = triton.cdiv(self.dim, block)
        query_share, key_share = _shares(self.num_queries, self.num_keys, TARGET_PROGRAMS // (self.batch * blocks))
        query_shares, key_shares = triton.cdiv(self.num_queries, query_share), triton.cdiv(self.num_keys, key_share)
        parts = (
            upstream.new_empty(key_shares, *self.query.shape),
            upstream.new_empty(query_shares, *self.key.shape),
            upstream.new_empty(query_shares * key_shares, self.batch, self.dim),
        )
        slope_kernels.slopes[(query_shares * key_shares, blocks, self.batch)](
            self.query,
            self.key,
            upstream.view(-1).view(torch.int64),
            *parts,
            self.num_queries,
            self.num_keys,
            self.dim,
            QUERY_SHARE=query_share,
            KEY_SHARE=key_share,
            FAST=self.fast,
            BLOCK=block,
            num_warps=1,
            maxnreg=MAX_REGISTERS,
        )
        sums = tuple(upstream.new_empty(of.shape) for of in (self.query, self.key, self.direction))
        sizes = self.query.numel(), self.key.numel()
        slope_kernels.gather[(triton.cdiv(sizes[0], 1024) + triton.cdiv(sizes[1], 1024) + triton.cdiv(self.dim, 32),)](
            *parts,
            self.direction,
            *sums,
            *sizes,
            query_shares,
            key_shares,
            query_shares * key_shares * self.batch,
            self.dim,
            BLOCK=1024,
        )
        return sums[0], sums[1], sums[2]


def _normalise(logits: Tensor, normalisers: Tensor, *, given: bool) -> Tensor:
    """Compute the softmax over the keys in place; `normalisers` (b, q) are inputs if `given`, otherwise outputs."""
    block = min(4096, triton.next_power_of_2(logits.shape[-1]))
    kernels.normalise[(normalisers.numel(),)](logits, normalisers, logits.shape[-1], GIVEN=given, BLOCK=block)
    return logits


def _normalise_back(weights: Tensor, gradients: Tensor) -> Tensor:
    """Compute the gradients of the logits from those of the weights, in the layout of Sides.backward."""
    batch, num_queries, num_keys = weights.shape
    groups = triton.cdiv(num_queries, GROUP)
    slopes = weights.new_empty(batch, groups, num_keys, GROUP)
    block = min(256, triton.next_power_of_2(num_keys))
    slope_kernels.normalise_back[(groups, batch)](weights, gradients, slopes, num_queries, num_keys, BLOCK=block)
    return slopes


def in_groups(gradients: Tensor) -> Tensor:
    """Rearrange the gradients of logits (b, q, k) to (b, group of queries, k, query), as for Sides.backward."""
    filled = functional.pad(gradients, (0, 0, 0, -gradients.shape[1] % GROUP))
    return filled.view(len(filled), -1, GROUP, filled.shape[-1]).mT.contiguous()


def _shares(num_queries: int, num_keys: int, programs: int) -> tuple[int, int]:
    """Return the numbers of queries and keys of one program, so that about `programs` of them share an example.

    There are four times as many queries as keys, since a program goes through its keys once per GROUP of queries, and
    the sums of fewer keys stay in the cache.
    """
    half_a_side = max(1, math.isqrt(num_queries * num_keys // max(1, programs)) // 2)
    keys = max(32, 1 << half_a_side.bit_length() - 1)
    return 4 * keys, keys


class _AdditiveAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, values: Tensor, direction: Tensor, mask: Tensor | None) -> Tensor:
        chunks = _chunks(len(query), query.shape[1], key.shape[1])
        if len(chunks) == 1:
            context, normalisers, kept = _attended(query, key, values, direction, mask)
        else:
            context = values.new_empty(*query.shape[:2], values.shape[-1])
            normalisers, kept = values.new_empty(query.shape[:2], dtype=torch.float32), None
            for b, q in chunks:
                part = query[b, q], key[b], values[b], direction, None if mask is None else mask[b, q]
                context[b, q], normalisers[b, q], _ = _attended(*part)
        ctx.save_for_backward(query, key, values, direction, mask, normalisers, kept)
        return context

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        query, key, values, direction, mask, normalisers, kept = ctx.saved_tensors
        inputs = query, key, values, direction
        if torch.is_grad_enabled():
            # The gradient will be differentiated again, which the plain formula supports.
            needed = ctx.needs_input_grad[:4]
            return *plain_gradients(
                lambda q, k, x, v: additive_attention_reference(q, k, x, v, mask), inputs, needed, grad
            ), None
        if kept is not None:
            grads = _gradients(Sides(query, key, direction, mask), values, kept, grad)
        else:
            grads = tuple(torch.zeros_like(side, dtype=torch.float32) for side in inputs)
            for b, q in _chunks(len(query), query.shape[1], key.shape[1]):
                sides = Sides(query[b, q], key[b], direction, None if mask is None else mask[b, q])
                weights = _normalise(sides.logits(), normalisers[b, q].contiguous(), given=True)
                totals = grads[0][b, q], grads[1][b], grads[2][b], grads[3]
                for total, part in zip(totals, _gradients(sides, values[b], weights, grad[b, q]), strict=True):
                    total += part
        return *(part.to(side.dtype) for part, side in zip(grads, inputs, strict=True)), None


def _gradients(sides: Sides, values: Tensor, weights: Tensor, grad: Tensor) -> tuple[Tensor, ...]:
    """Compute the gradients of queries, keys, values and direction from that of the context, in float32."""
    grad = grad.float().contiguous()
    # The gradients of the logits of each query sum to 0, so that of the direction is complete.
    of_query, of_key, of_direction = sides.backward(_normalise_back(weights, grad @ values.float().mT))
    return of_query, of_key, weights.mT @ grad, of_direction


def _attended(
    query: Tensor, key: Tensor, values: Tensor, direction: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the context, the logarithms of the softmax denominators, and the weights."""
    logits = Sides(query, key, direction, mask).logits()
    normalisers = logits.new_empty(logits.shape[:2])
    weights = _normalise(logits, normalisers, given=False)
    return (weights @ values.float()).to(values.dtype), normalisers, weights


class _AdditiveLogits(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, direction: Tensor) -> Tensor:
        ctx.save_for_backward(query, key, direction)
        return Sides(query, key, direction, None).logits().to(query.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        query, key, direction = ctx.saved_tensors
        if torch.is_grad_enabled():
            # The gradient will be differentiated again, which the plain formula supports.
            return plain_gradients(additive_logits_reference, ctx.saved_tensors, ctx.needs_input_grad, grad)
        of_query, of_key, of_direction = Sides(query, key, direction, None).backward(in_groups(grad.float()))
        grads = of_query, of_key, of_direction + grad.float().sum()
        return tuple(part.to(side.dtype) for part, side in zip(grads, ctx.saved_tensors, strict=True))


def _chunks(batch: int, num_queries: int, num_keys: int) -> list[tuple[slice, slice]]:
    """Return slices of the batch and the queries with at most MAX_PAIRS_IN_MEMORY contiguous pairs each."""
    examples = max(1, MAX_PAIRS_IN_MEMORY // max(1, num_queries * num_keys))
    queries = max(num_queries, 1) if examples > 1 else max(TILE, MAX_PAIRS_IN_MEMORY // max(1, num_keys) // TILE * TILE)
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
