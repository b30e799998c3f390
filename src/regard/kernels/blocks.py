"""Blocks of a (batch, query, key) volume whose intermediate results fit in the cache."""

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

Block = tuple[slice, slice, slice]
"""Slices of the batch, of the queries and of the keys."""

# Number of elements of a (batch, query, key, feature) block: 1 MiB in float32 fits in the cache of each of a few CPU
# cores, while a GPU needs larger blocks to be busy.
CPU_BLOCK = 1 << 18
MAX_CORES = 4
GPU_BLOCK = 1 << 23


def flatten_lead(query: Tensor, key: Tensor) -> tuple[Tensor, Tensor, torch.Size]:
    """Reshape to one batch axis, (b, q, d) and (b, k, d); also return the leading axes that both broadcast to."""
    lead = query.shape[:-2]
    if lead != key.shape[:-2]:
        lead = torch.broadcast_shapes(lead, key.shape[:-2])
    flat_query, flat_key = (
        side.expand(*lead, *side.shape[-2:]).reshape(lead.numel(), *side.shape[-2:]) for side in (query, key)
    )
    return flat_query, flat_key, lead


def plain_gradients(
    reference: Callable[..., Tensor], inputs: Sequence[Tensor], needed: Sequence[bool], grad: Tensor
) -> tuple[Tensor | None, ...]:
    """Compute the gradients of a reference formula such that they can be differentiated again."""
    differentiated = [part for part, need in zip(inputs, needed, strict=True) if need]
    gradients = iter(torch.autograd.grad(reference(*inputs), differentiated, grad, create_graph=True))
    return tuple(next(gradients) if need else None for need in needed)


def blocks(query: Tensor, key: Tensor, *, features: int) -> Iterator[Block]:
    """Yield slices over the batch, the queries (b, q, d) and the keys (b, k, d), of at least one pair each.

    A block consists of whole examples if they fit, otherwise of whole rows of keys, otherwise of a part of a row, so
    that its pairs are contiguous in a (b, q, k) tensor. No block is larger than the first.
    """
    size = CPU_BLOCK * min(MAX_CORES, torch.get_num_threads()) if query.device.type == "cpu" else GPU_BLOCK
    batch, queries, keys = query.shape[0], query.shape[1], key.shape[1]
    if 0 in (batch, queries, keys):
        return
    features = max(1, features)
    key_step = min(keys, max(1, size // features))
    query_step = min(queries, max(1, size // (features * key_step)))
    batch_step = min(batch, max(1, size // (features * key_step * query_step)))
    for b in range(0, batch, batch_step):
        for q in range(0, queries, query_step):
            for k in range(0, keys, key_step):
                yield (
                    slice(b, min(b + batch_step, batch)),
                    slice(q, min(q + query_step, queries)),
                    slice(k, min(k + key_step, keys)),
                )
