"""Triton kernels of the gradients of additive attention; additive_triton.py explains u, additive_gpu.py calls these.

With g the gradient of the logits, the gradient of query i is 4 v sum_j g_ij (u_ij - u_ij^2), that of key j is the same
sum over i, and that of v is sum_ij g_ij (1 - 2 u_ij). One pass computes all three: a program holds GROUP queries in
registers, as one vector of features each, and goes through the keys. The gradients of the logits are stored as
(b, group, key, query), so that those of one key and one group are neighbours.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,assignment"
# ruff: noqa: RUF005 - Triton joins tuples with + and does not support unpacking.

import triton
import triton.language as tl

from regard.kernels.additive_triton import LIMIT, reciprocal, two, zeros

GROUP = tl.constexpr(16)
"""Number of queries that a program holds at a time."""


@triton.jit
def normalise_back(weights, gradients, slopes_of_logits, num_queries, num_keys, BLOCK: tl.constexpr):
    """Compute the gradients of the logits, w (g - sum w g), from those of the weights (b, q, k), in groups."""
    batch, group = tl.program_id(1).to(tl.int64), tl.program_id(0)
    members = tl.arange(0, GROUP)[:, None]
    rows = group * GROUP + members
    weights += (batch * num_queries + rows) * num_keys
    gradients += (batch * num_queries + rows) * num_keys
    slopes_of_logits += (batch * tl.num_programs(0) + group) * num_keys * GROUP + members
    columns = tl.arange(0, BLOCK)[None, :]
    products = tl.zeros([GROUP, BLOCK], tl.float32)
    for first in range(0, num_keys, BLOCK):
        inside = (rows < num_queries) & (first + columns < num_keys)
        weight = tl.load(weights + first + columns, mask=inside, other=0.0)
        products += weight * tl.load(gradients + first + columns, mask=inside, other=0.0)
    common = tl.sum(products, 1)[:, None]
    for first in range(0, num_keys, BLOCK):
        inside = (rows < num_queries) & (first + columns < num_keys)
        weight = tl.load(weights + first + columns, mask=inside, other=0.0)
        slope = weight * (tl.load(gradients + first + columns, mask=inside, other=0.0) - common)
        tl.store(slopes_of_logits + (first + columns) * GROUP, slope, mask=first + columns < num_keys)


@triton.jit
def _four_queries(own, b, g, sums, both, taken, NEAR: tl.constexpr, FAST: tl.constexpr):
    """Add g (u - u^2) of four queries and one key to the sums of the queries and of the key, and g u to `taken`."""
    if NEAR:
        d0, d1, d2, d3 = own[0] * b + 1.0, own[1] * b + 1.0, own[2] * b + 1.0, own[3] * b + 1.0
        d01, d23 = d0 * d1, d2 * d3
        shared = reciprocal(d01 * d23, FAST)
        s01, s23 = shared * d23, shared * d01
        u0, u1, u2, u3 = s01 * d1, s01 * d0, s23 * d3, s23 * d2
    else:
        u0, u1 = 1.0 / (1.0 + tl.exp(2.0 * (own[0] + b))), 1.0 / (1.0 + tl.exp(2.0 * (own[1] + b)))
        u2, u3 = 1.0 / (1.0 + tl.exp(2.0 * (own[2] + b))), 1.0 / (1.0 + tl.exp(2.0 * (own[3] + b)))
    h0, h1, h2, h3 = u0 - u0 * u0, u1 - u1 * u1, u2 - u2 * u2, u3 - u3 * u3
    taken = g[3] * u3 + (g[2] * u2 + (g[1] * u1 + (g[0] * u0 + taken)))
    both = g[3] * h3 + (g[2] * h2 + (g[1] * h1 + (g[0] * h0 + both)))
    return (g[0] * h0 + sums[0], g[1] * h1 + sums[1], g[2] * h2 + sums[2], g[3] * h3 + sums[3]), both, taken


@triton.jit
def _through_keys(own, sums, taken, key, parts, upstream, count, dim, inside, is_later, NEAR: tl.constexpr,
                  FAST: tl.constexpr):  # fmt: skip
    """Combine the queries of a group with `count` keys; `parts` holds the keys' sums from the second group on."""
    following = tl.load(key, mask=inside, other=0.0)
    for j in range(count):
        b = following.to(tl.float32)
        # The next key is loaded early to hide the latency; the earlier sum is needed last.
        following = tl.load(key + dim, mask=inside & (j + 1 < count), other=0.0)
        if NEAR:
            b = tl.exp(2.0 * b)
        earlier = tl.load(parts, mask=inside & is_later, other=0.0)
        both = tl.zeros_like(earlier)
        longer = ()
        for n in tl.static_range(0, GROUP, 4):
            g0, g1 = two(upstream + n // 2)
            g2, g3 = two(upstream + n // 2 + 1)
            four, fours = (own[n], own[n + 1], own[n + 2], own[n + 3]), (sums[n], sums[n + 1], sums[n + 2], sums[n + 3])
            fours, both, taken = _four_queries(four, b, (g0, g1, g2, g3), fours, both, taken, NEAR, FAST)
            longer = longer + fours
        sums = longer
        tl.store(parts, earlier + both, mask=inside)
        key += dim
        parts += dim
        upstream += GROUP // 2
    return sums, taken


@triton.jit
def _largest(inputs, first, last, dim, dims, is_dim, BLOCK: tl.constexpr):
    """Return the largest |x| of rows `first` to `last` in these features."""
    largest = tl.zeros([BLOCK], tl.float32)
    for row in range(first, last):
        row_inputs = tl.load(inputs + row * dim + dims, mask=is_dim, other=0.0).to(tl.float32)
        largest = tl.maximum(largest, tl.abs(row_inputs))
    return tl.max(largest, 0)


@triton.jit
def slopes(
    query,
    key,
    upstream,
    query_parts,
    key_parts,
    fractions,
    num_queries,
    num_keys,
    dim,
    QUERY_SHARE: tl.constexpr,
    KEY_SHARE: tl.constexpr,
    FAST: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Compute sum_j g_ij (u - u^2) of each query i, sum_i g_ij (u - u^2) of each key j, and sum_ij g_ij u.

    A program computes QUERY_SHARE queries (GROUP at a time), KEY_SHARE keys and BLOCK features. Programs that share a
    query or key write to separate parts, (share of the other side, batch, row, feature), which `gather` adds up.
    """
    batch, batches = tl.program_id(2).to(tl.int64), tl.num_programs(2)
    shares_of_keys = tl.cdiv(num_keys, KEY_SHARE)
    query_share, key_share = tl.program_id(0) // shares_of_keys, tl.program_id(0) % shares_of_keys
    dims = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    is_dim = dims < dim
    query += batch * num_queries * dim
    key += batch * num_keys * dim
    first_key, last_key = key_share * KEY_SHARE, tl.minimum(key_share * KEY_SHARE + KEY_SHARE, num_keys)
    first_query = query_share * QUERY_SHARE
    last_query = tl.minimum(first_query + QUERY_SHARE, num_queries)
    # The gradients are loaded in pairs of neighbouring queries, and are 0 for padding.
    upstream += ((batch * tl.cdiv(num_queries, GROUP) + first_query // GROUP) * num_keys + first_key) * (GROUP // 2)
    query_parts += (key_share * batches + batch) * num_queries * dim
    own_parts = key_parts + ((query_share * batches + batch) * num_keys + first_key) * dim + dims
    own_keys = key + first_key * dim + dims
    taken = tl.zeros([BLOCK], tl.float32)
    key_peak = _largest(key, first_key, last_key, dim, dims, is_dim, BLOCK)
    for i in range(first_query, last_query, GROUP):
        is_near = key_peak + _largest(query, i, tl.minimum(i + GROUP, last_query), dim, dims, is_dim, BLOCK) < LIMIT
        sums = zeros(GROUP, BLOCK)
        own = ()
        for n in tl.static_range(GROUP):
            there = is_dim & (i + n < last_query)
            own = own + (tl.load(query + (i + n) * dim + dims, mask=there, other=0.0).to(tl.float32),)
        if is_near:
            grown = ()
            for n in tl.static_range(GROUP):
                grown = grown + (tl.exp(2.0 * own[n]),)
            sums, taken = _through_keys(grown, sums, taken, own_keys, own_parts, upstream, last_key - first_key, dim,
                                        is_dim, i > first_query, True, FAST)  # fmt: skip
        else:
            sums, taken = _through_keys(own, sums, taken, own_keys, own_parts, upstream, last_key - first_key, dim,
                                        is_dim, i > first_query, False, FAST)  # fmt: skip
        for n in tl.static_range(GROUP):
            tl.store(query_parts + (i + n) * dim + dims, sums[n], mask=is_dim & (i + n < last_query))
        upstream += num_keys * (GROUP // 2)
    tl.store(fractions + (tl.program_id(0) * batches + batch) * dim + dims, taken, mask=is_dim)


@triton.jit
def gather(
    query_parts,
    key_parts,
    fractions,
    direction,
    grad_query,
    grad_key,
    grad_direction,
    query_size,
    key_size,
    query_shares,
    key_shares,
    fraction_rows,
    dim,
    BLOCK: tl.constexpr,
):
    """Add up the parts, and multiply by 4 v for queries and keys and by -2 for v.

    A program computes BLOCK elements of the gradient of the queries or keys, or 32 elements of that of v.
    """
    program = tl.program_id(0)
    query_programs, key_programs = tl.cdiv(query_size, BLOCK), tl.cdiv(key_size, BLOCK)
    if program < query_programs:
        _gather(query_parts, grad_query, direction, program, query_size, key_shares, dim, BLOCK)
    elif program < query_programs + key_programs:
        _gather(key_parts, grad_key, direction, program - query_programs, key_size, query_shares, dim, BLOCK)
    else:
        dims = (program - query_programs - key_programs) * 32 + tl.arange(0, 32)
        rows = tl.arange(0, 32)
        total = tl.zeros([32, 32], tl.float32)
        for first in range(0, fraction_rows, 32):
            inside = (first + rows < fraction_rows)[:, None] & (dims < dim)[None, :]
            total += tl.load(fractions + (first + rows)[:, None] * dim + dims[None, :], mask=inside, other=0.0)
        tl.store(grad_direction + dims, -2.0 * tl.sum(total, 0), mask=dims < dim)


@triton.jit
def _gather(parts, output, direction, program, size, count, dim, BLOCK: tl.constexpr):
    at = program.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for _ in range(count):
        total += tl.load(parts + at, mask=at < size, other=0.0)
        parts += size
    tl.store(output + at, 4.0 * tl.load(direction + at % dim) * total, mask=at < size)
