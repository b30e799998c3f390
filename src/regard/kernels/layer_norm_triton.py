"""Triton kernels of layer normalisation; layer_norm.py calls these."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

import triton
import triton.language as tl

from regard.kernels.numerics_triton import load


@triton.jit
def normalise(
    inputs, weight, bias, output, mean, scale, count, dim, eps, BLOCK_ROWS: tl.constexpr, BLOCK_DIM: tl.constexpr
):
    """Normalise some rows; keep the mean and 1 / sqrt(variance + eps) of each."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    dims = tl.arange(0, BLOCK_DIM)
    is_row, is_dim = rows < count, dims < dim
    inside = is_row[:, None] & is_dim[None, :]
    at = rows[:, None] * dim + dims[None, :]
    x = load(inputs + at, inside)
    means = tl.sum(x, 1) / dim
    centred = tl.where(inside, x - means[:, None], 0.0)
    scales = 1.0 / tl.sqrt(tl.sum(centred * centred, 1) / dim + eps)
    w, b = load(weight + dims, is_dim), load(bias + dims, is_dim)
    y = centred * scales[:, None] * w[None, :] + b[None, :]
    tl.store(output + at, y.to(output.dtype.element_ty), mask=inside)
    tl.store(mean + rows, means, mask=is_row)
    tl.store(scale + rows, scales, mask=is_row)


@triton.jit
def normalise_back(
    upstream,
    inputs,
    weight,
    mean,
    scale,
    grad,
    grad_weight,
    grad_bias,
    count,
    dim,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_DIM: tl.constexpr,
):
    """Compute the gradients of the inputs, and those of weight and bias through the rows of this program."""
    program, programs = tl.program_id(0).to(tl.int64), tl.num_programs(0)
    dims = tl.arange(0, BLOCK_DIM)
    is_dim = dims < dim
    w = load(weight + dims, is_dim)
    of_weight = tl.zeros([BLOCK_DIM], tl.float32)
    of_bias = tl.zeros([BLOCK_DIM], tl.float32)
    for first in range(program * BLOCK_ROWS, count, programs * BLOCK_ROWS):
        rows = first + tl.arange(0, BLOCK_ROWS)
        is_row = rows < count
        inside = is_row[:, None] & is_dim[None, :]
        at = rows[:, None] * dim + dims[None, :]
        means, scales = load(mean + rows, is_row), load(scale + rows, is_row)
        g = load(upstream + at, inside)
        unit = tl.where(inside, (load(inputs + at, inside) - means[:, None]) * scales[:, None], 0.0)
        weighed = g * w[None, :]
        along = tl.sum(weighed * unit, 1) / dim
        shared = tl.sum(weighed, 1) / dim
        total = (weighed - unit * along[:, None] - shared[:, None]) * scales[:, None]
        tl.store(grad + at, total.to(grad.dtype.element_ty), mask=inside)
        of_weight += tl.sum(g * unit, 0)
        of_bias += tl.sum(g, 0)
    tl.store(grad_weight + program * dim + dims, of_weight, mask=is_dim)
    tl.store(grad_bias + program * dim + dims, of_bias, mask=is_dim)
