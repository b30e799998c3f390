"""Additive attention on a GPU, forward and backward; additive_triton.py has the kernels and their idea.

Nothing of size (batch, query, key, feature) is ever held. The logits of SCRATCH pairs (batch x query x key) exist at a
time, normalised in place and read with by a matrix product. A call of no more pairs than that keeps its weights for the
backward pass; a larger one keeps the logarithms of their divisors alone, and computes the weights again.
"""

import math
from typing import Any

import torch
import triton
from torch import Tensor
from torch.nn import functional

from regard.kernels import additive_triton as kernels
from regard.kernels.additive import additive_logits_reference
from regard.kernels.additive_slopes_triton import slopes
from regard.kernels.blocks import plain_gradients

SCRATCH = 1 << 24
"""Pairs whose weights are held at a time: 64 MiB."""
PROGRAMS = 8192
"""How many programs of one warp keep a GPU busy: some more than fit at once."""
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
        self.query, self.key, self.direction = query, key, direction.float()
        self.batch, self.num_queries, self.dim = query.shape
        self.num_keys = key.shape[1]
        self.mask = query if mask is None else mask
        self.mask_strides = (0, 0, 0) if mask is None else mask.stride()
        self.has_mask = mask is not None
        self.fast = query.is_cuda and torch.version.hip is None

    def logits(self) -> Tensor:
        """v' tanh(query + key), (b, q, k) in float32; -inf where the mask is False."""
        exp_query, exp_key, query_peaks, key_peaks = self._exponentials()
        padded_dim = exp_query.shape[2]
        direction = _filled(self.direction, (0, padded_dim - self.dim))
        output = torch.empty(self.batch, self.num_queries, self.num_keys, device=self.query.device, dtype=torch.float32)
        block = 64 if self.num_keys > 32 else 32
        kernels.score[(triton.cdiv(self.num_queries, 8), triton.cdiv(self.num_keys, block), self.batch)](
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
        """exp(2x) of both sides, with the keys transposed, and the largest |x| of each tile of rows."""
        padded_dim = triton.cdiv(self.dim, 4) * 4
        tiles = triton.cdiv(self.num_queries, TILE), triton.cdiv(self.num_keys, TILE)
        shapes = [(self.num_queries, padded_dim), (padded_dim, tiles[1] * TILE), (tiles[0],), (tiles[1],)]
        made = [torch.empty(self.batch, *shape, device=self.query.device, dtype=torch.float32) for shape in shapes]
        kernels.prepare[(sum(tiles), self.batch)](
            self.query,
            self.key,
            *made,
            self.num_queries,
            self.num_keys,
            self.dim,
            padded_dim,
            tiles[1] * TILE,
            TILE=TILE,
            BLOCK=32,
        )
        return made[0], made[1], made[2], made[3]

    def backward(self, upstream: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """From the gradient of the logits (b, q, k) to those of queries, keys and direction, in float32."""
        block = 64 if self.dim > 32 else 32
        blocks = triton.cdiv(self.dim, block)
        query_share, key_share = _shares(self.num_queries, self.num_keys, PROGRAMS // (self.batch * blocks))
        query_shares, key_shares = triton.cdiv(self.num_queries, query_share), triton.cdiv(self.num_keys, key_share)
        query_parts = upstream.new_empty(key_shares, *self.query.shape)
        key_parts = upstream.new_empty(query_shares, *self.key.shape)
        fractions = upstream.new_empty(query_shares * key_shares, self.batch, self.dim)
        filled = _filled(upstream, (0, -self.num_keys % 2, 0, -self.num_queries % 8))
        slopes[(query_shares * key_shares, blocks, self.batch)](
            self.query,
            self.key,
            filled.contiguous().view(torch.int64),
            query_parts,
            key_parts,
            fractions,
            self.num_queries,
            self.num_keys,
            self.dim,
            QUERY_SHARE=query_share,
            KEY_SHARE=key_share,
            FAST=self.fast,
            BLOCK=block,
            num_warps=1,
        )
        factor = 4 * self.direction
        grad_direction = upstream.sum() - 2 * fractions.sum((0, 1))
        return query_parts.sum(0).mul_(factor), key_parts.sum(0).mul_(factor), grad_direction


def _normalise(logits: Tensor, normalisers: Tensor, *, given: bool) -> Tensor:
    """The softmax over the keys in place; `normalisers` (b, q) are filled, or given."""
    block = min(4096, triton.next_power_of_2(logits.shape[-1]))
    kernels.normalise[(normalisers.numel(),)](logits, normalisers, logits.shape[-1], GIVEN=given, BLOCK=block)
    return logits


def _shares(num_queries: int, num_keys: int, programs: int) -> tuple[int, int]:
    """How many queries and how many keys one program takes, so that about so many share the work of an example."""
    side = max(1, math.isqrt(num_queries * num_keys // max(1, programs)))
    return max(16, 1 << side.bit_length() - 1), max(32, 1 << side.bit_length())


def _filled(tensor: Tensor, amounts: tuple[int, ...]) -> Tensor:
    """With so many zeros added; as it is where none are."""
    return functional.pad(tensor, amounts) if any(amounts) else tensor


class _AdditiveAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, values: Tensor, direction: Tensor, mask: Tensor | None) -> Tensor:
        query, key, values = query.contiguous(), key.contiguous(), values.contiguous()
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
        if torch.is_grad_enabled():
            # The gradient is to be differentiated again, which the plain formula can do.
            needed = ctx.needs_input_grad[:4]
            return *plain_gradients(
                lambda q, k, x, v: additive_attention_reference(q, k, x, v, mask), ctx.saved_tensors[:4], needed, grad
            ), None
        chunks = _chunks(len(query), query.shape[1], key.shape[1])
        grads = [torch.zeros_like(side, dtype=torch.float32) for side in ctx.saved_tensors[:4] if len(chunks) > 1]
        for b, q in chunks:
            sides = Sides(query[b, q], key[b], direction, None if mask is None else mask[b, q])
            if len(chunks) > 1:
                kept = _normalise(sides.logits(), normalisers[b, q].contiguous(), given=True)
            upstream = grad[b, q].float()
            through = upstream @ values[b].float().mT
            block = min(4096, triton.next_power_of_2(kept.shape[-1]))
            kernels.normalise_back[(through.numel() // kept.shape[-1],)](kept, through, kept.shape[-1], BLOCK=block)
            of_query, of_key, of_direction = sides.backward(through)
            found = of_query, of_key, kept.mT @ upstream, of_direction
            if len(chunks) == 1:
                grads = list(found)
            else:
                for total, part in zip((grads[0][b, q], grads[1][b], grads[2][b], grads[3]), found, strict=True):
                    total += part
        return *(grad.to(side.dtype) for grad, side in zip(grads, ctx.saved_tensors[:4], strict=True)), None


def _attended(
    query: Tensor, key: Tensor, values: Tensor, direction: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """What is read, the logarithms of the divisors of the weights, and the weights."""
    logits = Sides(query, key, direction, mask).logits()
    normalisers = logits.new_empty(logits.shape[:2])
    weights = _normalise(logits, normalisers, given=False)
    return (weights @ values.float()).to(values.dtype), normalisers, weights


class _AdditiveLogits(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, direction: Tensor) -> Tensor:
        query, key = query.contiguous(), key.contiguous()
        ctx.save_for_backward(query, key, direction)
        return Sides(query, key, direction, None).logits().to(query.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        query, key, direction = ctx.saved_tensors
        if torch.is_grad_enabled():
            # The gradient is to be differentiated again, which the plain formula can do.
            return plain_gradients(additive_logits_reference, ctx.saved_tensors, ctx.needs_input_grad, grad)
        grads = Sides(query, key, direction, None).backward(grad.float())
        return tuple(found.to(side.dtype) for found, side in zip(grads, ctx.saved_tensors, strict=True))


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
