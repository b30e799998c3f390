"""The choice of the fused kernel that computes a call of attention, if any.

Every kernel computes the same numbers (to rounding) as the three plain steps score, align and read, which all other
calls run. In those, additive and MLP scores still choose whether to compute their logits block by block (see
`Score.compare`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from regard.attention import checks
from regard.attention.align import Align, Local, LocalMonotonic, LocalPredictive, Soft, Softmax
from regard.attention.mask import causal as causal_mask
from regard.attention.memory import Attended, Memory
from regard.attention.score import Product, Score, TanhSum
from regard.errors import KernelError
from regard.kernels.additive import additive_attention, prefers_attention_kernels
from regard.kernels.dot_product import dot_product_attention
from regard.kernels.local import MAX_WINDOW, Window, local_attention
from regard.kernels.numerics import has_gpu_kernels
from regard.kernels.steps import MAX_KEYS, Steps

Kernel = Literal["auto", "reference", "fused"]

StepReader = Callable[..., tuple[Tensor, Tensor]]
"""A function from a query (b, d), and inputs (b, v) or None to add, to the context (b, v) and the weights (b, k)."""


@dataclass(slots=True)
class Call:
    """One call of attention, checked and broadcast: all that a kernel needs to know."""

    query: Tensor
    projected: Tensor
    """The query as the score projects it."""
    keys: Tensor
    values: Tensor
    mask: Tensor | None
    bias: Tensor | None
    score: Score
    align: Align
    kernel: Kernel
    weights: bool
    causal: bool
    """Whether the last query stands at the last key and sees no later key; `mask` does not include this."""
    state: Any
    soft: Soft
    dropout: float
    grouped: bool
    """Whether several heads of queries share a head of keys, which are not repeated yet."""

    def visible(self) -> Tensor | None:
        """Return the mask, combined with the causal one if the call is causal."""
        if not self.causal:
            return self.mask
        past = checks.check_past(self.query.shape[-2], self.keys.shape[-2])
        earlier = causal_mask(self.query.shape[-2], past=past, device=self.values.device)
        return earlier if self.mask is None else self.mask & earlier

    def first_state(self) -> Any:
        """Return the state of the alignment; in a causal call without one, that after the keys of the past."""
        if not self.causal or self.state is not None:
            return self.state
        return self.align.start_at(self.keys.shape[-2] - self.query.shape[-2])


def fused(call: Call) -> Attended | None:
    """Compute a call by the kernel that serves it; None if there is none, or if the plain steps are faster.

    With kernel="fused", a KernelError where there is none, unless the score computes its logits block by block.
    """
    form, align, is_asked = call.score.form, type(call.align), call.kernel == "fused"
    if not call.weights and call.kernel != "reference":
        # A single query has no more logits than there are keys, so fusing saves nothing and the plain steps are faster,
        # unless they have to repeat the keys first.
        if form == "product" and align is Softmax and (is_asked or call.grouped or call.query.shape[-2] > 1):
            return _dot_product(call)
        is_plain = call.bias is None and not call.dropout and not call.grouped
        if is_plain and has_gpu_kernels(call.projected) and has_gpu_kernels(call.values):
            is_additive = form == "additive" and align is Softmax
            if is_additive and (is_asked or prefers_attention_kernels(call.projected, call.keys)):
                return _additive_on_gpu(call)
            if form in ("product", "additive") and align in (LocalMonotonic, LocalPredictive) and _fits_windows(call):
                return _local_on_gpu(call)
    if is_asked and form not in ("additive", "pairs"):
        raise KernelError(_why_not_fused(call))
    return None


def _dot_product(call: Call) -> Attended:
    """By torch's fused attention, on any device."""
    if call.causal:
        checks.check_past(call.query.shape[-2], call.keys.shape[-2])
    context = dot_product_attention(
        call.projected,
        call.keys,
        call.values,
        _scale(call.score, call.keys),
        call.mask,
        call.bias,
        causal=call.causal,
        dropout=call.dropout,
        grouped=call.grouped,
    )
    return Attended(context)


def _additive_on_gpu(call: Call) -> Attended:
    """By regard's kernels for additive scores, on a GPU."""
    query, keys, values, mask = _with_one_lead_axis(call)
    context = additive_attention(query, keys, values, _direction(call.score), mask)
    return Attended(context.view(*call.query.shape[:-1], values.shape[-1]))


def _fits_windows(call: Call) -> bool:
    """Whether the kernel of local attention serves the call.

    It does not serve where deterministic results are required, nor an expanded memory, which would have to be copied.
    """
    if not (call.keys.is_contiguous() and call.values.is_contiguous() and has_gpu_kernels(call.keys)):
        return False
    window: int = call.align.window  # type: ignore[assignment]
    return window <= MAX_WINDOW and not torch.are_deterministic_algorithms_enabled()


def _local_on_gpu(call: Call) -> Attended:
    """By regard's kernel for local-m and local-p, on a GPU."""
    align, state = call.align, call.first_state()
    assert isinstance(align, Local)  # noqa: S101 - `fused` chose it
    lead, num_queries = call.query.shape[:-2], call.query.shape[-2]
    centre = align.centre(call.query, call.keys.shape[-2], call.visible(), state)
    query, keys, values, mask = _with_one_lead_axis(call)
    centres = centre.reshape(lead.numel(), num_queries)
    is_product = call.score.form == "product"
    window = Window(align.window, align.sigma, _scale(call.score, keys) if is_product else 1.0, mask)
    direction = None if is_product else _direction(call.score)
    context = local_attention(query, keys, values, centres, direction, window)
    context = context.view(*lead, num_queries, values.shape[-1])
    return Attended(context, state=align.next_state(num_queries, state), extras={"centre": centre})


def _with_one_lead_axis(call: Call) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Reshape projected queries, keys, values and the visible part of the mask to (b, ..., ...)."""
    lead, mask = call.query.shape[:-2], call.visible()
    if mask is not None:
        mask = mask.expand(*lead, *mask.shape[-2:]).reshape(lead.numel(), *mask.shape[-2:])
    query, keys, values = (
        part.reshape(lead.numel(), *part.shape[-2:]) for part in (call.projected, call.keys, call.values)
    )
    return query, keys, values, mask


def _scale(score: Score, keys: Tensor) -> float:
    assert isinstance(score, Product)  # noqa: S101 - its form says so
    return score.scale(keys.shape[-1])


def _direction(score: Score) -> Tensor:
    assert isinstance(score, TanhSum)  # noqa: S101 - its form says so
    return score.direction


def in_steps(score: Score, align: Align, memory: Memory) -> StepReader | None:
    """Return a function for a recurrence that asks one query a step.

    It runs one kernel per step, on a GPU, for the softmax of additive scores and of products and up to MAX_KEYS keys;
    None where that does not apply.
    """
    mask = memory.mask
    if type(align) is not Softmax or memory.keys.ndim != 3:
        return None
    if not has_gpu_kernels(memory.keys) or not has_gpu_kernels(memory.values):
        return None
    if memory.num_keys > MAX_KEYS or (mask is not None and (mask.ndim != 3 or mask.shape[1] != 1)):
        return None
    allowed = None if mask is None else mask[:, 0].expand(memory.keys.shape[0], memory.num_keys)
    if score.form == "additive":
        steps = Steps(memory.keys, memory.values, allowed, _direction(score))
    elif score.form == "product" and score.learned_query() is None:
        steps = Steps(memory.keys, memory.values, allowed, scale=_scale(score, memory.keys))
    else:
        return None

    def read(query: Tensor, inputs: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return steps(score.project_query(query), inputs)

    return read


def _why_not_fused(call: Call) -> str:
    pair = f"{type(call.score).__name__} with {type(call.align).__name__}"
    if call.weights and isinstance(call.score, Product) and type(call.align) is Softmax:
        return f"The fused kernel of {pair} does not return weights. Use kernel='auto' or weights=False."
    return f"There is no fused kernel for {pair}. Use kernel='auto'."
