"""The gradients of additive logits in Triton; additive_triton.py has the idea, additive_gpu.py calls this.

With g the gradient of the logits, a query i gets 4 v sum_j g_ij (u_ij - u_ij^2), a key j the same sum over i, and v
sum_ij g_ij (1 - 2 u_ij). One pass gives all three: a program holds eight queries in registers, a vector of features
each, and goes through the keys.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

import triton
import triton.language as tl

from regard.kernels.additive_triton import LIMIT, reciprocal, two


@triton.jit
def _four_queries(e0, e1, e2, e3, b, g0, g1, g2, g3, t0, t1, t2, t3, both, taken, FAST: tl.constexpr):
    """For four queries and one key: u - u^2 times g, added to each query's sum and to the key's; g u to the last."""
    d0, d1, d2, d3 = e0 * b + 1.0, e1 * b + 1.0, e2 * b + 1.0, e3 * b + 1.0
    d01, d23 = d0 * d1, d2 * d3
    shared = reciprocal(d01 * d23, FAST)
    s01, s23 = shared * d23, shared * d01
    u0, u1, u2, u3 = s01 * d1, s01 * d0, s23 * d3, s23 * d2
    h0, h1, h2, h3 = u0 - u0 * u0, u1 - u1 * u1, u2 - u2 * u2, u3 - u3 * u3
    taken = g3 * u3 + (g2 * u2 + (g1 * u1 + (g0 * u0 + taken)))
    both = g3 * h3 + (g2 * h2 + (g1 * h1 + (g0 * h0 + both)))
    return g0 * h0 + t0, g1 * h1 + t1, g2 * h2 + t2, g3 * h3 + t3, both, taken


@triton.jit
def _near(e0, e1, e2, e3, e4, e5, e6, e7, g0, g1, g2, g3, g4, g5, g6, g7, t0, t1, t2, t3, t4, t5, t6, t7, taken,
          key, parts, inside, is_later, FAST: tl.constexpr):  # fmt: skip
    """One key and eight queries, of which e are the exponentials, g the gradients and t the sums.

    The key's own sum lies at `parts` from the second eight on.
    """
    b = tl.exp(2.0 * tl.load(key, mask=inside, other=0.0).to(tl.float32))
    both = tl.load(parts, mask=inside & is_later, other=0.0)
    t0, t1, t2, t3, both, taken = _four_queries(e0, e1, e2, e3, b, g0, g1, g2, g3, t0, t1, t2, t3, both, taken, FAST)
    t4, t5, t6, t7, both, taken = _four_queries(e4, e5, e6, e7, b, g4, g5, g6, g7, t4, t5, t6, t7, both, taken, FAST)
    tl.store(parts, both, mask=inside)
    return t0, t1, t2, t3, t4, t5, t6, t7, taken


@triton.jit
def _far_query(query, b, g, t, both, taken, inside):
    """One query and one key, whatever their size."""
    u = 1.0 / (1.0 + tl.exp(2.0 * (tl.load(query, mask=inside, other=0.0).to(tl.float32) + b)))
    slope = g * (u - u * u)
    return t + slope, both + slope, taken + g * u


@triton.jit
def _far(query, rows, dim, g0, g1, g2, g3, g4, g5, g6, g7, t0, t1, t2, t3, t4, t5, t6, t7, taken,
         key, parts, inside, is_later):  # fmt: skip
    """The same as _near for inputs of any size; only the first `rows` queries are there."""
    b = tl.load(key, mask=inside, other=0.0).to(tl.float32)
    both = tl.load(parts, mask=inside & is_later, other=0.0)
    t0, both, taken = _far_query(query, b, g0, t0, both, taken, inside)
    t1, both, taken = _far_query(query + dim, b, g1, t1, both, taken, inside & (rows > 1))
    t2, both, taken = _far_query(query + 2 * dim, b, g2, t2, both, taken, inside & (rows > 2))
    t3, both, taken = _far_query(query + 3 * dim, b, g3, t3, both, taken, inside & (rows > 3))
    t4, both, taken = _far_query(query + 4 * dim, b, g4, t4, both, taken, inside & (rows > 4))
    t5, both, taken = _far_query(query + 5 * dim, b, g5, t5, both, taken, inside & (rows > 5))
    t6, both, taken = _far_query(query + 6 * dim, b, g6, t6, both, taken, inside & (rows > 6))
    t7, both, taken = _far_query(query + 7 * dim, b, g7, t7, both, taken, inside & (rows > 7))
    tl.store(parts, both, mask=inside)
    return t0, t1, t2, t3, t4, t5, t6, t7, taken


@triton.jit
def _largest(inputs, first, last, dim, dims, is_dim, BLOCK: tl.constexpr):
    """The largest |x| of some rows, in these features."""
    largest = tl.zeros([BLOCK], tl.float32)
    for row in range(first, last):
        row_inputs = tl.load(inputs + row * dim + dims, mask=is_dim, other=0.0).to(tl.float32)
        largest = tl.maximum(largest, tl.abs(row_inputs))
    return tl.max(largest, 0)


@triton.jit
def _grown(query, dims, is_dim):
    return tl.exp(2.0 * tl.load(query + dims, mask=is_dim, other=0.0).to(tl.float32))


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
    """sum_j g_ij (u - u^2) for the queries i, sum_i g_ij (u - u^2) for the keys j, and sum_ij g_ij u.

    A program takes QUERY_SHARE queries (eight at a time), KEY_SHARE keys and BLOCK features. What several programs find
    for the same query or key goes to a part of its own, (share of the other side, batch, row, feature), to be summed.
    """
    batch, batches = tl.program_id(2).to(tl.int64), tl.num_programs(2)
    shares_of_keys = tl.cdiv(num_keys, KEY_SHARE)
    query_share, key_share = tl.program_id(0) // shares_of_keys, tl.program_id(0) % shares_of_keys
    dims = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    is_dim = dims < dim
    query += batch * num_queries * dim
    key += batch * num_keys * dim
    # The gradients come in pairs of neighbouring keys, and are 0 for the queries and keys that fill up.
    pairs = tl.cdiv(num_keys, 2)
    upstream += (batch * (tl.cdiv(num_queries, 8) * 8) + query_share * QUERY_SHARE) * pairs
    query_parts += (key_share * batches + batch) * num_queries * dim
    key_parts += (query_share * batches + batch) * num_keys * dim
    nothing = tl.zeros([BLOCK], tl.float32)
    taken = nothing
    first_key, last_key = key_share * KEY_SHARE, tl.minimum(key_share * KEY_SHARE + KEY_SHARE, num_keys)
    last_query = tl.minimum(query_share * QUERY_SHARE + QUERY_SHARE, num_queries)
    key_peak = _largest(key, first_key, last_key, dim, dims, is_dim, BLOCK)
    for i in range(query_share * QUERY_SHARE, last_query, 8):
        in1, in2, in3, in4 = i + 1 < last_query, i + 2 < last_query, i + 3 < last_query, i + 4 < last_query
        in5, in6, in7 = i + 5 < last_query, i + 6 < last_query, i + 7 < last_query
        own, is_later = query + i * dim, i > query_share * QUERY_SHARE
        t0, t1, t2, t3, t4, t5, t6, t7 = nothing, nothing, nothing, nothing, nothing, nothing, nothing, nothing
        e0, e1 = _grown(own, dims, is_dim), _grown(own + dim, dims, is_dim & in1)
        e2, e3 = _grown(own + 2 * dim, dims, is_dim & in2), _grown(own + 3 * dim, dims, is_dim & in3)
        e4, e5 = _grown(own + 4 * dim, dims, is_dim & in4), _grown(own + 5 * dim, dims, is_dim & in5)
        e6, e7 = _grown(own + 6 * dim, dims, is_dim & in6), _grown(own + 7 * dim, dims, is_dim & in7)
        is_near = key_peak + _largest(query, i, tl.minimum(i + 8, last_query), dim, dims, is_dim, BLOCK) < LIMIT
        if is_near:
            for j in range(first_key, last_key, 2):
                at, next_inside = j * dim + dims, is_dim & (j + 1 < last_key)
                g = upstream + j // 2
                g0, n0 = two(g)
                g1, n1 = two(g + pairs)
                g2, n2 = two(g + 2 * pairs)
                g3, n3 = two(g + 3 * pairs)
                g4, n4 = two(g + 4 * pairs)
                g5, n5 = two(g + 5 * pairs)
                g6, n6 = two(g + 6 * pairs)
                g7, n7 = two(g + 7 * pairs)
                t0, t1, t2, t3, t4, t5, t6, t7, taken = _near(
                    e0, e1, e2, e3, e4, e5, e6, e7, g0, g1, g2, g3, g4, g5, g6, g7,
                    t0, t1, t2, t3, t4, t5, t6, t7, taken, key + at, key_parts + at, is_dim, is_later, FAST,
                )  # fmt: skip
                t0, t1, t2, t3, t4, t5, t6, t7, taken = _near(
                    e0, e1, e2, e3, e4, e5, e6, e7, n0, n1, n2, n3, n4, n5, n6, n7,
                    t0, t1, t2, t3, t4, t5, t6, t7, taken,
                    key + at + dim, key_parts + at + dim, next_inside, is_later, FAST,
                )  # fmt: skip
        else:
            for j in range(first_key, last_key, 2):
                at, next_inside = j * dim + dims, is_dim & (j + 1 < last_key)
                g = upstream + j // 2
                g0, n0 = two(g)
                g1, n1 = two(g + pairs)
                g2, n2 = two(g + 2 * pairs)
                g3, n3 = two(g + 3 * pairs)
                g4, n4 = two(g + 4 * pairs)
                g5, n5 = two(g + 5 * pairs)
                g6, n6 = two(g + 6 * pairs)
                g7, n7 = two(g + 7 * pairs)
                t0, t1, t2, t3, t4, t5, t6, t7, taken = _far(
                    own + dims, last_query - i, dim, g0, g1, g2, g3, g4, g5, g6, g7,
                    t0, t1, t2, t3, t4, t5, t6, t7, taken, key + at, key_parts + at, is_dim, is_later,
                )  # fmt: skip
                t0, t1, t2, t3, t4, t5, t6, t7, taken = _far(
                    own + dims, last_query - i, dim, n0, n1, n2, n3, n4, n5, n6, n7,
                    t0, t1, t2, t3, t4, t5, t6, t7, taken, key + at + dim, key_parts + at + dim, next_inside, is_later,
                )  # fmt: skip
        upstream += 8 * pairs
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
