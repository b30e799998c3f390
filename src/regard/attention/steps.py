"""Asking a memory one query a step, as a recurrence does under teacher forcing."""

from collections.abc import Callable

from torch import Tensor

from regard.attention.align import Softmax
from regard.attention.attend import Attention
from regard.attention.match import is_plain_product
from regard.attention.memory import Memory
from regard.attention.networks import TanhSum
from regard.kernels.gpu import has_gpu_kernels


def in_steps(attention: Attention, memory: Memory) -> Callable[[Tensor], Tensor] | None:
    """From a query (b, d) to what it reads (b, v), by one kernel; None where there is none.

    There is one on a GPU for the softmax of additive scores and of products, up to some thousand keys.
    """
    score, mask = attention.score, memory.mask
    is_plain = type(attention) is Attention and type(attention.align) is Softmax and memory.keys.ndim == 3
    if not is_plain or not has_gpu_kernels(memory.keys) or not has_gpu_kernels(memory.values):
        return None
    from regard.kernels.steps import MOST_KEYS, Steps

    if len(memory) > MOST_KEYS or (mask is not None and (mask.ndim != 3 or mask.shape[1] != 1)):
        return None
    closed = None if mask is None else mask[:, 0].expand(len(memory.keys), len(memory))
    if isinstance(score, TanhSum):
        steps = Steps(memory.keys, memory.values, closed, score.direction)
    elif is_plain_product(score) and score.own_query() is None:
        steps = Steps(memory.keys, memory.values, closed, scale=score.scale(memory.keys.shape[-1]))
    else:
        return None

    def ask(query: Tensor) -> Tensor:
        return steps(score.project_query(query.unsqueeze(1)).squeeze(1))

    return ask
