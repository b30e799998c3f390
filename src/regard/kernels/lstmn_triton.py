"""The steps of the long short-term memory network, in Triton; lstmn.py calls these.

All tensors are contiguous and batch first: (b, n, ...), with n = `length`. Where the features of one example are split
among programs, each program compares the query with the keys anew: that is cheaper than waiting for the others.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

import triton
import triton.language as tl

from regard.kernels.numerics_triton import load, sigmoid, tanh


@triton.jit
def look(
    inputs,
    product,
    keys,
    tape,
    direction,
    queries,
    weights,
    read,
    t,
    first,
    length,
    dim: tl.constexpr,
    size: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_DIM: tl.constexpr,
):
    """softmax(v' tanh(query + key)) over the tape from `first` to t - 1, and what it reads: [h~; c~]."""
    batch, part, parts = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.num_programs(1)
    positions = first + tl.arange(0, BLOCK_K)
    is_key = positions < t
    rows = batch * length + positions
    columns = 4 * size + dim
    own = inputs + (batch * length + t) * columns + 4 * size
    before = product + batch * columns + 4 * size
    matches = tl.zeros([BLOCK_K, BLOCK_DIM], tl.float32)
    for start in range(0, dim, BLOCK_DIM):
        dims = start + tl.arange(0, BLOCK_DIM)
        is_dim = dims < dim
        query = load(own + dims, is_dim) + load(before + dims, is_dim)
        tl.store(queries + (batch * length + t) * dim + dims, query, mask=is_dim & (part == 0))
        key = load(keys + rows[:, None] * dim + dims[None, :], is_key[:, None] & is_dim[None, :])
        matches += load(direction + dims, is_dim)[None, :] * tanh(query[None, :] + key)
    logits = tl.where(is_key, tl.sum(matches, 1), float("-inf"))
    found = tl.exp(logits - tl.max(logits, 0))
    found = found / tl.sum(found, 0)
    tl.store(weights + (batch * length + t) * length + positions, found, mask=is_key & (part == 0))
    for start in range(part * BLOCK_DIM, 2 * size, parts * BLOCK_DIM):
        features = start + tl.arange(0, BLOCK_DIM)
        is_feature = features < 2 * size
        tile = load(tape + rows[:, None] * 2 * size + features[None, :], is_key[:, None] & is_feature[None, :])
        total = tl.sum(found[:, None] * tile, 0)
        tl.store(read + (batch * length + t) * 2 * size + features, total, mask=is_feature)


@triton.jit
def look_back(
    queries,
    keys,
    tape,
    direction,
    weights,
    grad_read,
    grad_products,
    grad_keys,
    grad_tape,
    grad_direction,
    t,
    first,
    length,
    dim: tl.constexpr,
    size: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_DIM: tl.constexpr,
):
    """The gradient of the query; adds to those of the keys, of the tape and of v."""
    batch, part, parts = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.num_programs(1)
    positions = first + tl.arange(0, BLOCK_K)
    is_key = positions < t
    rows = batch * length + positions
    upstream = grad_read + (batch * length + t) * 2 * size
    products = tl.zeros([BLOCK_K, BLOCK_DIM], tl.float32)
    for start in range(0, 2 * size, BLOCK_DIM):
        features = start + tl.arange(0, BLOCK_DIM)
        is_feature = features < 2 * size
        tile = load(tape + rows[:, None] * 2 * size + features[None, :], is_key[:, None] & is_feature[None, :])
        products += tile * load(upstream + features, is_feature)[None, :]
    through = tl.sum(products, 1)
    weight = load(weights + (batch * length + t) * length + positions, is_key)
    slope = weight * (through - tl.sum(weight * through, 0))
    for start in range(part * BLOCK_DIM, dim, parts * BLOCK_DIM):
        dims = start + tl.arange(0, BLOCK_DIM)
        is_dim = dims < dim
        inside = is_key[:, None] & is_dim[None, :]
        at = rows[:, None] * dim + dims[None, :]
        query = load(queries + (batch * length + t) * dim + dims, is_dim)
        squashed = tanh(query[None, :] + load(keys + at, inside))
        own = grad_direction + batch * dim + dims
        tl.store(own, load(own, is_dim) + tl.sum(slope[:, None] * squashed, 0), mask=is_dim)
        pairs = slope[:, None] * (1.0 - squashed * squashed) * load(direction + dims, is_dim)[None, :]
        # The product of the last step is part of this step's query.
        pointers = grad_products + (batch * length + t - 1) * (4 * size + dim) + 4 * size + dims
        tl.store(pointers, tl.sum(pairs, 0), mask=is_dim)
        tl.store(grad_keys + at, load(grad_keys + at, inside) + pairs, mask=inside)
    for start in range(part * BLOCK_DIM, 2 * size, parts * BLOCK_DIM):
        features = start + tl.arange(0, BLOCK_DIM)
        is_feature = features < 2 * size
        inside = is_key[:, None] & is_feature[None, :]
        at = rows[:, None] * 2 * size + features[None, :]
        more = weight[:, None] * load(upstream + features, is_feature)[None, :]
        tl.store(grad_tape + at, load(grad_tape + at, inside) + more, mask=inside)


@triton.jit
def write(inputs, product, read, gates, tape, t, length, columns, size: tl.constexpr, BLOCK: tl.constexpr):
    """c = f c~ + i c^ and h = o tanh(c); the gates after their functions, for the backward pass."""
    batch, units = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside, row = units < size, batch * length + t
    own, other, four = inputs + row * columns + units, product + batch * columns + units, gates + row * 4 * size + units
    entry = sigmoid(load(own, inside) + load(other, inside))
    forget = sigmoid(load(own + size, inside) + load(other + size, inside))
    out = sigmoid(load(own + 2 * size, inside) + load(other + 2 * size, inside))
    candidate = tanh(load(own + 3 * size, inside) + load(other + 3 * size, inside))
    memory = forget * load(read + row * 2 * size + size + units, inside) + entry * candidate
    tl.store(four, entry, mask=inside)
    tl.store(four + size, forget, mask=inside)
    tl.store(four + 2 * size, out, mask=inside)
    tl.store(four + 3 * size, candidate, mask=inside)
    tl.store(tape + row * 2 * size + units, out * tanh(memory), mask=inside)
    tl.store(tape + row * 2 * size + size + units, memory, mask=inside)


@triton.jit
def write_back(
    gates,
    read,
    tape,
    grad_hidden,
    grad_tape,
    grad_products,
    grad_read,
    t,
    length,
    columns,
    size: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The gradients of the gates before their functions, and of c~."""
    batch, units = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside, row = units < size, batch * length + t
    four, two = gates + row * 4 * size + units, row * 2 * size + size + units
    entry, forget = load(four, inside), load(four + size, inside)
    out, candidate = load(four + 2 * size, inside), load(four + 3 * size, inside)
    upstream, squashed = load(grad_hidden + batch * size + units, inside), tanh(load(tape + two, inside))
    through = load(grad_tape + two, inside) + upstream * out * (1.0 - squashed * squashed)
    pointers = grad_products + row * columns + units
    tl.store(pointers, through * candidate * entry * (1.0 - entry), mask=inside)
    tl.store(pointers + size, through * load(read + two, inside) * forget * (1.0 - forget), mask=inside)
    tl.store(pointers + 2 * size, upstream * squashed * out * (1.0 - out), mask=inside)
    tl.store(pointers + 3 * size, through * entry * (1.0 - candidate * candidate), mask=inside)
    tl.store(grad_read + two, through * forget, mask=inside)
