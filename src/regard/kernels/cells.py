"""The elementwise parts of recurrent cells, between their matrix products: plain formulas, and one GPU kernel for each.

The gradients of the kernels cannot be differentiated again.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.kernels.numerics import (
    ceil_div,
    has_gpu_kernels,
    next_power_of_2,
    triton_kernels,
    with_contiguous_rows,
)

MAX_UNITS_PER_PROGRAM = 256
"""Number of units that one program of a kernel computes."""


def gru_gates(inputs: Tensor, product: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Compute z, r = sigmoid(inputs + product), the first two thirds of (b, 3 h); return z, r h, the last third, and h.

    What follows should use the h that is returned: then a kernel adds its gradients.
    """
    if has_gpu_kernels(hidden):
        gates: tuple[Tensor, Tensor, Tensor, Tensor]
        gates = _GRUGates.apply(inputs, product, hidden)  # type: ignore[no-untyped-call]
        return gates
    for_gates, for_candidate = inputs.split([2 * hidden.shape[-1], hidden.shape[-1]], dim=-1)
    update, reset = torch.sigmoid(for_gates + product).chunk(2, dim=-1)
    return update, reset * hidden, for_candidate, hidden


def gru_blend(inputs: Tensor, product: Tensor, hidden: Tensor, update: Tensor) -> Tensor:
    """Compute (1 - z) h + z tanh(inputs + product)."""
    if has_gpu_kernels(hidden):
        blended: Tensor = _GRUBlend.apply(inputs, product, hidden, update)  # type: ignore[no-untyped-call]
        return blended
    return torch.lerp(hidden, torch.tanh(inputs + product), update)


def lstm(inputs: Tensor, product: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """Compute hidden vector and cell from the gates inputs + product, (b, 4 h): input, forget, candidate, output."""
    if has_gpu_kernels(cell):
        state: tuple[Tensor, Tensor] = _LSTM.apply(inputs, product, cell)  # type: ignore[no-untyped-call]
        return state
    entry, forget, new, out = (inputs + product).chunk(4, dim=-1)
    cell = torch.sigmoid(forget + 1) * cell + torch.sigmoid(entry) * torch.tanh(new)
    return torch.sigmoid(out) * torch.tanh(cell), cell


class _GRUGates(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, product: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        inputs, product, hidden = with_contiguous_rows(inputs), with_contiguous_rows(product), hidden.contiguous()
        update, reset, kept = (torch.empty_like(hidden) for _ in range(3))
        _launch("gru_gates", hidden, inputs, inputs.stride(0), product, product.stride(0), hidden, update, reset, kept)
        ctx.save_for_backward(update, reset, hidden)
        ctx.dtypes = inputs.dtype, product.dtype
        return update, kept, inputs[:, 2 * hidden.shape[1] :], hidden.view_as(hidden)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, ...]:
        update, reset, hidden = ctx.saved_tensors
        grad_hidden = torch.empty_like(hidden)
        grad_inputs = hidden.new_empty(len(hidden), 3 * hidden.shape[1], dtype=ctx.dtypes[1])
        given = (grad.contiguous() for grad in grads)
        _launch("gru_gates_back", hidden, update, reset, hidden, *given, grad_inputs, grad_hidden)
        return grad_inputs.to(ctx.dtypes[0]), grad_inputs[:, : 2 * hidden.shape[1]], grad_hidden


class _GRUBlend(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, product: Tensor, hidden: Tensor, update: Tensor) -> Tensor:
        inputs, product, hidden = with_contiguous_rows(inputs), with_contiguous_rows(product), hidden.contiguous()
        candidate, output = torch.empty_like(hidden), torch.empty_like(hidden)
        _launch(
            "gru_blend", hidden, inputs, inputs.stride(0), product, product.stride(0), hidden, update, candidate, output
        )
        ctx.save_for_backward(candidate, hidden, update)
        ctx.dtypes = inputs.dtype, product.dtype
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        candidate, hidden, update = ctx.saved_tensors
        grad_sum = torch.empty_like(hidden, dtype=ctx.dtypes[1])
        grad_hidden, grad_update = torch.empty_like(hidden), torch.empty_like(hidden)
        saved = candidate, hidden, update, grad.contiguous()
        _launch("gru_blend_back", hidden, *saved, grad_sum, grad_hidden, grad_update)
        return grad_sum.to(ctx.dtypes[0]), grad_sum, grad_hidden, grad_update


class _LSTM(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, product: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        inputs, product, cell = with_contiguous_rows(inputs), with_contiguous_rows(product), cell.contiguous()
        gates = cell.new_empty(len(cell), 4 * cell.shape[1])
        new_cell, output = torch.empty_like(cell), torch.empty_like(cell)
        _launch("lstm", cell, inputs, inputs.stride(0), product, product.stride(0), cell, gates, new_cell, output)
        ctx.save_for_backward(gates, cell, new_cell)
        ctx.dtypes = inputs.dtype, product.dtype
        return output, new_cell

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, grad_new_cell: Tensor) -> tuple[Tensor, ...]:
        gates, cell, new_cell = ctx.saved_tensors
        grad_sum, grad_cell = torch.empty_like(gates, dtype=ctx.dtypes[1]), torch.empty_like(cell)
        saved = gates, cell, new_cell, grad.contiguous(), grad_new_cell.contiguous()
        _launch("lstm_back", cell, *saved, grad_sum, grad_cell)
        return grad_sum.to(ctx.dtypes[0]), grad_sum, grad_cell


def _launch(name: str, hidden: Tensor, *arguments: Any) -> None:
    batch, size = hidden.shape
    block = min(MAX_UNITS_PER_PROGRAM, next_power_of_2(size))
    getattr(triton_kernels("cells"), name)[batch, ceil_div(size, block)](*arguments, size, BLOCK=block, num_warps=2)
