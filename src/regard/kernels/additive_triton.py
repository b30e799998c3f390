"""Additive attention in Triton, the language of kernels for a GPU; additive_gpu.py calls these.

tanh(a + b) costs a special-function instruction a pair, of which a GPU has few. With A = exp(2a) and B = exp(2b), taken
once per query and once per key,

    tanh(a + b) = 1 - 2 u,  u = 1 / (1 + A B),  d tanh / da = 4 (u - u^2),

and four fractions share one reciprocal, v0 / d0 + v1 / d1 = (v0 d1 + v1 d0) / (d0 d1), so that the work lies in fused
multiply-adds. The product of four d must stay finite: a tile of queries and a tile of keys whose largest inputs are
together beyond LIMIT take u = 1 / (1 + exp(2 (a + b))) pair by pair, which is right for any input.

No atomics: the same inputs give the same bits.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

import triton
import triton.language as tl

LIMIT = tl.constexpr(10.0)
"""Largest |a| + |b| for shared reciprocals: (1 + exp(20))^4 is below 3e38."""
PEAK_TILE = tl.constexpr(64)
"""Queries, or keys, whose largest input is noted together."""


@triton.jit
def prepare(inputs, exponentials, peaks, count, dim, padded_dim, BLOCK_DIM: tl.constexpr):
    """exp(2x), transposed to (feature, row) and padded with zeros to a multiple of four features; the largest |x|."""
    tile, batch = tl.program_id(0), tl.program_id(1)
    rows = tile * PEAK_TILE + tl.arange(0, PEAK_TILE)
    largest = tl.zeros([PEAK_TILE], tl.float32)
    for first in range(0, padded_dim, BLOCK_DIM):
        dims = first + tl.arange(0, BLOCK_DIM)
        inside = (rows[:, None] < count) & (dims[None, :] < dim)
        at = batch.to(tl.int64) * count * dim + rows[:, None] * dim + dims[None, :]
        values = tl.load(inputs + at, mask=inside, other=0.0).to(tl.float32)
        largest = tl.maximum(largest, tl.max(tl.abs(values), 1))
        to = batch.to(tl.int64) * count * padded_dim + dims[None, :] * count + rows[:, None]
        there = (rows[:, None] < count) & (dims[None, :] < padded_dim)
        tl.store(exponentials + to, tl.where(inside, tl.exp(2.0 * values), 0.0), mask=there)
    tl.store(peaks + batch * tl.num_programs(0) + tile, tl.max(largest, 0))


@triton.jit
def _reciprocal(x, FAST: tl.constexpr):
    """1 / x; FAST is the instruction of NVIDIA's GPUs that is right to the last bit or one beside it."""
    if FAST:
        return tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1)
    else:
        return 1.0 / x


@triton.jit
def _logits(
    query,
    key,
    exp_query,
    exp_key,
    direction,
    rows,
    columns,
    num_queries,
    num_keys,
    dim,
    padded_dim,
    peak,
    FAST: tl.constexpr,
    BLOCK_Q: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """v' tanh(a + b) for one tile of queries and keys; the pointers are those of its batch."""
    is_query, is_key = rows < num_queries, columns < num_keys
    total = 0.0
    fractions = tl.zeros([BLOCK_Q, BLOCK_K], tl.float32)
    if peak < LIMIT:
        for d in range(0, padded_dim, 4):
            a0 = tl.load(exp_query + d * num_queries + rows, mask=is_query, other=0.0)
            a1 = tl.load(exp_query + (d + 1) * num_queries + rows, mask=is_query, other=0.0)
            a2 = tl.load(exp_query + (d + 2) * num_queries + rows, mask=is_query, other=0.0)
            a3 = tl.load(exp_query + (d + 3) * num_queries + rows, mask=is_query, other=0.0)
            b0 = tl.load(exp_key + d * num_keys + columns, mask=is_key, other=0.0)
            b1 = tl.load(exp_key + (d + 1) * num_keys + columns, mask=is_key, other=0.0)
            b2 = tl.load(exp_key + (d + 2) * num_keys + columns, mask=is_key, other=0.0)
            b3 = tl.load(exp_key + (d + 3) * num_keys + columns, mask=is_key, other=0.0)
            v0, v1 = tl.load(direction + d), tl.load(direction + d + 1)
            v2, v3 = tl.load(direction + d + 2), tl.load(direction + d + 3)
            d0 = a0[:, None] * b0[None, :] + 1.0
            d1 = a1[:, None] * b1[None, :] + 1.0
            d2 = a2[:, None] * b2[None, :] + 1.0
            d3 = a3[:, None] * b3[None, :] + 1.0
            d01, d23 = d0 * d1, d2 * d3
            above = (v0 * d1 + v1 * d0) * d23 + (v2 * d3 + v3 * d2) * d01
            fractions += above * _reciprocal(d01 * d23, FAST)
            total += (v0 + v1) + (v2 + v3)
    else:
        for d in range(0, dim):
            a = tl.load(query + rows * dim + d, mask=is_query, other=0.0).to(tl.float32)
            b = tl.load(key + columns * dim + d, mask=is_key, other=0.0).to(tl.float32)
            v = tl.load(direction + d)
            fractions += v / (1.0 + tl.exp(2.0 * (a[:, None] + b[None, :])))
            total += v
    return total - 2.0 * fractions


@triton.jit
def _allowed(mask, rows, columns, num_queries, num_keys, stride_q, stride_k, HAS_MASK: tl.constexpr):
    """Which pairs of a tile are there and may be attended to."""
    inside = (rows[:, None] < num_queries) & (columns[None, :] < num_keys)
    if HAS_MASK:
        at = rows[:, None].to(tl.int64) * stride_q + columns[None, :] * stride_k
        inside = inside & (tl.load(mask + at, mask=inside, other=0) != 0)
    return inside


@triton.jit
def attend(
    query,
    key,
    exp_query,
    exp_key,
    query_peaks,
    key_peaks,
    direction,
    values,
    mask,
    context,
    normalisers,
    num_queries,
    num_keys,
    dim,
    padded_dim,
    value_dim,
    mask_b,
    mask_q,
    mask_k,
    HAS_MASK: tl.constexpr,
    FAST: tl.constexpr,
    PRECISION: tl.constexpr,
    BLOCK_Q: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_V: tl.constexpr,
):
    """The context of a tile of queries, and the logarithm of what their weights were divided by."""
    batch = tl.program_id(1).to(tl.int64)
    rows = tl.program_id(0) * BLOCK_Q + tl.arange(0, BLOCK_Q)
    query += batch * num_queries * dim
    key += batch * num_keys * dim
    exp_query += batch * num_queries * padded_dim
    exp_key += batch * num_keys * padded_dim
    key_tiles = tl.cdiv(num_keys, PEAK_TILE)
    query_peak = tl.load(
        query_peaks + batch * tl.cdiv(num_queries, PEAK_TILE) + tl.program_id(0) * BLOCK_Q // PEAK_TILE
    )
    features = tl.arange(0, BLOCK_V)
    largest = tl.full([BLOCK_Q], float("-inf"), tl.float32)
    divisor = tl.zeros([BLOCK_Q], tl.float32)
    read = tl.zeros([BLOCK_Q, BLOCK_V], tl.float32)
    for first in range(0, num_keys, BLOCK_K):
        columns = first + tl.arange(0, BLOCK_K)
        peak = query_peak + tl.load(key_peaks + batch * key_tiles + first // PEAK_TILE)
        logits = _logits(
            query,
            key,
            exp_query,
            exp_key,
            direction,
            rows,
            columns,
            num_queries,
            num_keys,
            dim,
            padded_dim,
            peak,
            FAST,
            BLOCK_Q,
            BLOCK_K,
        )
        allowed = _allowed(mask + batch * mask_b, rows, columns, num_queries, num_keys, mask_q, mask_k, HAS_MASK)
        logits = tl.where(allowed, logits, float("-inf"))
        grown = tl.maximum(largest, tl.max(logits, 1))
        anchor = tl.where(grown == float("-inf"), 0.0, grown)
        weights = tl.exp(logits - anchor[:, None])
        shrink = tl.exp(largest - anchor)
        divisor = divisor * shrink + tl.sum(weights, 1)
        at = (batch * num_keys + columns[:, None]) * value_dim + features[None, :]
        there = (columns[:, None] < num_keys) & (features[None, :] < value_dim)
        tile = tl.load(values + at, mask=there, other=0.0).to(tl.float32)
        read = read * shrink[:, None] + tl.dot(weights, tile, input_precision=PRECISION)
        largest = grown
    is_open = divisor > 0
    read = read / tl.where(is_open, divisor, 1.0)[:, None]
    at = (batch * num_queries + rows[:, None]) * value_dim + features[None, :]
    there = (rows[:, None] < num_queries) & (features[None, :] < value_dim)
    tl.store(context + at, read, mask=there)
    # Of a row with nothing to attend to every weight is exp(-inf): 0.
    normaliser = tl.where(is_open, largest + tl.log(tl.where(is_open, divisor, 1.0)), float("inf"))
    tl.store(normalisers + batch * num_queries + rows, normaliser, mask=rows < num_queries)


@triton.jit
def weigh(
    query,
    key,
    exp_query,
    exp_key,
    query_peaks,
    key_peaks,
    direction,
    mask,
    normalisers,
    output,
    num_queries,
    num_keys,
    dim,
    padded_dim,
    mask_b,
    mask_q,
    mask_k,
    HAS_MASK: tl.constexpr,
    FAST: tl.constexpr,
    AS_WEIGHTS: tl.constexpr,
    BLOCK_Q: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """The weights of a tile of queries and keys, from the logarithm of their divisor; or the logits themselves."""
    batch = tl.program_id(2).to(tl.int64)
    rows = tl.program_id(1) * BLOCK_Q + tl.arange(0, BLOCK_Q)
    columns = tl.program_id(0) * BLOCK_K + tl.arange(0, BLOCK_K)
    query_peak = tl.load(
        query_peaks + batch * tl.cdiv(num_queries, PEAK_TILE) + tl.program_id(1) * BLOCK_Q // PEAK_TILE
    )
    key_peak = tl.load(key_peaks + batch * tl.cdiv(num_keys, PEAK_TILE) + tl.program_id(0) * BLOCK_K // PEAK_TILE)
    found = _logits(
        query + batch * num_queries * dim,
        key + batch * num_keys * dim,
        exp_query + batch * num_queries * padded_dim,
        exp_key + batch * num_keys * padded_dim,
        direction,
        rows,
        columns,
        num_queries,
        num_keys,
        dim,
        padded_dim,
        query_peak + key_peak,
        FAST,
        BLOCK_Q,
        BLOCK_K,
    )
    if AS_WEIGHTS:
        allowed = _allowed(mask + batch * mask_b, rows, columns, num_queries, num_keys, mask_q, mask_k, HAS_MASK)
        normaliser = tl.load(normalisers + batch * num_queries + rows, mask=rows < num_queries, other=0.0)
        found = tl.where(allowed, tl.exp(found - normaliser[:, None]), 0.0)
    at = (batch * num_queries + rows[:, None]) * num_keys + columns[None, :]
    tl.store(output + at, found, mask=(rows[:, None] < num_queries) & (columns[None, :] < num_keys))


@triton.jit
def slopes(
    query,
    key,
    query_peaks,
    key_peaks,
    direction,
    upstream,
    query_parts,
    key_parts,
    fractions,
    num_queries,
    num_keys,
    dim,
    stride_b,
    stride_q,
    stride_k,
    SHARE: tl.constexpr,
    FAST: tl.constexpr,
    BLOCK_Q: tl.constexpr,
    BLOCK_DIM: tl.constexpr,
):
    """4 v_d sum_j g_ij (u - u^2) for the queries i and 4 v_d sum_i g_ij (u - u^2) for the keys j; also sum_ij g_ij u.

    A program takes SHARE queries, SHARE keys and BLOCK_DIM features, and one warp runs it, so that a thread
    holds all queries of its features and sums over them by itself. What several programs add to the same query or key
    goes to a part of its own, (share of the other side, batch, row, feature), to be summed afterwards.
    """
    batch = tl.program_id(2).to(tl.int64)
    batches = tl.num_programs(2)
    shares_of_keys = tl.cdiv(num_keys, SHARE)
    query_share, key_share = tl.program_id(0) // shares_of_keys, tl.program_id(0) % shares_of_keys
    dims = tl.program_id(1) * BLOCK_DIM + tl.arange(0, BLOCK_DIM)
    is_dim = dims < dim
    v = 4.0 * tl.load(direction + dims, mask=is_dim, other=0.0)
    query += batch * num_queries * dim
    key += batch * num_keys * dim
    upstream += batch * stride_b
    query_parts += (key_share * batches + batch) * num_queries * dim
    key_parts += (query_share * batches + batch) * num_keys * dim
    query_peaks += batch * tl.cdiv(num_queries, PEAK_TILE)
    key_peaks += batch * tl.cdiv(num_keys, PEAK_TILE)
    taken = tl.zeros([BLOCK_DIM], tl.float32)
    first_key = key_share * SHARE
    last_key = tl.minimum(first_key + SHARE, num_keys)
    first_query = query_share * SHARE
    for at_query in range(first_query, tl.minimum(first_query + SHARE, num_queries), BLOCK_Q):
        rows = at_query + tl.arange(0, BLOCK_Q)
        is_row = rows < num_queries
        inside = is_row[:, None] & is_dim[None, :]
        own = tl.load(query + rows[:, None] * dim + dims[None, :], mask=inside, other=0.0).to(tl.float32)
        grown = tl.exp(2.0 * own)
        own_peak = tl.load(query_peaks + at_query // PEAK_TILE)
        incoming = upstream + rows.to(tl.int64) * stride_q
        total = tl.zeros([BLOCK_Q, BLOCK_DIM], tl.float32)
        for first in range(first_key, last_key, PEAK_TILE):
            last = tl.minimum(first + PEAK_TILE, last_key)
            if own_peak + tl.load(key_peaks + first // PEAK_TILE) < LIMIT:
                for j in range(first, last, 4):
                    in1, in2, in3 = j + 1 < last, j + 2 < last, j + 3 < last
                    at = j * dim + dims
                    b0 = tl.load(key + at, mask=is_dim, other=0.0).to(tl.float32)
                    b1 = tl.load(key + at + dim, mask=is_dim & in1, other=0.0).to(tl.float32)
                    b2 = tl.load(key + at + 2 * dim, mask=is_dim & in2, other=0.0).to(tl.float32)
                    b3 = tl.load(key + at + 3 * dim, mask=is_dim & in3, other=0.0).to(tl.float32)
                    g0 = tl.load(incoming + j * stride_k, mask=is_row, other=0.0)[:, None]
                    g1 = tl.load(incoming + (j + 1) * stride_k, mask=is_row & in1, other=0.0)[:, None]
                    g2 = tl.load(incoming + (j + 2) * stride_k, mask=is_row & in2, other=0.0)[:, None]
                    g3 = tl.load(incoming + (j + 3) * stride_k, mask=is_row & in3, other=0.0)[:, None]
                    d0 = grown * tl.exp(2.0 * b0)[None, :] + 1.0
                    d1 = grown * tl.exp(2.0 * b1)[None, :] + 1.0
                    d2 = grown * tl.exp(2.0 * b2)[None, :] + 1.0
                    d3 = grown * tl.exp(2.0 * b3)[None, :] + 1.0
                    d01, d23 = d0 * d1, d2 * d3
                    shared = _reciprocal(d01 * d23, FAST)
                    s01, s23 = shared * d23, shared * d01
                    u0, u1, u2, u3 = s01 * d1, s01 * d0, s23 * d3, s23 * d2
                    f0, f1, f2, f3 = g0 * u0, g1 * u1, g2 * u2, g3 * u3
                    taken += tl.sum((f0 + f1) + (f2 + f3), 0)
                    s0, s1, s2, s3 = f0 - f0 * u0, f1 - f1 * u1, f2 - f2 * u2, f3 - f3 * u3
                    total += (s0 + s1) + (s2 + s3)
                    _add(key_parts + at, v * tl.sum(s0, 0), is_dim)
                    _add(key_parts + at + dim, v * tl.sum(s1, 0), is_dim & in1)
                    _add(key_parts + at + 2 * dim, v * tl.sum(s2, 0), is_dim & in2)
                    _add(key_parts + at + 3 * dim, v * tl.sum(s3, 0), is_dim & in3)
            else:
                for j in range(first, last):
                    b = tl.load(key + j * dim + dims, mask=is_dim, other=0.0).to(tl.float32)
                    g = tl.load(incoming + j * stride_k, mask=is_row, other=0.0)[:, None]
                    u = 1.0 / (1.0 + tl.exp(2.0 * (own + b[None, :])))
                    taken += tl.sum(g * u, 0)
                    slope = g * (u - u * u)
                    total += slope
                    _add(key_parts + j * dim + dims, v * tl.sum(slope, 0), is_dim)
        tl.store(query_parts + rows[:, None] * dim + dims[None, :], v[None, :] * total, mask=inside)
    tl.store(fractions + (tl.program_id(0) * batches + batch) * dim + dims, taken, mask=is_dim)


@triton.jit
def _add(pointers, more, inside):
    tl.store(pointers, tl.load(pointers, mask=inside, other=0.0) + more, mask=inside)
