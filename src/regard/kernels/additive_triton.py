"""Additive logits in Triton, the language of kernels for a GPU; additive_gpu.py calls these.

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
    query,
    key,
    exp_query,
    exp_key,
    query_peaks,
    key_peaks,
    num_queries,
    num_keys,
    dim,
    padded_dim,
    padded_keys,
    TILE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """exp(2x) of the queries as (b, query, feature), and of the keys as (b, feature, key); the largest |x| of a tile.

    Features that fill up are 0, and so are the keys up to a whole tile.
    """
    tile, batch = tl.program_id(0), tl.program_id(1).to(tl.int64)
    query_tiles = tl.cdiv(num_queries, TILE)
    if tile < query_tiles:
        exponentials = exp_query + batch * num_queries * padded_dim
        peaks = query_peaks + batch * query_tiles
        _prepare(query, exponentials, peaks, tile, batch, num_queries, num_queries, dim, padded_dim, padded_dim, 1,
                 TILE, BLOCK)  # fmt: skip
    else:
        exponentials = exp_key + batch * padded_keys * padded_dim
        peaks = key_peaks + batch * tl.cdiv(num_keys, TILE)
        _prepare(key, exponentials, peaks, tile - query_tiles, batch, num_keys, padded_keys, dim, padded_dim, 1,
                 padded_keys, TILE, BLOCK)  # fmt: skip


@triton.jit
def _prepare(inputs, exponentials, peaks, tile, batch, count, padded_count, dim, padded_dim, stride_row, stride_dim,
             TILE: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """One tile of one side."""
    rows = tile * TILE + tl.arange(0, TILE)
    largest = tl.zeros([TILE], tl.float32)
    for first in range(0, padded_dim, BLOCK):
        dims = first + tl.arange(0, BLOCK)
        inside = (rows[:, None] < count) & (dims[None, :] < dim)
        at = batch * count * dim + rows[:, None] * dim + dims[None, :]
        values = tl.load(inputs + at, mask=inside, other=0.0).to(tl.float32)
        largest = tl.maximum(largest, tl.max(tl.abs(values), 1))
        to = dims[None, :] * stride_dim + rows[:, None] * stride_row
        there = (rows[:, None] < padded_count) & (dims[None, :] < padded_dim)
        tl.store(exponentials + to, tl.where(inside, tl.exp(2.0 * values), 0.0), mask=there)
    tl.store(peaks + tile, tl.max(largest, 0))


@triton.jit
def reciprocal(x, FAST: tl.constexpr):
    """1 / x; FAST is the instruction of NVIDIA's GPUs that is right to the last bit or one beside it."""
    if FAST:
        return tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1)
    else:
        return 1.0 / x


@triton.jit
def two(pointer):
    """Two neighbouring float32, loaded as one int64: half as many loads."""
    both = tl.load(pointer)
    return both.to(tl.int32).to(tl.float32, bitcast=True), (both >> 32).to(tl.int32).to(tl.float32, bitcast=True)


@triton.jit
def _four_features(query, b0, b1, b2, b3, v0, v1, v2, v3, FAST: tl.constexpr):
    """v0 / d0 + v1 / d1 + v2 / d2 + v3 / d3 of one query, whose exponentials lie at the pointer."""
    a0, a1 = two(query)
    a2, a3 = two(query + 1)
    d0, d1, d2, d3 = a0 * b0 + 1.0, a1 * b1 + 1.0, a2 * b2 + 1.0, a3 * b3 + 1.0
    d01, d23 = d0 * d1, d2 * d3
    above = (v0 * d1 + v1 * d0) * d23 + (v2 * d3 + v3 * d2) * d01
    return above * reciprocal(d01 * d23, FAST)


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
    direction_pairs,
    mask,
    output,
    num_queries,
    num_keys,
    dim,
    padded_dim,
    padded_keys,
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
        # The exponentials of the queries and v come in pairs.
        half = padded_dim // 2
        exp_query += (batch * num_queries + first) * half
        exp_key += batch * padded_keys * padded_dim
        r1, r2 = tl.minimum(1, last - first) * half, tl.minimum(2, last - first) * half
        r3, r4 = tl.minimum(3, last - first) * half, tl.minimum(4, last - first) * half
        r5, r6 = tl.minimum(5, last - first) * half, tl.minimum(6, last - first) * half
        r7 = tl.minimum(7, last - first) * half
        for d in range(0, padded_dim, 4):
            own = exp_query + d // 2
            b0 = tl.load(exp_key + d * padded_keys + columns)
            b1 = tl.load(exp_key + (d + 1) * padded_keys + columns)
            b2 = tl.load(exp_key + (d + 2) * padded_keys + columns)
            b3 = tl.load(exp_key + (d + 3) * padded_keys + columns)
            v0, v1 = two(direction_pairs + d // 2)
            v2, v3 = two(direction_pairs + d // 2 + 1)
            total += (v0 + v1) + (v2 + v3)
            f0 += _four_features(own, b0, b1, b2, b3, v0, v1, v2, v3, FAST)
            f1 += _four_features(own + r1, b0, b1, b2, b3, v0, v1, v2, v3, FAST)
            f2 += _four_features(own + r2, b0, b1, b2, b3, v0, v1, v2, v3, FAST)
            f3 += _four_features(own + r3, b0, b1, b2, b3, v0, v1, v2, v3, FAST)
            f4 += _four_features(own + r4, b0, b1, b2, b3, v0, v1, v2, v3, FAST)
            f5 += _four_features(own + r5, b0, b1, b2, b3, v0, v1, v2, v3, FAST)
            f6 += _four_features(own + r6, b0, b1, b2, b3, v0, v1, v2, v3, FAST)
            f7 += _four_features(own + r7, b0, b1, b2, b3, v0, v1, v2, v3, FAST)
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
def normalise_back(weights, gradients, count, BLOCK: tl.constexpr):
    """From the gradients of a row of weights to those of its logits, in place: w (g - sum w g)."""
    row = tl.program_id(0).to(tl.int64)
    weights += row * count
    gradients += row * count
    columns = tl.arange(0, BLOCK)
    common = tl.zeros([BLOCK], tl.float32)
    for first in range(0, count, BLOCK):
        inside = first + columns < count
        weight = tl.load(weights + first + columns, mask=inside, other=0.0)
        common += weight * tl.load(gradients + first + columns, mask=inside, other=0.0)
    total = tl.sum(common, 0)
    for first in range(0, count, BLOCK):
        inside = first + columns < count
        weight = tl.load(weights + first + columns, mask=inside, other=0.0)
        found = weight * (tl.load(gradients + first + columns, mask=inside, other=0.0) - total)
        tl.store(gradients + first + columns, found, mask=inside)
