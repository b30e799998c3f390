"""Additive logits and attention, v' tanh(query + key), without the (batch, query, key, feature) tensor.

The plain formula holds that tensor in the forward and in the backward pass. Here, unless it is small, only a part of it
exists at a time, and the backward pass computes it again.

On a CPU the part is a block that fits in the cache. Large calls, with a compiler, use compiled loops of

    tanh(a + b) = 1 - 2 r,  r = 1 / (1 + exp(2a) exp(2b)),  d tanh / da = 4 (r - r^2),

with exponentials once per query and once per key instead of once per pair, so that a pair costs one product, one sum
and one reciprocal. exp(2a) must not overflow; larger inputs are computed block by block.

On a GPU the kernels of additive_triton.py, which explains them, keep the features in registers. The logits of at most
MAX_PAIRS_IN_MEMORY pairs (batch x query x key) exist at a time; they are normalised in place and multiplied with the
values. A call of no more pairs keeps its weights for the backward pass; a larger one keeps only the logarithms of the
softmax denominators, and computes the weights again.
"""

import functools
import math
import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any, no_type_check

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from regard.kernels.numerics import (
    ceil_div,
    has_gpu_kernels,
    masked_softmax,
    next_power_of_2,
    plain_gradients,
    triton_kernels,
)
from regard.kernels.pairs import Block, blocks, flatten_lead


def additive_logits_reference(
    query: Float[Tensor, "... q d"], key: Float[Tensor, "... k d"], direction: Float[Tensor, "d"]
) -> Float[Tensor, "... q k"]:
    """Compute v' tanh(query + key) by the plain formula, with the features of all pairs in memory."""
    return torch.tanh(query.unsqueeze(-2) + key.unsqueeze(-3)) @ direction


def additive_attention_reference(
    query: Tensor, key: Tensor, values: Tensor, direction: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Compute `additive_attention` by the plain formula, with the features of all pairs in memory."""
    return masked_softmax(additive_logits_reference(query, key, direction), mask) @ values


def additive_logits(
    query: Float[Tensor, "... q d"], key: Float[Tensor, "... k d"], direction: Float[Tensor, "d"]
) -> Float[Tensor, "... q k"]:
    """Compute v' tanh(query + key) in bounded memory: large calls are computed block by block."""
    if _prefers_formula(query, key):
        return (query.unsqueeze(-2) + key.unsqueeze(-3)).tanh_() @ direction
    query, key, lead = flatten_lead(query, key)
    if prefers_gpu_kernels(query, key):
        return additive_logits_on_gpu(query, key, direction).view(*lead, query.shape[1], key.shape[1])
    logits: Tensor = _LogitsOnCPU.apply(query, key, direction)  # type: ignore[no-untyped-call]
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


def has_few(query: Tensor, key: Tensor, *, gradients: bool = False) -> bool:
    """Whether there are so few queries, keys and features that whole attention, or its gradients, need few launches."""
    if key.shape[-2] > MAX_FEW_KEYS or (gradients and query.shape[-2] > MAX_FEW_KEYS):
        return False
    most = MAX_FEW_FEATURES_WITH_GRADIENTS if gradients else MAX_FEW_FEATURES
    return query.numel() * key.shape[-2] <= most


def prefers_attention_kernels(query: Tensor, key: Tensor) -> bool:
    """Whether the kernels of whole attention are faster than the formula for queries and keys that they support.

    Few keys need few launches; but torch.compile and the transforms of torch.func take the formula.
    """
    if not has_few(query, key, gradients=_has_gradients(query, key)):
        return prefers_gpu_kernels(query, key)
    return not torch.compiler.is_compiling() and not torch._C._are_functorch_transforms_active()


def prefers_gpu_kernels(query: Tensor, key: Tensor) -> bool:
    """Whether the kernels of additive scores support these queries and keys and are faster than the formula."""
    has_gradients = _has_gradients(query, key)
    least = MIN_FEATURES_FOR_KERNEL_WITH_GRADIENTS if has_gradients else MIN_FEATURES_FOR_KERNEL
    return query.numel() * key.shape[-2] >= least and has_gpu_kernels(query) and has_gpu_kernels(key)


def _has_gradients(query: Tensor, key: Tensor) -> bool:
    return torch.is_grad_enabled() and (query.requires_grad or key.requires_grad)


class _LogitsOnCPU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, direction: Tensor) -> Tensor:
        ctx.save_for_backward(query, key, direction)
        exponentials = exponentials_of(query, key)
        if exponentials is not None:
            sums: Tensor = compiled(fractions)(*exponentials, direction)
            return sums.mul_(-2).add_(direction.sum())
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
        exponentials = exponentials_of(query, key)
        if exponentials is not None:
            exp_query, exp_key = exponentials
            grad_query, through_complement = compiled(slopes)(exp_query, exp_key, grad)
            grad_key, _ = compiled(slopes)(exp_key, exp_query, grad.mT.contiguous())
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


def exponentials_of(query: Tensor, key: Tensor) -> tuple[Tensor, Tensor] | None:
    """Return exp(2x) of queries and keys if the compiled loops apply and the exponentials are finite; else None."""
    if not prefers_compiled_loops(query, key):
        return None
    largest = 0.49 * math.log(torch.finfo(query.dtype).max)
    if max(query.abs().amax().item(), key.abs().amax().item()) >= largest:
        return None
    return (2 * query).exp_(), (2 * key).exp_()


MIN_FEATURES_TO_COMPILE = 1 << 27
"""Number of pair features (batch x query x key x feature) of a call from which on the loops are compiled.

Computing twice as many block by block takes about a second.
"""


def prefers_compiled_loops(query: Tensor, key: Tensor) -> bool:
    """Whether the compiled loops apply; this depends on sizes alone, so that runs are reproducible."""
    features = query.shape[0] * query.shape[1] * key.shape[1] * query.shape[2]
    on_cpu = query.device.type == "cpu" and query.dtype == torch.float32
    return on_cpu and features >= MIN_FEATURES_TO_COMPILE and not torch.compiler.is_compiling() and has_compiler()


@no_type_check
def fractions(query, key, direction):
    """Compute sum_d v_d r, where r = 1 / (1 + query_d key_d): (b, q, d), (b, k, d), (d,) to (b, q, k)."""
    return (direction / (1 + query.unsqueeze(2) * key.unsqueeze(1))).sum(-1)


@no_type_check
def slopes(own, other, upstream):
    """Compute sum_j upstream_ij (r - r^2) and sum_j upstream_ij r: (b, i, d), (b, j, d), (b, i, j) to (b, i, d)."""
    complement = 1 / (1 + own.unsqueeze(2) * other.unsqueeze(1))
    upstream = upstream.unsqueeze(-1)
    return (upstream * (complement - complement * complement)).sum(2), (upstream * complement).sum(2)


@functools.cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop for all sizes, which takes some seconds."""
    return torch.compile(function, dynamic=True)


@functools.cache
def has_compiler() -> bool:
    """Whether there is a C++ compiler."""
    return any(shutil.which(name) for name in (os.environ.get("CXX", "g++"), "clang++"))


MAX_FEW_KEYS, MAX_FEW_FEATURES, MAX_FEW_FEATURES_WITH_GRADIENTS = 128, 200_000_000, 300_000_000
"""Queries, keys and pair features up to which one launch computes the whole attention, and two its gradients.

Launches then take longer than tanh.
"""
FEW_TILE, FEW_KEY_TILE = 2048, 1024
"""Elements of the memory that a program of those kernels takes at a time: for a query, or for all queries."""
MAX_PAIRS_IN_MEMORY = 1 << 24
"""Number of pairs whose weights exist at a time on a GPU: 64 MiB."""
TARGET_PROGRAMS = 4096
"""Number of programs of one warp that keep a GPU busy: somewhat more than run at once."""
MAX_REGISTERS = 168
"""Registers per thread of the gradient kernel; with more, too few programs run at once to hide memory latency."""


def additive_attention(
    query: Tensor, key: Tensor, values: Tensor, direction: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Compute softmax(v' tanh(query + key)) values on a GPU: (b, q, d), (b, k, d), (b, k, v), (d,) to (b, q, v).

    `mask` broadcasts to (b, q, k); the context of a query that may attend to nothing is zero.
    """
    if mask is not None:
        mask = mask.expand(query.shape[0], query.shape[1], key.shape[1])
    query, key, values = query.contiguous(), key.contiguous(), values.contiguous()
    if not torch.is_grad_enabled() and has_few(query, key):
        return AdditiveInputs(query, key, direction, mask).attend_few(values, keep=False)[0]
    context: Tensor = _AttentionOnGPU.apply(query, key, values, direction, mask)  # type: ignore[no-untyped-call]
    return context


def additive_logits_on_gpu(query: Tensor, key: Tensor, direction: Tensor) -> Tensor:
    """Compute v' tanh(query + key): (b, q, d), (b, k, d), (d,) to (b, q, k)."""
    query, key = query.contiguous(), key.contiguous()
    logits: Tensor = _LogitsOnGPU.apply(query, key, direction)  # type: ignore[no-untyped-call]
    return logits


class AdditiveInputs:
    """Queries and keys, as the kernels take them."""

    def __init__(self, query: Tensor, key: Tensor, direction: Tensor, mask: Tensor | None) -> None:
        self.query, self.key, self.direction = query, key, direction
        self.batch, self.num_queries, self.dim = query.shape
        self.num_keys = key.shape[1]
        self.sizes = self.num_queries, self.num_keys, self.dim
        self.mask = query if mask is None else mask
        self.mask_strides = (0, 0, 0) if mask is None else mask.stride()
        self.has_mask = mask is not None
        self.fast = query.is_cuda and torch.version.hip is None
        self.kernels = triton_kernels("additive")

    def logits(self) -> Tensor:
        """Compute v' tanh(query + key), (b, q, k) in float32; -inf where the mask is False."""
        exp_query, exp_key, query_peaks, key_peaks = self._exponentials()
        padded_dim = exp_query.shape[2]
        fill = padded_dim - self.dim
        direction = self.direction.float()
        direction = functional.pad(direction, (0, fill)) if fill else direction
        output = torch.empty(self.batch, self.num_queries, self.num_keys, device=self.query.device, dtype=torch.float32)
        block = 64 if self.num_keys > 32 else 32
        rows = ceil_div(self.num_queries, self.kernels.QUERIES.value)
        self.kernels.score[(rows, ceil_div(self.num_keys, block), self.batch)](
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
            *self.sizes,
            padded_dim,
            exp_key.shape[2],
            *self.mask_strides,
            HAS_MASK=self.has_mask,
            FAST=self.fast,
            BLOCK=block,
            num_warps=1,
        )
        return output

    def attend_few(self, values: Tensor, *, keep: bool) -> tuple[Tensor, Tensor | None]:
        """Compute the context in one launch, and the weights if they are to be kept."""
        context = values.new_empty(self.batch, self.num_queries, values.shape[-1])
        shape = self.batch, self.num_queries, self.num_keys
        weights = torch.empty(shape, device=values.device, dtype=torch.float32) if keep else None
        self.kernels.attend_few[(self.batch * self.num_queries,)](
            self.query,
            self.key,
            values,
            self.direction,
            self.mask,
            context,
            context if weights is None else weights,
            *self.sizes,
            values.shape[-1],
            *self.mask_strides,
            HAS_MASK=self.has_mask,
            KEEP=keep,
            **self._few_blocks(FEW_TILE),
        )
        return context, weights

    def attend_few_back(self, values: Tensor, weights: Tensor, grad: Tensor) -> tuple[Tensor, ...]:
        """Compute the gradients of queries, keys and values, and of the direction in float32, in two launches."""
        grad = grad.contiguous()
        slopes, value_dim = torch.empty_like(weights), values.shape[-1]
        grads = tuple(torch.empty_like(part) for part in (self.query, self.key, values))
        fractions = slopes.new_empty(self.batch, self.dim)
        self.kernels.few_back_to_queries[(self.batch * self.num_queries,)](
            self.query,
            self.key,
            values,
            self.direction,
            weights,
            grad,
            slopes,
            grads[0],
            *self.sizes,
            value_dim,
            **self._few_blocks(FEW_TILE),
        )
        blocks = self._few_blocks(FEW_KEY_TILE)
        self.kernels.few_back_to_keys[(ceil_div(max(self.dim, value_dim), blocks["BLOCK_DIM"]) * self.batch,)](
            self.query,
            self.key,
            self.direction,
            weights,
            grad,
            slopes,
            *grads[1:],
            fractions,
            *self.sizes,
            value_dim,
            **blocks,
        )
        return *grads, fractions.sum(0)

    def _few_blocks(self, tile: int) -> dict[str, Any]:
        block = max(16, next_power_of_2(self.num_keys))
        return {"FAST": self.fast, "BLOCK_K": block, "BLOCK_DIM": max(16, tile // block)}

    def _exponentials(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Compute exp(2x) of queries and keys in the layout of `score`, and the largest |x| of each tile of rows."""
        rows, tile = self.kernels.QUERIES.value, self.kernels.PEAK_TILE.value
        padded_dim = ceil_div(self.dim, 4) * 4
        tiles = ceil_div(self.num_queries, tile), ceil_div(self.num_keys, tile)
        padded_queries = ceil_div(self.num_queries, rows) * rows
        shapes = [(padded_queries, padded_dim), (padded_dim, tiles[1] * tile), (tiles[0],), (tiles[1],)]
        outputs = [torch.empty(self.batch, *shape, device=self.query.device, dtype=torch.float32) for shape in shapes]
        self.kernels.prepare[(sum(tiles), self.batch)](
            self.query,
            self.key,
            *outputs,
            *self.sizes,
            padded_dim,
            tiles[1] * tile,
            TILE=tile,
            BLOCK=32,
        )
        return outputs[0], outputs[1], outputs[2], outputs[3]

    def backward(self, upstream: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Compute the gradients of queries, keys and direction, in float32.

        `upstream` is the gradient of the logits, (b, group of queries, k, query). The gradient of the direction lacks
        the sum of `upstream`, which the caller adds.
        """
        block = 64 if self.dim > 32 else 32
        blocks = ceil_div(self.dim, block)
        query_share, key_share = _shares(self.num_queries, self.num_keys, TARGET_PROGRAMS // (self.batch * blocks))
        query_shares, key_shares = ceil_div(self.num_queries, query_share), ceil_div(self.num_keys, key_share)
        parts = (
            upstream.new_empty(key_shares, *self.query.shape),
            upstream.new_empty(query_shares, *self.key.shape),
            upstream.new_empty(query_shares * key_shares, self.batch, self.dim),
        )
        self.kernels.slopes[(query_shares * key_shares, blocks, self.batch)](
            self.query,
            self.key,
            upstream.view(-1).view(torch.int64),
            *parts,
            *self.sizes,
            QUERY_SHARE=query_share,
            KEY_SHARE=key_share,
            FAST=self.fast,
            BLOCK=block,
            num_warps=1,
            maxnreg=MAX_REGISTERS,
        )
        sums = tuple(upstream.new_empty(of.shape) for of in (self.query, self.key, self.direction))
        sizes = self.query.numel(), self.key.numel()
        self.kernels.gather[(ceil_div(sizes[0], 1024) + ceil_div(sizes[1], 1024) + ceil_div(self.dim, 32),)](
            *parts,
            self.direction.float(),
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
    block = min(4096, next_power_of_2(logits.shape[-1]))
    triton_kernels("additive").normalise[(normalisers.numel(),)](
        logits, normalisers, logits.shape[-1], GIVEN=given, BLOCK=block
    )
    return logits


def _normalise_back(weights: Tensor, gradients: Tensor) -> Tensor:
    """Compute the gradients of the logits from those of the weights, in the layout of AdditiveInputs.backward."""
    batch, num_queries, num_keys = weights.shape
    kernels = triton_kernels("additive")
    groups, of_a_group = ceil_div(num_queries, kernels.GROUP.value), kernels.GROUP.value
    slopes = weights.new_empty(batch, groups, num_keys, of_a_group)
    block = min(256, next_power_of_2(num_keys))
    kernels.normalise_back[(groups, batch)](weights, gradients, slopes, num_queries, num_keys, BLOCK=block)
    return slopes


def in_groups(gradients: Tensor) -> Tensor:
    """Rearrange gradients (b, q, k) to (b, group of queries, k, query), as `AdditiveInputs.backward` takes them."""
    group = triton_kernels("additive").GROUP.value
    filled = functional.pad(gradients, (0, 0, 0, -gradients.shape[1] % group))
    return filled.view(len(filled), -1, group, filled.shape[-1]).mT.contiguous()


def _shares(num_queries: int, num_keys: int, programs: int) -> tuple[int, int]:
    """Return the numbers of queries and keys of one program, so that about `programs` of them share an example.

    There are four times as many queries as keys, since a program goes through its keys once per GROUP of queries, and
    the sums of fewer keys stay in the cache.
    """
    half_a_side = max(1, math.isqrt(num_queries * num_keys // max(1, programs)) // 2)
    keys = max(32, 1 << half_a_side.bit_length() - 1)
    return 4 * keys, keys


class _AttentionOnGPU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, values: Tensor, direction: Tensor, mask: Tensor | None) -> Tensor:
        chunks = _chunks(len(query), query.shape[1], key.shape[1])
        normalisers: Tensor | None
        if has_few(query, key) and len(chunks) == 1:
            inputs = AdditiveInputs(query, key, direction, mask)
            context, kept = inputs.attend_few(values, keep=any(ctx.needs_input_grad))
            normalisers = None
        elif len(chunks) == 1:
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
            return plain_gradients(additive_attention_reference, (*inputs, mask), ctx.needs_input_grad, grad)
        if kept is not None and has_few(query, key, gradients=True):
            grads = AdditiveInputs(query, key, direction, mask).attend_few_back(values, kept, grad)
        elif kept is not None:
            grads = _gradients(AdditiveInputs(query, key, direction, mask), values, kept, grad)
        else:
            grads = tuple(torch.zeros_like(side, dtype=torch.float32) for side in inputs)
            for b, q in _chunks(len(query), query.shape[1], key.shape[1]):
                sides = AdditiveInputs(query[b, q], key[b], direction, None if mask is None else mask[b, q])
                weights = _normalise(sides.logits(), normalisers[b, q].contiguous(), given=True)
                totals = grads[0][b, q], grads[1][b], grads[2][b], grads[3]
                for total, part in zip(totals, _gradients(sides, values[b], weights, grad[b, q]), strict=True):
                    total += part
        return *(part.to(side.dtype) for part, side in zip(grads, inputs, strict=True)), None


def _gradients(inputs: AdditiveInputs, values: Tensor, weights: Tensor, grad: Tensor) -> tuple[Tensor, ...]:
    """Compute the gradients of queries, keys, values and direction from that of the context, in float32."""
    grad = grad.float().contiguous()
    # The gradients of the logits of each query sum to 0, so that of the direction is complete.
    of_query, of_key, of_direction = inputs.backward(_normalise_back(weights, grad @ values.float().mT))
    return of_query, of_key, weights.mT @ grad, of_direction


def _attended(
    query: Tensor, key: Tensor, values: Tensor, direction: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the context, the logarithms of the softmax denominators, and the weights."""
    logits = AdditiveInputs(query, key, direction, mask).logits()
    normalisers = logits.new_empty(logits.shape[:2])
    weights = _normalise(logits, normalisers, given=False)
    return (weights @ values.float()).to(values.dtype), normalisers, weights


class _LogitsOnGPU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, direction: Tensor) -> Tensor:
        ctx.save_for_backward(query, key, direction)
        return AdditiveInputs(query, key, direction, None).logits().to(query.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        query, key, direction = ctx.saved_tensors
        if torch.is_grad_enabled():
            # The gradient will be differentiated again, which the plain formula supports.
            return plain_gradients(additive_logits_reference, ctx.saved_tensors, ctx.needs_input_grad, grad)
        of_query, of_key, of_direction = AdditiveInputs(query, key, direction, None).backward(in_groups(grad.float()))
        grads = of_query, of_key, of_direction + grad.float().sum()
        return tuple(part.to(side.dtype) for part, side in zip(grads, ctx.saved_tensors, strict=True))


def _chunks(batch: int, num_queries: int, num_keys: int) -> list[tuple[slice, slice]]:
    """Return slices of the batch and the queries with at most MAX_PAIRS_IN_MEMORY contiguous pairs each."""
    examples, tile = (
        max(1, MAX_PAIRS_IN_MEMORY // max(1, num_queries * num_keys)),
        triton_kernels("additive").PEAK_TILE.value,
    )
    queries = max(num_queries, 1) if examples > 1 else max(tile, MAX_PAIRS_IN_MEMORY // max(1, num_keys) // tile * tile)
    return [
        (slice(b, min(b + examples, batch)), slice(q, min(q + queries, num_queries)))
        for b in range(0, batch, examples)
        for q in range(0, num_queries, queries)
    ]
