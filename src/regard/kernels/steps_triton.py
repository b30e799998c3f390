"""Triton kernels of attention with one query per step of a recurrence; steps.py calls these.

A program computes one example: the logits, the softmax, and its part of the context. Where several programs share the
features, each computes all logits, which is cheaper than synchronising them.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

import triton
import triton.language as tl

from regard.kernels.numerics_triton import load, softmax, tanh


@triton.jit
def look(
    query,
    keys,
    values,
    direction,
    mask,
    inputs,
    context,
    weights,
    query_stride,
    inputs_stride,
    num_keys,
    dim,
    value_dim,
    scale,
    mask_b,
    mask_k,
    ADDITIVE: tl.constexpr,
    HAS_MASK: tl.constexpr,
    HAS_INPUTS: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_DIM: tl.constexpr,
):
    """Compute softmax(v' tanh(query + key)), or softmax(scale query' key), and inputs + the context."""
    batch, part, parts = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.num_programs(1)
    columns = tl.arange(0, BLOCK_K)
    is_key = columns < num_keys
    matches = tl.zeros([BLOCK_K, BLOCK_DIM], tl.float32)
    for first in range(0, dim, BLOCK_DIM):
        dims = first + tl.arange(0, BLOCK_DIM)
        is_dim = dims < dim
        q = load(query + batch * query_stride + dims, is_dim)
        at = (batch * num_keys + columns[:, None]) * dim + dims[None, :]
        k = load(keys + at, is_key[:, None] & is_dim[None, :])
        if ADDITIVE:
            v = load(direction + dims, is_dim)
            matches += v[None, :] * tanh(q[None, :] + k)
        else:
            matches += q[None, :] * k
    logits = tl.sum(matches, 1)
    allowed = is_key
    if HAS_MASK:
        allowed = is_key & (tl.load(mask + batch * mask_b + columns * mask_k, mask=is_key, other=0) != 0)
    own_weights = softmax(logits * scale, allowed)
    tl.store(weights + batch * num_keys + columns, own_weights, mask=is_key & (part == 0))
    for first in range(part * BLOCK_DIM, value_dim, parts * BLOCK_DIM):
        features = first + tl.arange(0, BLOCK_DIM)
        is_feature = features < value_dim
        at = (batch * num_keys + columns[:, None]) * value_dim + features[None, :]
        tile = load(values + at, is_key[:, None] & is_feature[None, :])
        read = tl.sum(own_weights[:, None] * tile, 0)
        if HAS_INPUTS:
            read += load(inputs + batch * inputs_stride + features, is_feature)
        tl.store(context + batch * value_dim + features, read, mask=is_feature)


@triton.jit
def look_back(
    query,
    keys,
    values,
    direction,
    weights,
    upstream,
    grad_weights,
    grad_logits,
    grad_query,
    query_stride,
    grad_weights_stride,
    num_keys,
    dim,
    value_dim,
    scale,
    ADDITIVE: tl.constexpr,
    HAS_GRAD_WEIGHTS: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_DIM: tl.constexpr,
):
    """Compute the gradients of the logits and of the query; those of keys, values and v follow after all steps."""
    batch, part, parts = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.num_programs(1)
    columns = tl.arange(0, BLOCK_K)
    is_key = columns < num_keys
    products = tl.zeros([BLOCK_K, BLOCK_DIM], tl.float32)
    for first in range(0, value_dim, BLOCK_DIM):
        features = first + tl.arange(0, BLOCK_DIM)
        is_feature = features < value_dim
        at = (batch * num_keys + columns[:, None]) * value_dim + features[None, :]
        tile = load(values + at, is_key[:, None] & is_feature[None, :])
        incoming = load(upstream + batch * value_dim + features, is_feature)
        products += tile * incoming[None, :]
    through_weights = tl.sum(products, 1)
    if HAS_GRAD_WEIGHTS:
        through_weights += load(grad_weights + batch * grad_weights_stride + columns, is_key)
    weight = tl.load(weights + batch * num_keys + columns, mask=is_key, other=0.0)
    slope = weight * (through_weights - tl.sum(weight * through_weights, 0)) * scale
    tl.store(grad_logits + batch * num_keys + columns, slope, mask=is_key & (part == 0))
    for first in range(part * BLOCK_DIM, dim, parts * BLOCK_DIM):
        dims = first + tl.arange(0, BLOCK_DIM)
        is_dim = dims < dim
        at = (batch * num_keys + columns[:, None]) * dim + dims[None, :]
        k = load(keys + at, is_key[:, None] & is_dim[None, :])
        if ADDITIVE:
            q = load(query + batch * query_stride + dims, is_dim)
            v = load(direction + dims, is_dim)
            u = 1.0 / (1.0 + tl.exp(2.0 * (q[None, :] + k)))
            total = 4.0 * v * tl.sum(slope[:, None] * (u - u * u), 0)
        else:
            total = tl.sum(slope[:, None] * k, 0)
        tl.store(grad_query + batch * dim + dims, total, mask=is_dim)
