"""Layer normalisation (Ba et al. 2016) on a GPU: one kernel forward and one backward.

    y = (x - mean) / sqrt(variance + eps) * weight + bias

The backward pass computes mean and variance from stored numbers; each program adds up the gradients of weight and bias
over its own rows, so that these are deterministic. The gradients cannot be differentiated again.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from regard.kernels.numerics import ceil_div, has_gpu_kernels, next_power_of_2, triton_kernels

TILE = 4096
"""Number of elements that a program holds at a time."""
MAX_DIM = 4096
"""The largest number of features that the kernels support."""
PROGRAMS = 264
"""Number of programs that share the rows in the backward pass: two for each multiprocessor of a large GPU."""


def layer_norm(
    inputs: Float[Tensor, "*b d"],
    weight: Float[Tensor, "d"],
    bias: Float[Tensor, "d"],
    eps: float,
    dtype: torch.dtype | None = None,
) -> Float[Tensor, "*b d"]:
    """Normalise the features of each row; the result has a dtype, by default that of the inputs."""
    dtype = dtype or inputs.dtype
    if not has_gpu_kernels(inputs) or inputs.shape[-1] > MAX_DIM:
        return functional.layer_norm(inputs, weight.shape, weight, bias, eps).to(dtype)
    normalised: Tensor = _LayerNorm.apply(inputs, weight, bias, eps, dtype)  # type: ignore[no-untyped-call]
    return normalised


class _LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor, eps: float, dtype: torch.dtype) -> Tensor:
        rows = inputs.reshape(-1, inputs.shape[-1]).contiguous()
        count, dim = rows.shape
        output = torch.empty_like(rows, dtype=dtype)
        mean, scale = rows.new_empty(2, count, dtype=torch.float32)
        blocks = _blocks(dim)
        grid = (ceil_div(count, blocks["BLOCK_ROWS"]),)
        triton_kernels("layer_norm").normalise[grid](rows, weight, bias, output, mean, scale, count, dim, eps, **blocks)
        ctx.save_for_backward(rows, weight, mean, scale)
        return output.view(inputs.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        rows, weight, mean, scale = ctx.saved_tensors
        count, dim = rows.shape
        grad, blocks = torch.empty_like(rows), _blocks(dim)
        programs = min(PROGRAMS, ceil_div(count, blocks["BLOCK_ROWS"]))
        of_weight, of_bias = rows.new_empty(2, programs, dim, dtype=torch.float32)
        triton_kernels("layer_norm").normalise_back[(programs,)](
            upstream.contiguous(), rows, weight, mean, scale, grad, of_weight, of_bias, count, dim, **blocks
        )
        through_weight, through_bias = (part.sum(0).to(weight.dtype) for part in (of_weight, of_bias))
        return grad.view(upstream.shape), through_weight, through_bias, None, None


def _blocks(dim: int) -> dict[str, int]:
    width = next_power_of_2(dim)
    return {"BLOCK_ROWS": max(1, TILE // width), "BLOCK_DIM": width, "num_warps": 8}
