"""The steps of the long short-term memory network on a GPU: one kernel each; lstmn.py calls and explains them."""

import triton
from torch import Tensor

from regard.kernels import lstmn_triton as kernels

TILE = 8192
"""Elements of a tape that a program looks at together."""
PROGRAMS = 256
"""Programs that should run at a time; small batches are split by features to reach it."""
MAX_SPLITS = 8
MAX_UNITS_PER_PROGRAM = 512
"""Units of a cell that one program takes."""


def look(
    t: int,
    first: int,
    inputs: Tensor,
    product: Tensor,
    keys: Tensor,
    tape: Tensor,
    direction: Tensor,
    queries: Tensor,
    weights: Tensor,
    read: Tensor,
) -> None:
    """Attend to the tape from `first` to t - 1."""
    batch, length, dim = keys.shape
    kernels.look[(batch, _splits(batch))](
        inputs, product, keys, tape, direction, queries, weights, read, t, first, length, dim, tape.shape[2] // 2,
        **_blocks(t - first),
    )  # fmt: skip


def write(t: int, inputs: Tensor, product: Tensor, read: Tensor, gates: Tensor, tape: Tensor) -> None:
    """Update the cell, and write it to the tape."""
    (batch, length, columns), size = inputs.shape, tape.shape[2] // 2
    kernels.write[_cell_grid(batch, size)](
        inputs, product, read, gates, tape, t, length, columns, size, BLOCK=_cell_block(size)
    )


def write_back(
    t: int,
    gates: Tensor,
    read: Tensor,
    tape: Tensor,
    grad_hidden: Tensor,
    grad_tape: Tensor,
    grad_products: Tensor,
    grad_read: Tensor,
) -> None:
    """The gradients of the gates, and of c~."""
    (batch, length, columns), size = grad_products.shape, tape.shape[2] // 2
    kernels.write_back[_cell_grid(batch, size)](
        gates, read, tape, grad_hidden, grad_tape, grad_products, grad_read, t, length, columns, size,
        BLOCK=_cell_block(size),
    )  # fmt: skip


def look_back(
    t: int,
    first: int,
    queries: Tensor,
    keys: Tensor,
    tape: Tensor,
    direction: Tensor,
    weights: Tensor,
    grad_read: Tensor,
    grad_products: Tensor,
    grad_keys: Tensor,
    grad_tape: Tensor,
    grad_direction: Tensor,
) -> None:
    """The gradient of the query; adds to those of the keys, of the tape and of v."""
    batch, length, dim = keys.shape
    kernels.look_back[(batch, _splits(batch))](
        queries, keys, tape, direction, weights, grad_read, grad_products, grad_keys, grad_tape, grad_direction, t,
        first, length, dim, tape.shape[2] // 2, **_blocks(t - first),
    )  # fmt: skip


def _splits(batch: int) -> int:
    return max(1, min(MAX_SPLITS, PROGRAMS // batch))


def _blocks(num_keys: int) -> dict[str, int]:
    block = max(16, triton.next_power_of_2(num_keys))
    return {"BLOCK_K": block, "BLOCK_DIM": max(16, min(64, TILE // block)), "num_warps": 4 if num_keys <= 256 else 8}


def _cell_block(size: int) -> int:
    return int(min(MAX_UNITS_PER_PROGRAM, triton.next_power_of_2(size)))


def _cell_grid(batch: int, size: int) -> tuple[int, int]:
    return batch, triton.cdiv(size, _cell_block(size))
