"""Triton kernels of attention with one query per step of a recurrence; steps.py calls these.

A step is two kernels, and two in the backward pass. SPLITS programs share the features of an example: each computes its
part of the logits (or of their gradients), and the second kernel adds up the parts. That takes less time than to let
every program compute all logits. Sizes of features are constants, so that Triton knows how rows are aligned.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

import triton
import triton.language as tl

from regard.kernels.numerics_triton import load, softmax, tanh


@triton.jit
def compare(
    query,
    keys,
    direction,
    parts,
    query_stride,
    num_keys,
    DIM: tl.constexpr,
    ADDITIVE: tl.constexpr,
    SPLITS: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_DIM: tl.constexpr,
):
    """Compute this program's part of v' tanh(query + key), or of query' key."""
    batch, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    columns = tl.arange(0, BLOCK_K)
    is_key = columns < num_keys
    matches = tl.zeros([BLOCK_K, BLOCK_DIM], tl.float32)
    for first in range(part * BLOCK_DIM, DIM, SPLITS * BLOCK_DIM):
        dims = first + tl.arange(0, BLOCK_DIM)
        is_dim = dims < DIM
        q = load(query + batch * query_stride + dims, is_dim)
        at = (batch * num_keys + columns[:, None]) * DIM + dims[None, :]
        k = load(keys + at, is_key[:, None] & is_dim[None, :])
        if ADDITIVE:
            v = load(direction + dims, is_dim)
            matches += v[None, :] * tanh(q[None, :] + k)
        else:
            matches += q[None, :] * k
    tl.store(parts + (batch * SPLITS + part) * num_keys + columns, tl.sum(matches, 1), mask=is_key)


@triton.jit
def _sum_of_parts(parts, batch, columns, is_key, num_keys, SPLITS: tl.constexpr):
    rows = tl.arange(0, SPLITS)[:, None]
    return tl.sum(load(parts + (batch * SPLITS + rows) * num_keys + columns[None, :], is_key[None, :]), 0)


@triton.jit
def read(
    parts,
    mask,
    values,
    inputs,
    context,
    weights,
    inputs_stride,
    num_keys,
    scale,
    mask_b,
    mask_k,
    VALUE_DIM: tl.constexpr,
    HAS_MASK: tl.constexpr,
    HAS_INPUTS: tl.constexpr,
    SPLITS: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_DIM: tl.constexpr,
):
    """Compute the weights, the softmax of scale times the logits, and this program's part of inputs + the context."""
    batch, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    columns = tl.arange(0, BLOCK_K)
    is_key = columns < num_keys
    allowed = is_key
    if HAS_MASK:
        allowed = is_key & (tl.load(mask + batch * mask_b + columns * mask_k, mask=is_key, other=0) != 0)
    own_weights = softmax(_sum_of_parts(parts, batch, columns, is_key, num_keys, SPLITS) * scale, allowed)
    tl.store(weights + batch * num_keys + columns, own_weights, mask=is_key & (part == 0))
    for first in range(part * BLOCK_DIM, VALUE_DIM, SPLITS * BLOCK_DIM):
        features = first + tl.arange(0, BLOCK_DIM)
        is_feature = features < VALUE_DIM
        at = (batch * num_keys + columns[:, None]) * VALUE_DIM + features[None, :]
        tile = load(values + at, is_key[:, None] & is_feature[None, :])
        found = tl.sum(own_weights[:, None] * tile, 0)
        if HAS_INPUTS:
            found += load(inputs + batch * inputs_stride + features, is_feature)
        tl.store(context + batch * VALUE_DIM + features, found, mask=is_feature)


@triton.jit
def read_back(
    values,
    upstream,
    parts,
    num_keys,
    VALUE_DIM: tl.constexpr,
    SPLITS: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_DIM: tl.constexpr,
):
    """Compute this program's part of the gradients of the weights; those of the values follow after all steps."""
    batch, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    columns = tl.arange(0, BLOCK_K)
    is_key = columns < num_keys
    products = tl.zeros([BLOCK_K, BLOCK_DIM], tl.float32)
    for first in range(part * BLOCK_DIM, VALUE_DIM, SPLITS * BLOCK_DIM):
        features = first + tl.arange(0, BLOCK_DIM)
        is_feature = features < VALUE_DIM
        at = (batch * num_keys + columns[:, None]) * VALUE_DIM + features[None, :]
        tile = load(values + at, is_key[:, None] & is_feature[None, :])
        products += tile * load(upstream + batch * VALUE_DIM + features, is_feature)[None, :]
    tl.store(parts + (batch * SPLITS + part) * num_keys + columns, tl.sum(products, 1), mask=is_key)


@triton.jit
def compare_back(
    query,
    keys,
    direction,
    weights,
    parts,
    grad_weights,
    grad_logits,
    grad_query,
    query_stride,
    grad_weights_stride,
    num_keys,
    scale,
    DIM: tl.constexpr,
    ADDITIVE: tl.constexpr,
    HAS_GRAD_WEIGHTS: tl.constexpr,
    SPLITS: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_DIM: tl.constexpr,
):
    """Compute the gradients of the logits, and this program's part of that of the query; the others follow later."""
    batch, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    columns = tl.arange(0, BLOCK_K)
    is_key = columns < num_keys
    through_weights = _sum_of_parts(parts, batch, columns, is_key, num_keys, SPLITS)
    if HAS_GRAD_WEIGHTS:
        through_weights += load(grad_weights + batch * grad_weights_stride + columns, is_key)
    weight = load(weights + batch * num_keys + columns, is_key)
    slope = weight * (through_weights - tl.sum(weight * through_weights, 0)) * scale
    tl.store(grad_logits + batch * num_keys + columns, slope, mask=is_key & (part == 0))
    for first in range(part * BLOCK_DIM, DIM, SPLITS * BLOCK_DIM):
        dims = first + tl.arange(0, BLOCK_DIM)
        is_dim = dims < DIM
        at = (batch * num_keys + columns[:, None]) * DIM + dims[None, :]
        k = load(keys + at, is_key[:, None] & is_dim[None, :])
        if ADDITIVE:
            q = load(query + batch * query_stride + dims, is_dim)
            v = load(direction + dims, is_dim)
            u = 1.0 / (1.0 + tl.exp(2.0 * (q[None, :] + k)))
            total = 4.0 * v * tl.sum(slope[:, None] * (u - u * u), 0)
        else:
            total = tl.sum(slope[:, None] * k, 0)
        tl.store(grad_query + batch * DIM + dims, total, mask=is_dim)
