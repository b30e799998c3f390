"""Additive attention in Triton, the language of kernels for a GPU; additive_gpu.py calls these.

tanh(a + b) costs a special-function instruction a pair, of which a GPU has few. With A = exp(2a) and B = exp(2b), taken
once per query and once per key,

    tanh(a + b) = 1 - 2 u,  u = 1 / (1 + A B),  d tanh / da = 4 (u - u^2),

and four fractions share one reciprocal, v0 / d0 + v1 / d1 = (v0 d1 + v1 d0) / (d0 d1), so that the work lies in fused
multiply-adds. The product of four d must stay finite: queries and keys whose largest inputs are together beyond LIMIT
take u = 1 / (1 + exp(2 (a + b))) pair by pair, which is right for any input.

A program holds eight queries as eight scalars, or rows, against one long vector: everything then lies in one layout,
and no thread waits for another. No atomics either: the same inputs give the same bits.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

import triton
import triton.language as tl

LIMIT = tl.constexpr(10.0)
"""Largest |a| + |b| for shared reciprocals: (1 + exp(20))^4 is below 3e38."""
PEAK_TILE = tl.constexpr(64)
"""Queries, or keys, whose largest input is noted together."""


@triton.jit
def prepare(
    inputs, exponentials, peaks, count, dim, padded_dim, stride_row, stride_dim, TILE: tl.constexpr, BLOCK: tl.constexpr
):
    """exp(2x), with zeros up to a multiple of four features, as the strides say; and the largest |x| of a tile."""
    tile, batch = tl.program_id(0), tl.program_id(1)
    rows = tile * TILE + tl.arange(0, TILE)
    largest = tl.zeros([TILE], tl.float32)
    for first in range(0, padded_dim, BLOCK):
        dims = first + tl.arange(0, BLOCK)
        inside = (rows[:, None] < count) & (dims[None, :] < dim)
        at = batch.to(tl.int64) * count * dim + rows[:, None] * dim + dims[None, :]
        values = tl.load(inputs + at, mask=inside, other=0.0).to(tl.float32)
        largest = tl.maximum(largest, tl.max(tl.abs(values), 1))
        to = batch.to(tl.int64) * count * padded_dim + dims[None, :] * stride_dim + rows[:, None] * stride_row
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
def _four_features(query, b0, b1, b2, b3, v0, v1, v2, v3, FAST: tl.constexpr):
    """v0 / d0 + v1 / d1 + v2 / d2 + v3 / d3 of one query, whose exponentials lie at the pointer."""
    d0 = tl.load(query) * b0 + 1.0
    d1 = tl.load(query + 1) * b1 + 1.0
    d2 = tl.load(query + 2) * b2 + 1.0
    d3 = tl.load(query + 3) * b3 + 1.0
    d01, d23 = d0 * d1, d2 * d3
    above = (v0 * d1 + v1 * d0) * d23 + (v2 * d3 + v3 * d2) * d01
    return above * _reciprocal(d01 * d23, FAST)


@triton.jit
def _fraction(query, b, v):
    """v / (1 + exp(2 (a + b))) of one query and feature."""
    return v / (1.0 + tl.exp(2.0 * (tl.load(query).to(tl.float32) + b)))


@triton.jit
def _write(output, mask, fractions, total, row, num_queries, columns, num_keys, mask_q, mask_k, HAS_MASK: tl.constexpr):
    """A row of logits; those that may not be attended to are -inf."""
    inside = (columns < num_keys) & (row < num_queries)
    logits = total - 2.0 * fractions
    if HAS_MASK:
        at = row.to(tl.int64) * mask_q + columns * mask_k
        logits = tl.where(tl.load(mask + at, mask=inside, other=0) != 0, logits, float("-inf"))
    tl.store(output + row.to(tl.int64) * num_keys + columns, logits, mask=inside)


@triton.jit
def score(
    query,
    key,
    exp_query,
    exp_key,
    query_peaks,
    key_peaks,
    direction,
    mask,
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
    BLOCK: tl.constexpr,
):
    """v' tanh(a + b) for eight queries and BLOCK keys."""
    first, batch = tl.program_id(0) * 8, tl.program_id(2).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    is_key = columns < num_keys
    last = num_queries - 1
    peak = 0.0
    key_peaks += batch * tl.cdiv(num_keys, PEAK_TILE)
    for tile in range(tl.program_id(1) * BLOCK // PEAK_TILE, tl.cdiv(tl.program_id(1) * BLOCK + BLOCK, PEAK_TILE)):
        peak = tl.maximum(peak, tl.load(key_peaks + tile, mask=tile < tl.cdiv(num_keys, PEAK_TILE), other=0.0))
    peak += tl.load(query_peaks + batch * tl.cdiv(num_queries, PEAK_TILE) + first // PEAK_TILE)
    f0 = tl.zeros([BLOCK], tl.float32)
    f1, f2, f3, f4, f5, f6, f7 = f0, f0, f0, f0, f0, f0, f0
    total = 0.0
    if peak < LIMIT:
        exp_query += (batch * num_queries + first) * padded_dim
        exp_key += batch * num_keys * padded_dim
        r1, r2, r3 = tl.minimum(1, last - first), tl.minimum(2, last - first), tl.minimum(3, last - first)
        r4, r5, r6 = tl.minimum(4, last - first), tl.minimum(5, last - first), tl.minimum(6, last - first)
        r7 = tl.minimum(7, last - first)
        for d in range(0, padded_dim, 4):
            own = exp_query + d
            b0 = tl.load(exp_key + d * num_keys + columns, mask=is_key, other=0.0)
            b1 = tl.load(exp_key + (d + 1) * num_keys + columns, mask=is_key, other=0.0)
            b2 = tl.load(exp_key + (d + 2) * num_keys + columns, mask=is_key, other=0.0)
            b3 = tl.load(exp_key + (d + 3) * num_keys + columns, mask=is_key, other=0.0)
            v0, v1 = tl.load(direction + d), tl.load(direction + d + 1)
            v2, v3 = tl.load(direction + d + 2), tl.load(direction + d + 3)
            total += (v0 + v1) + (v2 + v3)
            f0 += _four_features(own, b0, b1, b2, b3, v0, v1, v2, v3, FAST)
            f1 += _four_features(own + r1 * padded_dim, b0, b1, b2, b3, v0, v1, v2, v3, FAST)
            f2 += _four_features(own + r2 * padded_dim, b0, b1, b2, b3, v0, v1, v2, v3, FAST)
            f3 += _four_features(own + r3 * padded_dim, b0, b1, b2, b3, v0, v1, v2, v3, FAST)
            f4 += _four_features(own + r4 * padded_dim, b0, b1, b2, b3, v0, v1, v2, v3, FAST)
            f5 += _four_features(own + r5 * padded_dim, b0, b1, b2, b3, v0, v1, v2, v3, FAST)
            f6 += _four_features(own + r6 * padded_dim, b0, b1, b2, b3, v0, v1, v2, v3, FAST)
            f7 += _four_features(own + r7 * padded_dim, b0, b1, b2, b3, v0, v1, v2, v3, FAST)
    else:
        query += batch * num_queries * dim
        key += batch * num_keys * dim
        for d in range(0, dim):
            b = tl.load(key + columns * dim + d, mask=is_key, other=0.0).to(tl.float32)
            v = tl.load(direction + d)
            total += v
            f0 += _fraction(query + first * dim + d, b, v)
            f1 += _fraction(query + tl.minimum(first + 1, last) * dim + d, b, v)
            f2 += _fraction(query + tl.minimum(first + 2, last) * dim + d, b, v)
            f3 += _fraction(query + tl.minimum(first + 3, last) * dim + d, b, v)
            f4 += _fraction(query + tl.minimum(first + 4, last) * dim + d, b, v)
            f5 += _fraction(query + tl.minimum(first + 5, last) * dim + d, b, v)
            f6 += _fraction(query + tl.minimum(first + 6, last) * dim + d, b, v)
            f7 += _fraction(query + tl.minimum(first + 7, last) * dim + d, b, v)
    output += batch * num_queries * num_keys
    mask += batch * mask_b
    _write(output, mask, f0, total, first, num_queries, columns, num_keys, mask_q, mask_k, HAS_MASK)
    _write(output, mask, f1, total, first + 1, num_queries, columns, num_keys, mask_q, mask_k, HAS_MASK)
    _write(output, mask, f2, total, first + 2, num_queries, columns, num_keys, mask_q, mask_k, HAS_MASK)
    _write(output, mask, f3, total, first + 3, num_queries, columns, num_keys, mask_q, mask_k, HAS_MASK)
    _write(output, mask, f4, total, first + 4, num_queries, columns, num_keys, mask_q, mask_k, HAS_MASK)
    _write(output, mask, f5, total, first + 5, num_queries, columns, num_keys, mask_q, mask_k, HAS_MASK)
    _write(output, mask, f6, total, first + 6, num_queries, columns, num_keys, mask_q, mask_k, HAS_MASK)
    _write(output, mask, f7, total, first + 7, num_queries, columns, num_keys, mask_q, mask_k, HAS_MASK)


@triton.jit
def normalise(logits, normalisers, count, GIVEN: tl.constexpr, BLOCK: tl.constexpr):
    """Each row's softmax in place, and the logarithm of its divisor; or by a GIVEN logarithm.

    A row with nothing to attend to has weights 0, and infinity as its logarithm.
    """
    row = tl.program_id(0).to(tl.int64)
    logits += row * count
    columns = tl.arange(0, BLOCK)
    if GIVEN:
        normaliser = tl.load(normalisers + row)
    else:
        largest = tl.full([BLOCK], float("-inf"), tl.float32)
        for first in range(0, count, BLOCK):
            values = tl.load(logits + first + columns, mask=first + columns < count, other=float("-inf"))
            largest = tl.maximum(largest, values)
        anchor = tl.max(largest, 0)
        anchor = tl.where(anchor == float("-inf"), 0.0, anchor)
        divisors = tl.zeros([BLOCK], tl.float32)
        for first in range(0, count, BLOCK):
            values = tl.load(logits + first + columns, mask=first + columns < count, other=float("-inf"))
            divisors += tl.exp(values - anchor)
        divisor = tl.sum(divisors, 0)
        normaliser = tl.where(divisor > 0, anchor + tl.log(tl.where(divisor > 0, divisor, 1.0)), float("inf"))
        tl.store(normalisers + row, normaliser)
    for first in range(0, count, BLOCK):
        inside = first + columns < count
        values = tl.load(logits + first + columns, mask=inside, other=float("-inf"))
        tl.store(logits + first + columns, tl.exp(values - normaliser), mask=inside)


@triton.jit
def _four_queries(e0, e1, e2, e3, b, g0, g1, g2, g3, FAST: tl.constexpr):
    """g (u - u^2) of four queries and one key, and the sum of their g u."""
    d0, d1, d2, d3 = e0 * b + 1.0, e1 * b + 1.0, e2 * b + 1.0, e3 * b + 1.0
    d01, d23 = d0 * d1, d2 * d3
    shared = _reciprocal(d01 * d23, FAST)
    s01, s23 = shared * d23, shared * d01
    u0, u1, u2, u3 = s01 * d1, s01 * d0, s23 * d3, s23 * d2
    f0, f1, f2, f3 = g0 * u0, g1 * u1, g2 * u2, g3 * u3
    return f0 - f0 * u0, f1 - f1 * u1, f2 - f2 * u2, f3 - f3 * u3, (f0 + f1) + (f2 + f3)


@triton.jit
def _one_query(query, b, g, dims, is_dim):
    """g (u - u^2) and g u of one query and one key, whatever their size."""
    u = 1.0 / (1.0 + tl.exp(2.0 * (tl.load(query + dims, mask=is_dim, other=0.0).to(tl.float32) + b)))
    return g * (u - u * u), g * u


@triton.jit
def _grown(query, dims, is_dim):
    return tl.exp(2.0 * tl.load(query + dims, mask=is_dim, other=0.0).to(tl.float32))


@triton.jit
def slopes(
    query,
    key,
    query_peaks,
    key_peaks,
    upstream,
    query_parts,
    key_parts,
    fractions,
    num_queries,
    num_keys,
    dim,
    SHARE: tl.constexpr,
    FAST: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """sum_j g_ij (u - u^2) for the queries i, sum_i g_ij (u - u^2) for the keys j, and sum_ij g_ij u.

    A program takes SHARE queries (eight at a time), SHARE keys and BLOCK features. What several programs find for the
    same query or key goes to a part of its own, (share of the other side, batch, row, feature), to be summed.
    """
    batch, batches = tl.program_id(2).to(tl.int64), tl.num_programs(2)
    shares_of_keys = tl.cdiv(num_keys, SHARE)
    query_share, key_share = tl.program_id(0) // shares_of_keys, tl.program_id(0) % shares_of_keys
    dims = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    is_dim = dims < dim
    query += batch * num_queries * dim
    key += batch * num_keys * dim
    upstream += (batch * num_queries + query_share * SHARE) * num_keys
    query_parts += (key_share * batches + batch) * num_queries * dim
    key_parts += (query_share * batches + batch) * num_keys * dim
    query_peaks += batch * tl.cdiv(num_queries, PEAK_TILE)
    key_peaks += batch * tl.cdiv(num_keys, PEAK_TILE)
    nothing = tl.zeros([BLOCK], tl.float32)
    taken = nothing
    first_key, last_key = key_share * SHARE, tl.minimum(key_share * SHARE + SHARE, num_keys)
    last_query = tl.minimum(query_share * SHARE + SHARE, num_queries)
    for i in range(query_share * SHARE, last_query, 8):
        in1, in2, in3, in4 = i + 1 < last_query, i + 2 < last_query, i + 3 < last_query, i + 4 < last_query
        in5, in6, in7 = i + 5 < last_query, i + 6 < last_query, i + 7 < last_query
        own = query + i * dim
        e0, e1 = _grown(own, dims, is_dim), _grown(own + dim, dims, is_dim & in1)
        e2, e3 = _grown(own + 2 * dim, dims, is_dim & in2), _grown(own + 3 * dim, dims, is_dim & in3)
        e4, e5 = _grown(own + 4 * dim, dims, is_dim & in4), _grown(own + 5 * dim, dims, is_dim & in5)
        e6, e7 = _grown(own + 6 * dim, dims, is_dim & in6), _grown(own + 7 * dim, dims, is_dim & in7)
        t0, t1, t2, t3, t4, t5, t6, t7 = nothing, nothing, nothing, nothing, nothing, nothing, nothing, nothing
        own_peak = tl.load(query_peaks + i // PEAK_TILE)
        for first in range(first_key, last_key, PEAK_TILE):
            is_near = own_peak + tl.load(key_peaks + first // PEAK_TILE) < LIMIT
            for j in range(first, tl.minimum(first + PEAK_TILE, last_key)):
                b = tl.load(key + j * dim + dims, mask=is_dim, other=0.0).to(tl.float32)
                before = tl.load(key_parts + j * dim + dims, mask=is_dim, other=0.0)
                g = upstream + j
                g0, g1 = tl.load(g), tl.load(g + num_keys, mask=in1, other=0.0)
                g2, g3 = tl.load(g + 2 * num_keys, mask=in2, other=0.0), tl.load(g + 3 * num_keys, mask=in3, other=0.0)
                g4, g5 = tl.load(g + 4 * num_keys, mask=in4, other=0.0), tl.load(g + 5 * num_keys, mask=in5, other=0.0)
                g6, g7 = tl.load(g + 6 * num_keys, mask=in6, other=0.0), tl.load(g + 7 * num_keys, mask=in7, other=0.0)
                if is_near:
                    grown = tl.exp(2.0 * b)
                    s0, s1, s2, s3, more = _four_queries(e0, e1, e2, e3, grown, g0, g1, g2, g3, FAST)
                    s4, s5, s6, s7, still = _four_queries(e4, e5, e6, e7, grown, g4, g5, g6, g7, FAST)
                    taken += more + still
                else:
                    s0, f0 = _one_query(own, b, g0, dims, is_dim)
                    s1, f1 = _one_query(own + dim, b, g1, dims, is_dim & in1)
                    s2, f2 = _one_query(own + 2 * dim, b, g2, dims, is_dim & in2)
                    s3, f3 = _one_query(own + 3 * dim, b, g3, dims, is_dim & in3)
                    s4, f4 = _one_query(own + 4 * dim, b, g4, dims, is_dim & in4)
                    s5, f5 = _one_query(own + 5 * dim, b, g5, dims, is_dim & in5)
                    s6, f6 = _one_query(own + 6 * dim, b, g6, dims, is_dim & in6)
                    s7, f7 = _one_query(own + 7 * dim, b, g7, dims, is_dim & in7)
                    taken += ((f0 + f1) + (f2 + f3)) + ((f4 + f5) + (f6 + f7))
                t0, t1, t2, t3 = t0 + s0, t1 + s1, t2 + s2, t3 + s3
                t4, t5, t6, t7 = t4 + s4, t5 + s5, t6 + s6, t7 + s7
                both = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))
                tl.store(key_parts + j * dim + dims, before + both, mask=is_dim)
        upstream += 8 * num_keys
        to = query_parts + i * dim + dims
        tl.store(to, t0, mask=is_dim)
        tl.store(to + dim, t1, mask=is_dim & in1)
        tl.store(to + 2 * dim, t2, mask=is_dim & in2)
        tl.store(to + 3 * dim, t3, mask=is_dim & in3)
        tl.store(to + 4 * dim, t4, mask=is_dim & in4)
        tl.store(to + 5 * dim, t5, mask=is_dim & in5)
        tl.store(to + 6 * dim, t6, mask=is_dim & in6)
        tl.store(to + 7 * dim, t7, mask=is_dim & in7)
    tl.store(fractions + (tl.program_id(0) * batches + batch) * dim + dims, taken, mask=is_dim)
