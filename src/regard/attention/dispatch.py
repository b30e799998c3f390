"""Which kernel serves this call? The first entry of ROUTES that accepts it; otherwise score, align and read in turn.

Every route computes the same numbers (to rounding) as these three steps, which work for every score and alignment.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from regard.attention import checks
from regard.attention.align import Align, Local, LocalMonotonic, LocalPredictive, Soft, Softmax
from regard.attention.mask import causal as causal_mask
from regard.attention.memory import Attended, Memory
from regard.attention.score import Product, Score, is_plain_additive, is_plain_product
from regard.errors import KernelError
from regard.kernels.dot_product import dot_product_attention
from regard.kernels.numerics import has_gpu_kernels, take_rows, widen, without_autocast

Kernel = Literal["auto", "reference", "fused"]


@dataclass(slots=True)
class Call:
    """One call of attention, checked and broadcast: all that a route needs to know."""

    query: Tensor
    projected: Tensor
    """The query as the score projects it."""
    keys: Tensor
    values: Tensor
    mask: Tensor | None
    score: Score
    align: Align
    kernel: Kernel
    weights: bool
    causal: bool
    """Whether the last query stands at the last key and sees no later key; `mask` does not include this."""
    state: Any
    soft: Soft

    def visible(self) -> Tensor | None:
        """Return the mask, combined with the causal one if the call is causal."""
        if not self.causal:
            return self.mask
        past = checks.check_past(self.query.shape[-2], self.keys.shape[-2])
        return both(self.mask, causal_mask(self.query.shape[-2], past=past, device=self.values.device))

    def first_state(self) -> Any:
        """Return the state of the alignment; in a causal call without one, that after the keys of the past."""
        if not self.causal or self.state is not None:
            return self.state
        return self.align.start_at(self.keys.shape[-2] - self.query.shape[-2])


def answer(call: Call) -> Attended:
    """Compute a call by the first route that serves it."""
    if not call.weights and call.kernel != "reference":
        for route in ROUTES:
            if route.serves(call):
                attended = route.compute(call)
                if attended is not None:
                    return attended
    if call.kernel == "fused" and not call.score.has_kernel:
        raise KernelError(_why_not_fused(call))
    return score_align_read(call)


def _is_softmax_of_products(call: Call) -> bool:
    # A single query has no more logits than there are keys, so fusing saves nothing and the plain steps are faster.
    is_worth_it = call.kernel == "fused" or call.query.shape[-2] > 1
    return is_worth_it and type(call.align) is Softmax and is_plain_product(call.score)


def _fused_products(call: Call) -> Attended:
    if call.causal:
        checks.check_past(call.query.shape[-2], call.keys.shape[-2])
    scale = call.score.scale(call.keys.shape[-1])  # type: ignore[operator]
    context = dot_product_attention(call.projected, call.keys, call.values, scale, call.mask, causal=call.causal)
    return Attended(context)


def _is_softmax_with_own_kernel(call: Call) -> bool:
    if type(call.align) is not Softmax:
        return False
    return call.kernel == "fused" or call.score.prefers_read(call.projected, call.keys)


def _read_by_score(call: Call) -> Attended | None:
    context = call.score.read(call.projected, call.keys, call.values, call.visible())
    return None if context is None else Attended(context)


def _is_local_on_gpu(call: Call) -> bool:
    """Whether the kernel of local attention serves the call: local-m or local-p, with additive scores or products.

    It does not serve where deterministic results are required, nor an expanded memory, which would have to be copied.
    """
    align = call.align
    if not isinstance(align, Local) or type(align) not in (LocalMonotonic, LocalPredictive):
        return False
    if not all(has_gpu_kernels(part) for part in (call.projected, call.keys, call.values)):
        return False
    if not call.keys.is_contiguous() or not call.values.is_contiguous():
        return False
    if not is_plain_additive(call.score) and not is_plain_product(call.score):
        return False
    from regard.kernels.local import MAX_WINDOW

    return align.window <= MAX_WINDOW and not torch.are_deterministic_algorithms_enabled()


def _local_windows(call: Call) -> Attended:
    from regard.kernels.local import local_attention

    align, score, mask, state = call.align, call.score, call.visible(), call.first_state()
    if not isinstance(align, Local):
        raise TypeError("Only local alignments have windows.")
    lead, num_queries = call.query.shape[:-2], call.query.shape[-2]
    centre = align.centre(call.query, call.keys.shape[-2], mask, state)
    if mask is not None:
        mask = mask.expand(*lead, *mask.shape[-2:]).reshape(lead.numel(), *mask.shape[-2:])
    query, keys, values = (
        part.reshape(lead.numel(), *part.shape[-2:]) for part in (call.projected, call.keys, call.values)
    )
    context = local_attention(
        query,
        keys,
        values,
        centre.reshape(lead.numel(), num_queries),
        mask,
        window=align.window,
        sigma=align.sigma,
        direction=score.direction if is_plain_additive(score) else None,
        scale=score.scale(keys.shape[-1]) if is_plain_product(score) else 1.0,
    )
    context = context.view(*lead, num_queries, values.shape[-1])
    return Attended(context, state=align.next_state(num_queries, state), extras={"centre": centre})


def score_align_read(call: Call) -> Attended:
    """Score, align, read: the three steps, in float32 at least; with a window, on each query's own few keys."""
    score, align, mask, state = call.score, call.align, call.visible(), call.first_state()
    projected, keys, values = call.projected, call.keys, call.values
    num_keys, dtype = keys.shape[-2], values.dtype
    window = align.look(call.query, num_keys, mask, state)
    with without_autocast(values.device):
        if window is not None:
            projected = projected.unsqueeze(-2)
            keys, values = take_rows(keys, window.index), take_rows(values, window.index)
            mask = window.allowed(mask, num_keys).unsqueeze(-2)
        projected, keys, values = widen(projected), widen(keys), widen(values)
        if align.uses_scores:
            compare = score.reference if call.kernel == "reference" else score.compare
            logits = checks.check_logits(compare(projected, keys), projected, keys, score).to(values.dtype)
        else:
            logits = values.new_zeros(*projected.shape[:-1], keys.shape[-2])
        focus = align.weigh(logits, mask, state, window, soft=call.soft)
        context = focus.read(values).to(dtype)
        weights = focus.all_weights(num_keys).to(dtype) if call.weights else None
        if window is not None:
            context = context.squeeze(-2)
            weights = None if weights is None else window.spread(weights.squeeze(-2), num_keys)
    return Attended(context, weights, focus.log_prob, focus.state, focus.extras)


class Route(NamedTuple):
    """A way to compute a call that does not ask for weights."""

    serves: Callable[[Call], bool]
    compute: Callable[[Call], Attended | None]
    """The result, or None if it turns out that there is no kernel for these tensors."""


ROUTES = (
    Route(_is_softmax_of_products, _fused_products),  # dot products: torch's fused attention, on any device
    Route(_is_softmax_with_own_kernel, _read_by_score),  # large additive calls: regard's kernels, on a GPU
    Route(_is_local_on_gpu, _local_windows),  # local-m and local-p: regard's kernels, on a GPU
)
"""The fast routes, in the order in which they are tried; `score_align_read` serves every other call."""


def in_steps(score: Score, align: Align, memory: Memory) -> Callable[[Tensor], Tensor] | None:
    """Return a function from a query (b, d) to its context (b, v), for a recurrence that asks one query a step.

    It runs one kernel per step, on a GPU, for the softmax of additive scores and of products and up to MAX_KEYS keys;
    None where that does not apply.
    """
    mask = memory.mask
    if type(align) is not Softmax or memory.keys.ndim != 3:
        return None
    if not has_gpu_kernels(memory.keys) or not has_gpu_kernels(memory.values):
        return None
    from regard.kernels.steps import MAX_KEYS, Steps

    if memory.num_keys > MAX_KEYS or (mask is not None and (mask.ndim != 3 or mask.shape[1] != 1)):
        return None
    allowed = None if mask is None else mask[:, 0].expand(memory.keys.shape[0], memory.num_keys)
    if is_plain_additive(score):
        steps = Steps(memory.keys, memory.values, allowed, score.direction)
    elif is_plain_product(score) and score.learned_query() is None:
        steps = Steps(memory.keys, memory.values, allowed, scale=score.scale(memory.keys.shape[-1]))
    else:
        return None

    def read(query: Tensor) -> Tensor:
        return steps(score.project_query(query.unsqueeze(1)).squeeze(1))

    return read


def both(first: Tensor | None, second: Tensor | None) -> Tensor | None:
    """Combine two masks, either of which may be missing."""
    if first is None or second is None:
        return second if first is None else first
    return first & second


def _why_not_fused(call: Call) -> str:
    pair = f"{type(call.score).__name__} with {type(call.align).__name__}"
    if call.weights and isinstance(call.score, Product) and type(call.align) is Softmax:
        return f"The fused kernel of {pair} does not return weights. Use kernel='auto' or weights=False."
    return f"There is no fused kernel for {pair}. Use kernel='auto'."
