"""Reading through the windows of local alignments by one kernel, on a GPU."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.focus import Mask
from regard.attention.local import Local, LocalMonotonic, LocalPredictive
from regard.attention.match import Score, is_plain_product
from regard.attention.networks import TanhSum
from regard.kernels.gpu import has_gpu_kernels


@dataclass(frozen=True)
class Read:
    """What was read, the alignment's next state, and what else it knows."""

    context: Float[Tensor, "... q v"]
    state: Any
    extras: dict[str, Any]


def read_windows(
    align: Local,
    score: Score,
    query: Tensor,
    projected: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Mask,
    state: Any,
) -> Read | None:
    """What each query reads in its window; None where there is no kernel for it.

    There is one for local-m and local-p with additive scores and products. Where the same bits are asked for each
    time, it does not serve. Nor where the memory is expanded: to lay it out would cost more than the windows.
    """
    is_known = type(align) in (LocalMonotonic, LocalPredictive)
    if not is_known or not all(has_gpu_kernels(part) for part in (projected, keys, values)):
        return None
    if not keys.is_contiguous() or not values.is_contiguous():
        return None
    if not isinstance(score, TanhSum) and not is_plain_product(score):
        return None
    from regard.kernels.local import MOST_REACH, local_attention

    if align.reach > MOST_REACH or torch.are_deterministic_algorithms_enabled():
        return None
    lead, num_queries = query.shape[:-2], query.shape[-2]
    centre = align.centre(query, keys.shape[-2], mask, state)
    if mask is not None:
        mask = mask.expand(*lead, *mask.shape[-2:]).reshape(lead.numel(), *mask.shape[-2:])
    asked, kept, read = (part.reshape(lead.numel(), *part.shape[-2:]) for part in (projected, keys, values))
    context = local_attention(
        asked,
        kept,
        read,
        centre.reshape(lead.numel(), num_queries),
        mask,
        reach=align.reach,
        sigma=align.sigma,
        direction=score.direction if isinstance(score, TanhSum) else None,
        scale=score.scale(keys.shape[-1]) if is_plain_product(score) else 1.0,
    )
    state = align.next_state(num_queries, state)
    return Read(context.view(*lead, num_queries, values.shape[-1]), state, {"centre": centre})
