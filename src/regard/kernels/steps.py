"""Attention with one query per step of a recurrence, on a GPU: two kernels per step in the forward and backward pass.

The backward pass of a step computes the gradient of its query alone, and records the rest. After all steps, the
gradients of keys and values are products over all steps. With weights w_t, gradients g_t of the logits and c_t of the
contexts,

    grad values = sum_t w_t c_t',    grad keys = sum_t g_t q_t'    (for additive scores, as in additive_triton.py).

The gradients cannot be differentiated again.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.kernels.additive import AdditiveInputs, in_groups
from regard.kernels.hoisted import StepRecords
from regard.kernels.numerics import masked_softmax, next_power_of_2, triton_kernels, with_contiguous_rows

MAX_KEYS = 1024
"""The largest number of keys that the kernels support."""
TILE = 4096
"""Number of elements of the memory that a program loads at a time."""
PROGRAMS, MAX_SPLITS = 700, 16
"""Programs that run at a time, and how many of them share the features of one example at most."""


class _Options(NamedTuple):
    """What all steps share, apart from the memory."""

    mask: Tensor | None
    scale: float
    records: StepRecords


class Steps:
    """softmax(v' tanh(query + keys)) values, or softmax(scale query' keys) values without a direction, step by step."""

    def __init__(
        self, keys: Tensor, values: Tensor, mask: Tensor | None, direction: Tensor | None = None, scale: float = 1.0
    ) -> None:
        self.options = _Options(mask, scale, StepRecords())
        self._given: tuple[Tensor, Tensor, Tensor | None] = keys.contiguous(), values.contiguous(), direction
        self._memory: tuple[Tensor, Tensor, Tensor | None] | None = None

    def __call__(self, query: Tensor, inputs: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return the context (b, v) of a query (b, d), to which `inputs` are added, and the weights (b, k)."""
        if self._memory is None:
            self._memory = _Gather.apply(*self._given, self.options.records)  # type: ignore[no-untyped-call]
        looked: tuple[Tensor, Tensor] = _Look.apply(  # type: ignore[no-untyped-call]
            with_contiguous_rows(query), inputs, *self._memory, self.options
        )
        return looked


def steps_reference(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None = None,
    direction: Tensor | None = None,
    scale: float = 1.0,
) -> Tensor:
    """Compute one step by the plain formula."""
    query = query.unsqueeze(1)
    logits = scale * (query * keys).sum(-1) if direction is None else torch.tanh(query + keys) @ direction
    return (masked_softmax(logits, mask).unsqueeze(1) @ values).squeeze(1)


class _Gather(torch.autograd.Function):
    """Return keys, values and v; the backward pass computes their gradients from the records of all steps."""

    @staticmethod
    def forward(
        ctx: Any, keys: Tensor, values: Tensor, direction: Tensor | None, records: StepRecords
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        ctx.records = records
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(keys, direction)
        return keys.view_as(keys), values.view_as(values), None if direction is None else direction.view_as(direction)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *unused: Tensor | None) -> tuple[Tensor | None, ...]:
        taken = ctx.records.take()
        if not taken:
            return None, None, None, None
        keys, direction = ctx.saved_tensors
        queries, weights, slopes, upstream = (torch.stack(part, dim=1) for part in taken)
        grad_values = (weights.mT @ upstream.float()).to(upstream.dtype)
        if direction is None:
            return (slopes.mT @ queries.float()).to(keys.dtype), grad_values, None, None
        of_keys, of_direction = AdditiveInputs(queries, keys, direction, None).backward(in_groups(slopes))[1:]
        return of_keys.to(keys.dtype), grad_values, of_direction.to(direction.dtype), None


class _Look(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        inputs: Tensor | None,
        keys: Tensor,
        values: Tensor,
        direction: Tensor | None,
        options: _Options,
    ) -> tuple[Tensor, Tensor]:
        mask = options.mask
        (batch, num_keys, dim), value_dim = keys.shape, values.shape[-1]
        added = query if inputs is None else with_contiguous_rows(inputs)
        context = values.new_empty(batch, value_dim, dtype=(values if inputs is None else inputs).dtype)
        weights = values.new_empty(batch, num_keys, dtype=torch.float32)
        blocks, kernels = _blocks(batch, num_keys), triton_kernels("steps")
        splits = blocks["SPLITS"]
        parts = weights.new_empty(batch, splits, num_keys)
        kernels.compare[(batch, splits)](
            query,
            keys,
            query if direction is None else direction,
            parts,
            query.stride(0),
            num_keys,
            DIM=dim,
            ADDITIVE=direction is not None,
            **blocks,
        )
        kernels.read[(batch, splits)](
            parts,
            query if mask is None else mask,
            values,
            added,
            context,
            weights,
            added.stride(0),
            num_keys,
            options.scale,
            *((0, 0) if mask is None else mask.stride()),
            VALUE_DIM=value_dim,
            HAS_MASK=mask is not None,
            HAS_INPUTS=inputs is not None,
            **blocks,
        )
        ctx.save_for_backward(query, keys, values, direction, weights)
        ctx.options = options
        ctx.set_materialize_grads(False)
        return context, weights

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor | None, grad_weights: Tensor | None) -> tuple[Tensor | None, ...]:
        query, keys, values, direction, weights = ctx.saved_tensors
        batch, num_keys, dim = keys.shape
        upstream = values.new_zeros(batch, values.shape[-1]) if upstream is None else upstream.contiguous()
        of_weights = weights if grad_weights is None else with_contiguous_rows(grad_weights)
        slopes, grad_query = torch.empty_like(weights), query.new_empty(query.shape)
        blocks, kernels = _blocks(batch, num_keys), triton_kernels("steps")
        splits = blocks["SPLITS"]
        parts = weights.new_empty(batch, splits, num_keys)
        kernels.read_back[(batch, splits)](values, upstream, parts, num_keys, VALUE_DIM=values.shape[-1], **blocks)
        kernels.compare_back[(batch, splits)](
            query,
            keys,
            query if direction is None else direction,
            weights,
            parts,
            of_weights,
            slopes,
            grad_query,
            query.stride(0),
            of_weights.stride(0),
            num_keys,
            ctx.options.scale,
            DIM=dim,
            ADDITIVE=direction is not None,
            HAS_GRAD_WEIGHTS=grad_weights is not None,
            **blocks,
        )
        ctx.options.records.add(query, weights, slopes, upstream)
        return grad_query, upstream if ctx.needs_input_grad[1] else None, None, None, None, None


def _blocks(batch: int, num_keys: int) -> dict[str, int]:
    """Return how many programs share an example, a power of 2, and what each of them takes at a time."""
    block = next_power_of_2(num_keys)
    splits = 1 << max(1, min(MAX_SPLITS, PROGRAMS // batch)).bit_length() - 1
    warps = 4 if num_keys <= 256 else 8
    return {"SPLITS": splits, "BLOCK_K": block, "BLOCK_DIM": max(16, TILE // block), "num_warps": warps}
