"""Triton kernels for the elementwise parts of recurrent cells; cells.py calls these.

A row has `size` units. The gates of a row are stored one after the other, as in the matrix products of the cells.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

import triton
import triton.language as tl

from regard.kernels.numerics_triton import load, sigmoid, tanh


@triton.jit
def gru_gates(
    inputs, inputs_stride, product, product_stride, hidden, update, reset, kept, size: tl.constexpr, BLOCK: tl.constexpr
):
    """Compute z and r from inputs + product (z, then r, in each row), and r h."""
    row, units = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside, at = units < size, row * size + units
    own = inputs + row * inputs_stride + units
    other = product + row * product_stride + units
    z = sigmoid(load(own, inside) + load(other, inside))
    r = sigmoid(load(own + size, inside) + load(other + size, inside))
    tl.store(update + at, z, mask=inside)
    tl.store(reset + at, r, mask=inside)
    tl.store(kept + at, r * load(hidden + at, inside), mask=inside)


@triton.jit
def gru_gates_back(
    update,
    reset,
    hidden,
    grad_update,
    grad_kept,
    grad_candidate,
    grad_later,
    grad_inputs,
    grad_hidden,
    size: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Compute the gradients of inputs and product, and of h; copy those of the candidate, add those of a later h."""
    row, units = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside, at, three = units < size, row * size + units, grad_inputs + 3 * row * size + units
    z, r, through = load(update + at, inside), load(reset + at, inside), load(grad_kept + at, inside)
    tl.store(three, load(grad_update + at, inside) * z * (1.0 - z), mask=inside)
    tl.store(three + size, through * load(hidden + at, inside) * r * (1.0 - r), mask=inside)
    tl.store(three + 2 * size, load(grad_candidate + at, inside), mask=inside)
    tl.store(grad_hidden + at, through * r + load(grad_later + at, inside), mask=inside)


@triton.jit
def gru_blend(
    inputs, inputs_stride, product, product_stride, hidden, update, candidate, output, size, BLOCK: tl.constexpr
):
    """Compute h + z (tanh(inputs + product) - h)."""
    row, units = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside, at = units < size, row * size + units
    new = tanh(
        load(inputs + row * inputs_stride + units, inside) + load(product + row * product_stride + units, inside)
    )
    h = load(hidden + at, inside)
    tl.store(candidate + at, new, mask=inside)
    tl.store(output + at, h + load(update + at, inside) * (new - h), mask=inside)


@triton.jit
def gru_blend_back(
    candidate, hidden, update, grad, grad_sum, grad_hidden, grad_update, size: tl.constexpr, BLOCK: tl.constexpr
):
    """Compute the gradients of inputs and product, which are equal, of h and of z."""
    row, units = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside, at = units < size, row * size + units
    new, z, g = load(candidate + at, inside), load(update + at, inside), load(grad + at, inside)
    tl.store(grad_sum + at, g * z * (1.0 - new * new), mask=inside)
    tl.store(grad_hidden + at, g * (1.0 - z), mask=inside)
    tl.store(grad_update + at, g * (new - load(hidden + at, inside)), mask=inside)


@triton.jit
def lstm(
    inputs,
    inputs_stride,
    product,
    product_stride,
    cell,
    gates,
    new_cell,
    output,
    size: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Compute the new cell and the hidden vector; also store the activated gates for the backward pass."""
    row, units = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside, at, four = units < size, row * size + units, 4 * row * size + units
    own, other = inputs + row * inputs_stride + units, product + row * product_stride + units
    entry = sigmoid(load(own, inside) + load(other, inside))
    forget = sigmoid(load(own + size, inside) + load(other + size, inside) + 1.0)
    new = tanh(load(own + 2 * size, inside) + load(other + 2 * size, inside))
    out = sigmoid(load(own + 3 * size, inside) + load(other + 3 * size, inside))
    carried = forget * load(cell + at, inside) + entry * new
    tl.store(gates + four, entry, mask=inside)
    tl.store(gates + four + size, forget, mask=inside)
    tl.store(gates + four + 2 * size, new, mask=inside)
    tl.store(gates + four + 3 * size, out, mask=inside)
    tl.store(new_cell + at, carried, mask=inside)
    tl.store(output + at, out * tanh(carried), mask=inside)


@triton.jit
def lstm_back(gates, cell, new_cell, grad, grad_new_cell, grad_sum, grad_cell, size: tl.constexpr, BLOCK: tl.constexpr):
    """Compute the gradients of inputs and product, which are equal, and of the old cell."""
    row, units = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside, at, four = units < size, row * size + units, 4 * row * size + units
    entry, forget = load(gates + four, inside), load(gates + four + size, inside)
    new, out = load(gates + four + 2 * size, inside), load(gates + four + 3 * size, inside)
    g, shown = load(grad + at, inside), tanh(load(new_cell + at, inside))
    carried = load(grad_new_cell + at, inside) + g * out * (1.0 - shown * shown)
    tl.store(grad_sum + four, carried * new * entry * (1.0 - entry), mask=inside)
    tl.store(grad_sum + four + size, carried * load(cell + at, inside) * forget * (1.0 - forget), mask=inside)
    tl.store(grad_sum + four + 2 * size, carried * entry * (1.0 - new * new), mask=inside)
    tl.store(grad_sum + four + 3 * size, g * shown * out * (1.0 - out), mask=inside)
    tl.store(grad_cell + at, carried * forget, mask=inside)
