"""Triton kernels of additive attention; additive.py calls these.

tanh(a + b) costs a special-function instruction per pair, of which a GPU executes few per cycle. With A = exp(2a) and
B = exp(2b), computed once per query and once per key,

    tanh(a + b) = 1 - 2 u,  u = 1 / (1 + A B),  d tanh / da = 4 (u - u^2),

and four fractions share one reciprocal, v0 / d0 + v1 / d1 = (v0 d1 + v1 d0) / (d0 d1), so that most of the work is
fused multiply-adds. The product of four d must not overflow: queries and keys whose largest inputs add up to more than
LIMIT use u = 1 / (1 + exp(2 (a + b))) for each pair, which is accurate for any input.

A program combines a few queries, as scalars or rows, with one long vector. All values then have one layout, threads
never wait for each other, and there are no atomics, so that equal inputs give equal bits.

With g the gradient of the logits, the gradient of query i is 4 v sum_j g_ij (u_ij - u_ij^2), that of key j is the same
sum over i, and that of v is sum_ij g_ij (1 - 2 u_ij). One pass computes all three: a program holds GROUP queries in
registers, as one vector of features each, and goes through the keys. The gradients of the logits are stored as
(b, group, key, query), so that those of one key and one group are neighbours.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,assignment"
# ruff: noqa: RUF005 - Triton joins tuples with + and does not support unpacking.

import triton
import triton.language as tl

from regard.kernels.numerics_triton import load, softmax

LIMIT = tl.constexpr(10.9)
"""Largest |a| + |b| for shared reciprocals: 1 / (1 + exp(21.8))^4 is still a normal float32."""
QUERIES = tl.constexpr(8)
"""Number of queries that a program compares at a time."""
GROUP = tl.constexpr(16)
"""Number of queries that a program holds at a time in the backward pass."""
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
def attend_few(
    query,
    key,
    values,
    direction,
    mask,
    context,
    weights,
    num_queries,
    num_keys,
    dim,
    value_dim,
    mask_b,
    mask_q,
    mask_k,
    HAS_MASK: tl.constexpr,
    KEEP: tl.constexpr,
    FAST: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_DIM: tl.constexpr,
):
    """Compute the whole attention of one query to at most BLOCK_K keys, and with KEEP also the weights.

    Where there are few pairs, launches take longer than tanh, so programs share nothing.
    """
    row = tl.program_id(0).to(tl.int64)
    batch, columns = row // num_queries, tl.arange(0, BLOCK_K)
    is_key = columns < num_keys
    key_rows = (batch * num_keys + columns)[:, None]
    matches = tl.zeros([BLOCK_K, BLOCK_DIM], tl.float32)
    for start in range(0, dim, BLOCK_DIM):
        dims = start + tl.arange(0, BLOCK_DIM)
        is_dim = dims < dim
        k = load(key + key_rows * dim + dims[None, :], is_key[:, None] & is_dim[None, :])
        q, v = load(query + row * dim + dims, is_dim), load(direction + dims, is_dim)
        matches += v[None, :] * (1.0 - 2.0 * reciprocal(1.0 + tl.exp(2.0 * (q[None, :] + k)), FAST))
    allowed = is_key
    if HAS_MASK:
        own_mask = mask + batch * mask_b + row % num_queries * mask_q
        allowed = is_key & (tl.load(own_mask + columns * mask_k, mask=is_key, other=0) != 0)
    own_weights = softmax(tl.sum(matches, 1), allowed)
    if KEEP:
        tl.store(weights + row * num_keys + columns, own_weights, mask=is_key)
    for start in range(0, value_dim, BLOCK_DIM):
        features = start + tl.arange(0, BLOCK_DIM)
        is_feature = features < value_dim
        tile = load(values + key_rows * value_dim + features[None, :], is_key[:, None] & is_feature[None, :])
        tl.store(context + row * value_dim + features, tl.sum(own_weights[:, None] * tile, 0), mask=is_feature)


@triton.jit
def few_back_to_queries(
    query,
    key,
    values,
    direction,
    weights,
    upstream,
    slopes_of_logits,
    grad_query,
    num_queries,
    num_keys,
    dim,
    value_dim,
    FAST: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_DIM: tl.constexpr,
):
    """Compute the gradients of the logits (b, q, k) of one query, and of the query, from that of its context."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK_K)
    is_key = columns < num_keys
    key_rows = (row // num_queries * num_keys + columns)[:, None]
    products = tl.zeros([BLOCK_K, BLOCK_DIM], tl.float32)
    for start in range(0, value_dim, BLOCK_DIM):
        features = start + tl.arange(0, BLOCK_DIM)
        is_feature = features < value_dim
        tile = load(values + key_rows * value_dim + features[None, :], is_key[:, None] & is_feature[None, :])
        products += tile * load(upstream + row * value_dim + features, is_feature)[None, :]
    weight, through = load(weights + row * num_keys + columns, is_key), tl.sum(products, 1)
    slope = weight * (through - tl.sum(weight * through, 0))
    tl.store(slopes_of_logits + row * num_keys + columns, slope, mask=is_key)
    for start in range(0, dim, BLOCK_DIM):
        dims = start + tl.arange(0, BLOCK_DIM)
        is_dim = dims < dim
        k = load(key + key_rows * dim + dims[None, :], is_key[:, None] & is_dim[None, :])
        q, v = load(query + row * dim + dims, is_dim), load(direction + dims, is_dim)
        u = reciprocal(1.0 + tl.exp(2.0 * (q[None, :] + k)), FAST)
        total = 4.0 * v * tl.sum(slope[:, None] * (u - u * u), 0)
        tl.store(grad_query + row * dim + dims, total, mask=is_dim)


@triton.jit
def few_back_to_keys(
    query,
    key,
    direction,
    weights,
    upstream,
    slopes_of_logits,
    grad_key,
    grad_values,
    fractions,
    num_queries,
    num_keys,
    dim,
    value_dim,
    FAST: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_DIM: tl.constexpr,
):
    """Compute BLOCK_DIM features of the gradients of all keys and values, and of v for each row of the batch."""
    blocks = tl.cdiv(tl.maximum(dim, value_dim), BLOCK_DIM)
    batch = (tl.program_id(0) // blocks).to(tl.int64)
    dims = tl.program_id(0) % blocks * BLOCK_DIM + tl.arange(0, BLOCK_DIM)
    columns = tl.arange(0, BLOCK_K)
    is_key, is_dim, is_feature = columns < num_keys, dims < dim, dims < value_dim
    rows = (batch * num_keys + columns)[:, None]
    k = load(key + rows * dim + dims[None, :], is_key[:, None] & is_dim[None, :])
    of_keys, of_values = tl.zeros([BLOCK_K, BLOCK_DIM], tl.float32), tl.zeros([BLOCK_K, BLOCK_DIM], tl.float32)
    taken = tl.zeros([BLOCK_K, BLOCK_DIM], tl.float32)
    for i in range(num_queries):
        row = batch * num_queries + i
        slope = load(slopes_of_logits + row * num_keys + columns, is_key)[:, None]
        u = reciprocal(1.0 + tl.exp(2.0 * (load(query + row * dim + dims, is_dim)[None, :] + k)), FAST)
        of_keys += slope * (u - u * u)
        taken += slope * u
        weight = load(weights + row * num_keys + columns, is_key)[:, None]
        of_values += weight * load(upstream + row * value_dim + dims, is_feature)[None, :]
    v = load(direction + dims, is_dim)
    tl.store(grad_key + rows * dim + dims[None, :], 4.0 * v[None, :] * of_keys, mask=is_key[:, None] & is_dim[None, :])
    pointers = grad_values + rows * value_dim + dims[None, :]
    tl.store(pointers, of_values, mask=is_key[:, None] & is_feature[None, :])
    tl.store(fractions + batch * dim + dims, -2.0 * tl.sum(taken, 0), mask=is_dim)


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
