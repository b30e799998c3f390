"""Triton kernels of local attention, over a window of keys around the centre of each query; local.py calls these.

A program computes one query and loads only the keys of its window, so that the cost does not depend on the number of
keys.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

import triton
import triton.language as tl

from regard.kernels.numerics_triton import load, softmax, tanh


@triton.jit
def _window(centre, mask, batch, row, num_keys, window, mask_b, mask_q, mask_k, HAS_MASK: tl.constexpr,
            BLOCK_W: tl.constexpr):  # fmt: skip
    """Return the keys from centre - window to centre + window, their offsets, and which may be attended to."""
    first = tl.ceil(centre - window).to(tl.int32)
    columns = first + tl.arange(0, BLOCK_W)
    offsets = columns.to(tl.float32) - centre
    allowed = (tl.abs(offsets) <= window) & (columns >= 0) & (columns < num_keys)
    if HAS_MASK:
        at = batch * mask_b + row.to(tl.int64) * mask_q + columns * mask_k
        allowed = allowed & (tl.load(mask + at, mask=allowed, other=0) != 0)
    return columns, offsets, allowed


@triton.jit
def focus(
    query,
    keys,
    values,
    direction,
    centres,
    mask,
    context,
    weights,
    num_queries,
    num_keys,
    dim,
    value_dim,
    scale,
    window,
    steepness,
    mask_b,
    mask_q,
    mask_k,
    ADDITIVE: tl.constexpr,
    HAS_MASK: tl.constexpr,
    BLOCK_W: tl.constexpr,
    BLOCK_DIM: tl.constexpr,
):
    """Compute softmax(logits) exp(-steepness offset^2) inside the window, and the context.

    The logits are v' tanh(query + key), or scale query' key. `weights` (b, q, BLOCK_W) receive the softmax alone.
    """
    row, batch = tl.program_id(0), tl.program_id(1).to(tl.int64)
    index = batch * num_queries + row
    centre = tl.load(centres + index)
    columns, offsets, allowed = _window(centre, mask, batch, row, num_keys, window, mask_b, mask_q, mask_k, HAS_MASK,
                                        BLOCK_W)  # fmt: skip
    logits = tl.zeros([BLOCK_W], tl.float32)
    for first in range(0, dim, BLOCK_DIM):
        dims = first + tl.arange(0, BLOCK_DIM)
        is_dim = dims < dim
        q = load(query + index * dim + dims, is_dim)
        at = (batch * num_keys + columns[:, None]) * dim + dims[None, :]
        k = load(keys + at, allowed[:, None] & is_dim[None, :])
        if ADDITIVE:
            v = load(direction + dims, is_dim)
            logits += tl.sum(v[None, :] * tanh(q[None, :] + k), 1)
        else:
            logits += tl.sum(q[None, :] * k, 1)
    own_weights = softmax(logits * scale, allowed)
    tl.store(weights + index * BLOCK_W + tl.arange(0, BLOCK_W), own_weights)
    own_weights *= tl.exp(-steepness * offsets * offsets)
    for first in range(0, value_dim, BLOCK_DIM):
        features = first + tl.arange(0, BLOCK_DIM)
        is_feature = features < value_dim
        at = (batch * num_keys + columns[:, None]) * value_dim + features[None, :]
        tile = load(values + at, allowed[:, None] & is_feature[None, :])
        tl.store(context + index * value_dim + features, tl.sum(own_weights[:, None] * tile, 0), mask=is_feature)


@triton.jit
def focus_back(
    query,
    keys,
    values,
    direction,
    centres,
    mask,
    weights,
    upstream,
    grad_query,
    grad_keys,
    grad_values,
    grad_directions,
    grad_centres,
    num_queries,
    num_keys,
    dim,
    value_dim,
    scale,
    window,
    steepness,
    mask_b,
    mask_q,
    mask_k,
    ADDITIVE: tl.constexpr,
    HAS_MASK: tl.constexpr,
    BLOCK_W: tl.constexpr,
    BLOCK_DIM: tl.constexpr,
):
    """Compute all gradients of `focus`: those of keys and values in place by atomic adds, that of v per query."""
    row, batch = tl.program_id(0), tl.program_id(1).to(tl.int64)
    index = batch * num_queries + row
    centre = tl.load(centres + index)
    columns, offsets, allowed = _window(centre, mask, batch, row, num_keys, window, mask_b, mask_q, mask_k, HAS_MASK,
                                        BLOCK_W)  # fmt: skip
    soft = tl.load(weights + index * BLOCK_W + tl.arange(0, BLOCK_W))
    damping = tl.exp(-steepness * offsets * offsets)
    through = tl.zeros([BLOCK_W], tl.float32)
    for first in range(0, value_dim, BLOCK_DIM):
        features = first + tl.arange(0, BLOCK_DIM)
        is_feature = features < value_dim
        at = (batch * num_keys + columns[:, None]) * value_dim + features[None, :]
        inside = allowed[:, None] & is_feature[None, :]
        tile = load(values + at, inside)
        incoming = load(upstream + index * value_dim + features, is_feature)
        through += tl.sum(tile * incoming[None, :], 1)
        tl.atomic_add(grad_values + at, (soft * damping)[:, None] * incoming[None, :], mask=inside, sem="relaxed")
    through *= damping
    tl.store(grad_centres + index, tl.sum(soft * through * 2.0 * steepness * offsets, 0))
    slope = soft * (through - tl.sum(soft * through, 0)) * scale
    for first in range(0, dim, BLOCK_DIM):
        dims = first + tl.arange(0, BLOCK_DIM)
        is_dim = dims < dim
        q = load(query + index * dim + dims, is_dim)
        at = (batch * num_keys + columns[:, None]) * dim + dims[None, :]
        inside = allowed[:, None] & is_dim[None, :]
        k = load(keys + at, inside)
        if ADDITIVE:
            v = load(direction + dims, is_dim)
            u = 1.0 / (1.0 + tl.exp(2.0 * (q[None, :] + k)))
            of_keys = 4.0 * v[None, :] * (slope[:, None] * (u - u * u))
            of_query = tl.sum(of_keys, 0)
            tl.store(grad_directions + index * dim + dims, tl.sum(slope[:, None] * (1.0 - 2.0 * u), 0), mask=is_dim)
        else:
            of_keys = slope[:, None] * q[None, :]
            of_query = tl.sum(slope[:, None] * k, 0)
        tl.store(grad_query + index * dim + dims, of_query, mask=is_dim)
        tl.atomic_add(grad_keys + at, of_keys, mask=inside, sem="relaxed")
