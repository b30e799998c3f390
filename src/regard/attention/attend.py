"""attend: score x align x read, in one operation.

score(query, key)    ->  logits  (..., q, k)    how well does key i match query t?
align(logits)        ->  weights (..., q, k)    turn matches into a focus
read(weights, value) ->  context (..., q, v)    the weighted average, or the one chosen
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn
from torch.nn import functional

from regard.attention import contract
from regard.attention.align import Softmax, softmax
from regard.attention.focus import Align, rows, widen
from regard.attention.mask import causal as causal_mask
from regard.attention.match import Function, Product, Score
from regard.attention.memory import Memory
from regard.attention.score import scaled_dot
from regard.errors import KernelError

Kernel = Literal["auto", "reference", "fused"]
ScoreLike = Score | Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Attended:
    """What attention gives: unpack `context, weights = attend(...)`, or read the fields."""

    context: Float[Tensor, "... q v"]
    weights: Float[Tensor, "... q k"] | None = None
    """The weights, when they were asked for."""
    log_prob: Float[Tensor, "... q"] | None = None
    """The log-probability of a sampled choice."""
    state: Any = None
    """What the alignment needs at the next step."""
    extras: dict[str, Any] = field(default_factory=dict)
    """More that the alignment knows: a predicted centre, a chosen index, an entropy."""

    def __iter__(self) -> Iterator[Tensor | None]:
        return iter((self.context, self.weights))


def attend(
    query: Shaped[Tensor, "... q d"] | None,
    key: Shaped[Tensor, "... k p"],
    value: Float[Tensor, "... k v"] | None = None,
    *,
    score: ScoreLike = scaled_dot,
    align: Align = softmax,
    mask: Bool[Tensor, "... k"] | None = None,
    weights: bool = False,
    kernel: Kernel = "auto",
    state: Any = None,
    check_finite: bool = False,
) -> Attended:
    """Read from the values what the keys say matches the query; without a value, the keys themselves are read.

    `mask` is True where a query may attend, and broadcasts to (..., q, k). `weights` asks for the weights; not asking
    keeps fused paths free of the (q, k) tensor. `kernel` is "auto", "reference" (the plain formulas) or "fused" (an
    error where there is no fused path). `state` is what the last `Attended` gave as its state. `check_finite` refuses
    NaN and infinity in the inputs.
    """
    score = as_score(score)
    contract.check_align(align)
    contract.check_states(key, value, score)
    if check_finite:
        contract.check_all_finite(query=query, key=key, value=value)
    memory = Memory(score.project_key(key), key if value is None else value)
    return recall(query, memory, score=score, align=align, mask=mask, weights=weights, kernel=kernel, state=state)


class Attention(nn.Module):
    """A score and an alignment, asked through a memory whose keys are projected once.

    memory = attention.remember(states, mask.padding(lengths))
    context, weights = attention(query, memory, weights=True)
    """

    def __init__(self, score: ScoreLike = scaled_dot, align: Align = softmax) -> None:
        super().__init__()
        contract.check_align(align)
        self.score, self.align = as_score(score), align

    def remember(
        self,
        states: Shaped[Tensor, "... k p"],
        mask: Bool[Tensor, "... k"] | None = None,
        values: Float[Tensor, "... k v"] | None = None,
    ) -> Memory:
        """Project the keys once; without `values`, the states themselves are read."""
        contract.check_states(states, values, self.score)
        return Memory(self.score.project_key(states), states if values is None else values, mask)

    def forward(
        self,
        query: Shaped[Tensor, "... q d"] | None,
        memory: Memory,
        *,
        mask: Bool[Tensor, "... k"] | None = None,
        weights: bool = False,
        kernel: Kernel = "auto",
        state: Any = None,
        override: Float[Tensor, "... k"] | None = None,
    ) -> Attended:
        """Attend to the memory; `mask` narrows its own, and `override` is read with instead of looking."""
        return recall(
            query,
            memory,
            score=self.score,
            align=self.align,
            mask=mask,
            weights=weights,
            kernel=kernel,
            state=state,
            override=override,
        )


def recall(
    query: Shaped[Tensor, "... q d"] | None,
    memory: Memory,
    *,
    score: Score,
    align: Align,
    mask: Bool[Tensor, "... k"] | None = None,
    causal: bool = False,
    weights: bool = False,
    kernel: Kernel = "auto",
    state: Any = None,
    override: Float[Tensor, "... k"] | None = None,
) -> Attended:
    """Attend to a memory whose keys are projected already: what `attend`, Attention and MultiHead share.

    `causal` lines up the last query with the last key. `override` replaces the alignment: these weights are read with.
    """
    contract.check_kernel(kernel)
    contract.check_memory(memory)
    if len(memory) == 0:
        return _recall_nothing(query, memory, score=score, align=align, weights=weights, kernel=kernel, state=state)
    query = contract.check_query(query, memory.keys, memory.values, score)
    lead = contract.lead_of(query, memory.keys, memory.values)
    query, keys, values = (part.expand(*lead, *part.shape[-2:]) for part in (query, memory.keys, memory.values))
    for part in (mask, memory.mask):
        if part is not None:
            contract.check_mask(part, lead, query.shape[-2], len(memory), values.device)
    mask = _both(mask, memory.mask)
    if override is not None:
        override = override.to(values.dtype).expand(*lead, query.shape[-2], len(memory))
        return Attended(override @ values, override, state=state)

    if isinstance(score, Product) and type(align) is Softmax and not weights and kernel != "reference":
        if causal:
            contract.check_past(query, memory)
        projected = score.project_query(query)
        return Attended(_fused(projected, keys, values, score.scale(keys.shape[-1]), mask, causal=causal))
    if kernel == "fused" and not score.lean:
        raise KernelError(_why_not_fused(score, align, weights=weights))
    if causal:
        past = contract.check_past(query, memory)
        mask = _both(mask, causal_mask(query.shape[-2], past=past, device=values.device))
        state = align.start_at(past) if state is None else state
    compare = score.reference if kernel == "reference" else score.compare
    return _score_align_read(query, keys, values, score, compare, align, mask, state, weights=weights)


def _score_align_read(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    score: Score,
    compare: Callable[[Tensor, Tensor], Tensor],
    align: Align,
    mask: Tensor | None,
    state: Any,
    *,
    weights: bool,
) -> Attended:
    """The three steps, in float32 at least; with a window, on each query's own few keys."""
    num_keys, dtype = keys.shape[-2], values.dtype
    projected = score.project_query(query)
    with _without_autocast(values.device):
        projected, keys, values = widen(projected), widen(keys), widen(values)
        window = align.look(query, num_keys, mask, state)
        if window is not None:
            projected = projected.unsqueeze(-2)
            keys, values = rows(keys, window.index), rows(values, window.index)
            mask = window.allowed(mask, num_keys).unsqueeze(-2)
        if align.uses_scores:
            logits = compare(projected, keys).to(values.dtype)
            contract.check_logits(logits, projected, keys, score)
        else:
            logits = values.new_zeros(*projected.shape[:-1], keys.shape[-2])
        focus = align.weigh(logits, mask, state, window)
        context = focus.read(values).to(dtype)
        asked = focus.all_weights(num_keys).to(dtype) if weights else None
        if window is not None:
            context = context.squeeze(-2)
            asked = None if asked is None else window.spread(asked.squeeze(-2), num_keys)
    return Attended(context, asked, focus.log_prob, focus.state, focus.extras)


def _recall_nothing(query: Tensor | None, memory: Memory, *, weights: bool, **options: Any) -> Attended:
    """A memory without keys is one key that may not be attended to."""
    keys, values = (part.new_zeros(*part.shape[:-2], 1, part.shape[-1]) for part in (memory.keys, memory.values))
    closed = torch.zeros(1, 1, dtype=torch.bool, device=values.device)
    attended = recall(query, Memory(keys, values, closed), weights=weights, **options)
    return replace(attended, weights=None if attended.weights is None else attended.weights[..., :0])


def _fused(query: Tensor, keys: Tensor, values: Tensor, scale: float, mask: Tensor | None, *, causal: bool) -> Tensor:
    """softmax(scale query keys') values by torch's fused attention."""
    lead, num_queries, num_keys = query.shape[:-2], query.shape[-2], keys.shape[-2]
    if causal and (mask is not None or num_queries != num_keys):
        mask = _both(mask, causal_mask(num_queries, past=num_keys - num_queries, device=query.device))
        causal = False
    is_open = None
    if mask is not None:
        # Backends differ on rows with nothing to attend to, so they attend to everything and are cleared afterwards.
        is_open = mask.any(-1, keepdim=True)
        mask = _with_two_lead_axes((mask | ~is_open).expand(*lead, -1, num_keys))
    query, keys, values = (_with_two_lead_axes(part) for part in (query, keys, values))
    context = functional.scaled_dot_product_attention(query, keys, values, mask, is_causal=causal, scale=scale)
    context = context.reshape(*lead, num_queries, values.shape[-1])
    return context if is_open is None else context.masked_fill(~is_open, 0)


def _with_two_lead_axes(tensor: Tensor) -> Tensor:
    """(b, h, ..., ...), which is what torch's fused kernels take; whatever the leading axes are."""
    lead = tensor.shape[:-2]
    return tensor.reshape(lead[:-1].numel(), lead[-1] if lead else 1, *tensor.shape[-2:])


def _both(first: Tensor | None, second: Tensor | None) -> Tensor | None:
    if first is None or second is None:
        return second if first is None else first
    return first & second


def _without_autocast(device: torch.device) -> AbstractContextManager[object]:
    """Autocast would take the products in half precision; projections may, scores and sums may not."""
    if torch.is_autocast_enabled(device.type):
        return torch.autocast(device.type, enabled=False)
    return nullcontext()


def _why_not_fused(score: Score, align: Align, *, weights: bool) -> str:
    pair = f"{type(score).__name__} with {type(align).__name__}"
    if weights and isinstance(score, Product) and type(align) is Softmax:
        return f"The fused kernel of {pair} does not give weights. Use kernel='auto' or weights=False."
    return f"There is no fused kernel for {pair}. Use kernel='auto'."


def as_score(score: ScoreLike) -> Score:
    """A score as it is; a plain function of (query, key) as a score."""
    contract.check_score(score)
    return score if isinstance(score, Score) else Function(score)
