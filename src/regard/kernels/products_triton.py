"""A Triton kernel for products of few rows with a matrix, where reading the matrix takes most of the time."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

import triton
import triton.language as tl


@triton.jit
def product(
    inputs,
    weight,
    bias,
    output,
    parts,
    arrived,
    num_rows,
    fours,
    SIZE: tl.constexpr,
    COLUMNS: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    SPLITS: tl.constexpr,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_COLUMNS: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
):
    """Compute inputs weight' + bias in TF32, where the rows of the inputs are 4 `fours` apart.

    SPLITS programs share the sums of a block of columns; the last of them to arrive adds up the parts, in their order.
    """
    block, part = tl.program_id(0), tl.program_id(1)
    columns = block * BLOCK_COLUMNS + tl.arange(0, BLOCK_COLUMNS)
    rows = tl.arange(0, BLOCK_ROWS)
    is_row, is_column = rows < num_rows, columns < COLUMNS
    share: tl.constexpr = tl.cdiv(tl.cdiv(SIZE, SPLITS), BLOCK_SIZE) * BLOCK_SIZE
    sums = tl.zeros([BLOCK_ROWS, BLOCK_COLUMNS], tl.float32)
    for first in range(part * share, tl.minimum(part * share + share, SIZE), BLOCK_SIZE):
        places = first + tl.arange(0, BLOCK_SIZE)
        is_place = places < SIZE
        inside = is_row[:, None] & is_place[None, :]
        own = tl.load(inputs + rows[:, None] * (4 * fours) + places[None, :], mask=inside, other=0.0)
        inside = is_column[:, None] & is_place[None, :]
        other = tl.load(weight + columns[:, None] * SIZE + places[None, :], mask=inside, other=0.0)
        sums = tl.dot(own, other.T, sums, input_precision="tf32")
    is_output = is_row[:, None] & is_column[None, :]
    at = rows[:, None] * COLUMNS + columns[None, :]
    is_last = True
    if SPLITS > 1:
        tl.store(parts + part * num_rows * COLUMNS + at, sums, mask=is_output)
        tl.debug_barrier()
        is_last = tl.atomic_add(arrived + block, 1, sem="acq_rel") == SPLITS - 1
        if is_last:
            tl.store(arrived + block, 0)
            sums = tl.zeros([BLOCK_ROWS, BLOCK_COLUMNS], tl.float32)
            for other_part in tl.static_range(SPLITS):
                place = parts + other_part * num_rows * COLUMNS + at
                # From the second cache: the first one is not shared with the programs that wrote this.
                sums += tl.load(place, mask=is_output, other=0.0, cache_modifier=".cg")
    if is_last:
        if HAS_BIAS:
            sums += tl.load(bias + columns, mask=is_column, other=0.0).to(tl.float32)[None, :]
        tl.store(output + at, sums, mask=is_output)
