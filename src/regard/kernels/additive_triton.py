"""Triton kernels of additive attention; additive_gpu.py calls these.

tanh(a + b) costs a special-function instruction per pair, of which a GPU executes few per cycle. With A = exp(2a) and
B = exp(2b), computed once per query and once per key,

    tanh(a + b) = 1 - 2 u,  u = 1 / (1 + A B),  d tanh / da = 4 (u - u^2),

and four fractions share one reciprocal, v0 / d0 + v1 / d1 = (v0 d1 + v1 d0) / (d0 d1), so that most of the work is
fused multiply-adds. The product of four d must not overflow: queries and keys whose largest inputs add up to more than
LIMIT use u = 1 / (1 + exp(2 (a + b))) for each pair, which is accurate for any input.

A program combines a few queries, as scalars or rows, with one long vector. All values then have one layout, threads
never wait for each other, and there are no atomics, so that equal inputs give equal bits.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,assignment"
# ruff: noqa: RUF005 - Triton joins tuples with + and does not support unpacking.

import triton
import triton.language as tl

LIMIT = tl.constexpr(10.9)
"""Largest |a| + |b| for shared reciprocals: 1 / (1 + exp(21.8))^4 is still a normal float32."""
QUERIES = tl.constexpr(8)
"""Number of queries that a program compares at a time."""
PEAK_TILE = tl.constexpr(64)
"""Number of queries, or keys, that share one recorded maximum."""


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
    """Compute exp(2x) of queries and keys in the layout of `score`, and the largest |x| of each TILE of rows.

    The layout of queries is (b, group of 8 queries, group of 4 features, query, feature), so that 32 neighbours belong
    together; that of keys is (b, feature, key). Padding of features, queries and keys is 0.
    """
    tile, batch = tl.program_id(0), tl.program_id(1).to(tl.int64)
    query_tiles = tl.cdiv(num_queries, TILE)
    if tile < query_tiles:
        padded_queries = tl.cdiv(num_queries, QUERIES) * QUERIES
        exponentials = exp_query + batch * padded_queries * padded_dim
        _prepare(query, exponentials, query_peaks + batch * query_tiles, tile, batch, num_queries, padded_queries, dim,
                 padded_dim, True, TILE, BLOCK)  # fmt: skip
    else:
        exponentials = exp_key + batch * padded_keys * padded_dim
        _prepare(key, exponentials, key_peaks + batch * tl.cdiv(num_keys, TILE), tile - query_tiles, batch, num_keys,
                 padded_keys, dim, padded_dim, False, TILE, BLOCK)  # fmt: skip


@triton.jit
def _prepare(inputs, exponentials, peaks, tile, batch, count, padded_count, dim, padded_dim, IS_QUERY: tl.constexpr,
             TILE: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """Prepare one tile of the queries or of the keys."""
    rows = (tile * TILE + tl.arange(0, TILE))[:, None]
    largest = tl.zeros([TILE], tl.float32)
    for first in range(0, padded_dim, BLOCK):
        dims = first + tl.arange(0, BLOCK)[None, :]
        inside = (rows < count) & (dims < dim)
        values = tl.load(inputs + batch * count * dim + rows * dim + dims, mask=inside, other=0.0).to(tl.float32)
        largest = tl.maximum(largest, tl.max(tl.abs(values), 1))
        if IS_QUERY:
            fours = (rows // QUERIES) * (padded_dim // 4) + dims // 4
            to = (fours * QUERIES + rows % QUERIES) * 4 + dims % 4
        else:
            to = dims * padded_count + rows
        there = (rows < padded_count) & (dims < padded_dim)
        tl.store(exponentials + to, tl.where(inside, tl.exp(2.0 * values), 0.0), mask=there)
    tl.store(peaks + tile, tl.max(largest, 0))


@triton.jit
def reciprocal(x, FAST: tl.constexpr):
    """Compute 1 / x; FAST uses an instruction of NVIDIA GPUs that is accurate to one unit in the last place."""
    if FAST:
        return tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1)
    else:
        return 1.0 / x


@triton.jit
def two(pointer):
    """Load two neighbouring float32 as one int64, which halves the number of loads."""
    both = tl.load(pointer)
    return both.to(tl.int32).to(tl.float32, bitcast=True), (both >> 32).to(tl.int32).to(tl.float32, bitcast=True)


@triton.jit
def zeros(COUNT: tl.constexpr, BLOCK: tl.constexpr):
    """Return COUNT vectors of zeros."""
    vectors = ()
    for _ in tl.static_range(COUNT):
        vectors = vectors + (tl.zeros([BLOCK], tl.float32),)
    return vectors


@triton.jit
def _four_features(query, b0, b1, b2, b3, v0, v1, v2, v3, FAST: tl.constexpr):
    """Compute v0 / d0 + v1 / d1 + v2 / d2 + v3 / d3 of one query, given a pointer to its exponentials."""
    a0, a1 = two(query)
    a2, a3 = two(query + 1)
    d0, d1, d2, d3 = a0 * b0 + 1.0, a1 * b1 + 1.0, a2 * b2 + 1.0, a3 * b3 + 1.0
    d01, d23 = d0 * d1, d2 * d3
    above = (v0 * d1 + v1 * d0) * d23 + (v2 * d3 + v3 * d2) * d01
    return above * reciprocal(d01 * d23, FAST)


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
    """Compute v' tanh(a + b) of eight queries and BLOCK keys; -inf where the mask is False."""
    first, batch = tl.program_id(0) * QUERIES, tl.program_id(2).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    peak = 0.0
    key_peaks += batch * tl.cdiv(num_keys, PEAK_TILE)
    for tile in range(tl.program_id(1) * BLOCK // PEAK_TILE, tl.cdiv(tl.program_id(1) * BLOCK + BLOCK, PEAK_TILE)):
        peak = tl.maximum(peak, tl.load(key_peaks + tile, mask=tile < tl.cdiv(num_keys, PEAK_TILE), other=0.0))
    peak += tl.load(query_peaks + batch * tl.cdiv(num_queries, PEAK_TILE) + first // PEAK_TILE)
    fractions = zeros(QUERIES, BLOCK)
    total = 0.0
    if peak < LIMIT:
        # The exponentials of the queries and v are loaded in pairs.
        exp_query += (batch * tl.cdiv(num_queries, QUERIES) + tl.program_id(0)) * (QUERIES * padded_dim // 2)
        own_keys = exp_key + batch * padded_keys * padded_dim + columns
        for _ in range(0, padded_dim, 4):
            b0, b1 = tl.load(own_keys), tl.load(own_keys + padded_keys)
            b2, b3 = tl.load(own_keys + 2 * padded_keys), tl.load(own_keys + 3 * padded_keys)
            v0, v1 = two(direction_pairs)
            v2, v3 = two(direction_pairs + 1)
            total += (v0 + v1) + (v2 + v3)
            longer = ()
            for n in tl.static_range(QUERIES):
                more = _four_features(exp_query + 2 * n, b0, b1, b2, b3, v0, v1, v2, v3, FAST)
                longer = longer + (fractions[n] + more,)
            fractions = longer
            own_keys += 4 * padded_keys
            exp_query += 2 * QUERIES
            direction_pairs += 2
    else:
        query += batch * num_queries * dim
        key += batch * num_keys * dim
        for d in range(0, dim):
            b = tl.load(key + columns * dim + d, mask=columns < num_keys, other=0.0).to(tl.float32)
            v = tl.load(direction + d)
            total += v
            longer = ()
            for n in tl.static_range(QUERIES):
                a = tl.load(query + tl.minimum(first + n, num_queries - 1) * dim + d).to(tl.float32)
                longer = longer + (fractions[n] + v / (1.0 + tl.exp(2.0 * (a + b))),)
            fractions = longer
    output += (batch * num_queries + first) * num_keys
    mask += batch * mask_b + first.to(tl.int64) * mask_q
    for n in tl.static_range(QUERIES):
        logits = total - 2.0 * fractions[n]
        inside = (columns < num_keys) & (first + n < num_queries)
        if HAS_MASK:
            is_open = tl.load(mask + n * mask_q + columns * mask_k, mask=inside, other=0) != 0
            logits = tl.where(is_open, logits, float("-inf"))
        tl.store(output + n * num_keys + columns, logits, mask=inside)


@triton.jit
def normalise(logits, normalisers, count, GIVEN: tl.constexpr, BLOCK: tl.constexpr):
    """Compute the softmax of each row in place, and the logarithm of its denominator, unless that is GIVEN.

    A row with nothing to attend to has weights 0 and an infinite logarithm.
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
