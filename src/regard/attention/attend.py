"""attend: score x align x read, in one operation.

score(query, key)    ->  logits  (..., q, k)    how well does key i match query t?
align(logits)        ->  weights (..., q, k)    turn matches into a focus
read(weights, value) ->  context (..., q, v)    the weighted average, or the chosen value

The function `attend_memory` below does all three, on keys that are projected already.
"""

import math
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any, TypeVar

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn
from torch.nn import functional

from regard.attention import checks
from regard.attention.align import Align, AlignFunction, Focus, Soft, softmax
from regard.attention.fused import Call, Kernel, StepReader, fused, in_steps
from regard.attention.memory import Attended, Memory
from regard.attention.score import Score, ScoreFunction, scaled_dot
from regard.kernels.numerics import HALF, take_rows, widen, without_autocast

__all__ = ["Attended", "Attention", "Kernel", "attend", "attend_memory"]

Part = TypeVar("Part", bound=Score | Align)
ScoreLike = Score | Callable[[Tensor, Tensor], Tensor]
AlignLike = Align | Callable[[Tensor, Tensor | None], Tensor]


def attend(
    query: Shaped[Tensor, "... q d"] | None,
    key: Shaped[Tensor, "... k p"],
    value: Float[Tensor, "... k v"] | None = None,
    *,
    score: ScoreLike = scaled_dot,
    align: AlignLike = softmax,
    mask: Bool[Tensor, "..."] | None = None,
    bias: Float[Tensor, "..."] | None = None,
    dropout: float = 0.0,
    grouped: bool = False,
    weights: bool = False,
    kernel: Kernel = "auto",
    state: Any = None,
    soft: Soft = False,
    check_finite: bool = False,
) -> Attended:
    """Read the values whose keys match the query; without `value`, the keys themselves are read.

    `score` and `align` are parts of regard.score and regard.align, or plain functions (query, key) -> logits and
    (logits, mask) -> weights. `mask` is True where a query may attend, and broadcasts to (..., q, k); hidden keys and
    values must be finite, but do not matter otherwise. `bias` is added to the logits and broadcasts as a mask does;
    minus infinity hides a key, and is all that an alignment without scores (`align.uniform`) takes of it.
    `dropout` is the share of the weights that are set to 0 at random, while the others grow by 1 / (1 - dropout).
    `grouped` lets each head of a key (b, g, k, p) serve several heads of the query (b, h, q, d), in their order.

    `weights` asks for the attention weights, before dropout; without them, fused kernels never build the (q, k) tensor.
    `kernel` is "auto" (the fastest way known), "reference" (the plain formulas) or "fused": a fused kernel even where
    "auto" finds the formulas faster. Where no fused kernel serves the call, "fused" computes additive, concat and MLP
    scores as "auto" does, block by block where they are large, and raises a KernelError for all other scores.

    `state` is the state of the previous `Attended`. `soft` lets hard attention read softly in this call, for the whole
    batch or for each row (b,). `check_finite` raises an error if an input contains NaN or infinity.
    """
    score = score if isinstance(score, Score) else as_score(score)
    align = align if isinstance(align, Align) else as_align(align)
    checks.check_states(key, value, score)
    if check_finite is not False:
        checks.check_flag("check_finite", check_finite)
        checks.check_all_finite(query=query, key=key, value=value)
    memory = Memory(score.project_key(key), key if value is None else value)
    checks.check_call(query, memory, score, align, mask, bias, kernel, grouped=grouped, weights=weights, soft=soft)
    return attend_memory(
        query,
        memory,
        score,
        align,
        mask=mask,
        bias=bias,
        dropout=0.0 if isinstance(dropout, float) and dropout == 0 else checks.check_dropout(dropout),
        grouped=grouped,
        weights=weights,
        kernel=kernel,
        state=state,
        soft=soft,
    )


class Attention(nn.Module):
    """A score and an alignment as a module, with a memory whose keys are projected once.

    memory = attention.remember(states, mask.padding(lengths))
    context, weights = attention(query, memory, weights=True)

    In training mode, `dropout` is the share of the weights that are set to 0 at random.
    """

    def __init__(self, score: ScoreLike = scaled_dot, align: AlignLike = softmax, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.score, self.align = unshared(as_score(score)), unshared(as_align(align))
        self.dropout = checks.check_dropout(dropout)

    def remember(
        self,
        states: Shaped[Tensor, "... k p"],
        mask: Bool[Tensor, "..."] | None = None,
        values: Float[Tensor, "... k v"] | None = None,
    ) -> Memory:
        """Project the keys once; without `values`, the states themselves are read."""
        checks.check_states(states, values, self.score)
        if mask is not None:
            checks.check_mask_of_memory(mask, states)
        return Memory(self.score.project_key(states), states if values is None else values, mask)

    def forward(
        self,
        query: Shaped[Tensor, "... q d"] | None,
        memory: Memory,
        *,
        mask: Bool[Tensor, "..."] | None = None,
        bias: Float[Tensor, "..."] | None = None,
        weights: bool = False,
        kernel: Kernel = "auto",
        state: Any = None,
        override: Float[Tensor, "... k"] | None = None,
        soft: Soft = False,
    ) -> Attended:
        """Attend to the memory.

        `mask` is combined with that of the memory. `override` replaces the attention weights: the values are read with
        it, except that masked keys keep weight 0. The other arguments are those of `attend`.
        """
        options: dict[str, Any] = {"weights": weights, "soft": soft, "override": override}
        checks.check_call(query, memory, self.score, self.align, mask, bias, kernel, **options)
        return self.attend(
            query,
            memory,
            mask=mask,
            bias=bias,
            weights=weights,
            kernel=kernel,
            state=state,
            override=override,
            soft=soft,
        )

    def attend(self, query: Shaped[Tensor, "... q d"] | None, memory: Memory, **options: Any) -> Attended:
        """Attend as `forward` does, without its checks: for loops, which ask with one shape of queries many times."""
        dropout = self.dropout if self.training else 0.0
        return attend_memory(query, memory, self.score, self.align, dropout=dropout, **options)

    def in_steps(self, memory: Memory) -> StepReader | None:
        """Return a function from a query to its context and weights that runs one kernel; None if there is none."""
        if type(self).forward is not Attention.forward or type(self).attend is not Attention.attend:
            return None
        if self.dropout and self.training:
            return None
        return in_steps(self.score, self.align, memory)


def attend_memory(
    query: Shaped[Tensor, "... q d"] | None,
    memory: Memory,
    score: Score,
    align: Align,
    *,
    mask: Bool[Tensor, "..."] | None = None,
    bias: Float[Tensor, "..."] | None = None,
    causal: bool = False,
    dropout: float = 0.0,
    grouped: bool = False,
    weights: bool = False,
    kernel: Kernel = "auto",
    state: Any = None,
    override: Float[Tensor, "... k"] | None = None,
    soft: Soft = False,
) -> Attended:
    """Score, align and read: all three steps, on a memory of projected keys.

    This is the core of `attend`, Attention and MultiHead, which check its arguments. A fused kernel takes the three
    steps at once where one serves the call.
    `causal` aligns the last query with the last key and hides later keys. `override` replaces the attention weights.
    """
    if memory.values.shape[-2] == 0:
        options = {"grouped": grouped, "weights": weights, "kernel": kernel, "soft": soft}
        return _read_nothing(query, memory, score, align, state, **options)
    learned = score.learned_query() if query is None else query
    assert learned is not None  # noqa: S101 - a score that takes None has learned its query
    query, keys, values = learned, memory.keys, memory.values
    projected = score.project_query(query)
    own = 3 if grouped else 2  # the last axes of each, which do not broadcast
    lead = query.shape[:-own]
    if grouped or keys.shape[:-2] != lead or values.shape[:-2] != lead:
        lead = checks.broadcast_lead(query, keys, values, own)
        query, projected, keys, values = (
            part.expand(*lead, *part.shape[-own:]) for part in (query, projected, keys, values)
        )
    if memory.mask is not None:
        mask = memory.mask if mask is None else mask & memory.mask
    if mask is not None and (mask.ndim < 2 or mask.shape[-1] != values.shape[-2]):
        # Alignments count along the full axis of the keys.
        mask = torch.atleast_2d(mask)
        mask = mask.expand(*mask.shape[:-1], values.shape[-2])
    call = Call(
        query=query,
        projected=projected,
        keys=keys,
        values=values,
        mask=mask,
        bias=bias,
        score=score,
        align=align,
        kernel=kernel,
        weights=weights,
        causal=causal,
        state=state,
        soft=soft,
        dropout=dropout,
        grouped=grouped,
    )
    if override is None and (attended := fused(call)) is not None:
        return attended
    if grouped:
        call.keys, call.values = (
            part.repeat_interleave(query.shape[-3] // part.shape[-3], -3) for part in (keys, values)
        )
    return score_align_read(call) if override is None else _read_with(override, call)


def score_align_read(call: Call) -> Attended:
    """Score, align, read: the three steps, in float32 at least; with a window, on each query's own few keys."""
    score, align, projected, keys, values = call.score, call.align, call.projected, call.keys, call.values
    mask, state = (call.visible(), call.first_state()) if call.causal else (call.mask, call.state)
    num_keys, dtype = keys.shape[-2], values.dtype
    window = align.choose_window(call.query, num_keys, mask, state)
    with without_autocast(values.device):
        bias = call.bias
        if window is not None:
            projected = projected.unsqueeze(-2)
            keys, values = take_rows(keys, window.index), take_rows(values, window.index)
            mask = window.allowed(mask, num_keys).unsqueeze(-2)
            bias = None if bias is None else window.take(bias, num_keys).unsqueeze(-2)
        if projected.dtype in HALF or keys.dtype in HALF or dtype in HALF:
            projected, keys, values = widen(projected), widen(keys), widen(values)
        if align.uses_scores:
            logits = score.reference(projected, keys) if call.kernel == "reference" else score.compare(projected, keys)
            if score.form is None:
                logits = checks.check_logits(logits, projected, keys, score)
            logits = logits.to(values.dtype) if bias is None else logits.to(values.dtype) + bias.to(values.dtype)
        else:
            logits = values.new_zeros(*projected.shape[:-1], keys.shape[-2])
            if bias is not None:  # minus infinity hides a key here too
                mask = bias != -math.inf if mask is None else mask & (bias != -math.inf)
        focus = align.weigh(logits, mask, state, window, soft=call.soft)
        if not align.is_built_in:
            focus = checks.check_focus(focus, logits, mask, align)
        context = focus.read(values, call.dropout).to(dtype)
        weights = focus.all_weights(num_keys).to(dtype) if call.weights else None
        if window is not None:
            context = context.squeeze(-2)
            weights = None if weights is None else window.spread(weights.squeeze(-2), num_keys)
    return Attended(context, weights, focus.log_prob, focus.state, focus.extras)


def _read_with(weights: Tensor, call: Call) -> Attended:
    """Read the values with given weights, except that masked keys keep weight 0."""
    expected = (*call.query.shape[:-1], call.values.shape[-2])
    weights = checks.check_override(weights, expected, call.values.device).to(call.values.dtype)
    weights = weights if call.mask is None else weights.masked_fill(~call.mask, 0)
    context = Focus(weights).read(call.values, call.dropout)
    return Attended(context, weights if call.weights else None, state=call.align.state_after(weights, call.state))


def _read_nothing(
    query: Tensor | None, memory: Memory, score: Score, align: Align, state: Any, **options: Any
) -> Attended:
    """Attend to a memory without keys, as if it had one key that may not be attended to."""
    keys, values = functional.pad(memory.keys, (0, 0, 0, 1)), functional.pad(memory.values, (0, 0, 0, 1))
    closed = torch.zeros(1, 1, dtype=torch.bool, device=values.device)
    # A state with one weight per key has no entries, and does not fit the added key.
    last = None if isinstance(state, Tensor) else state
    attended = attend_memory(query, Memory(keys, values, closed), score, align, state=last, **options)
    next_state = attended.state[..., :0] if isinstance(attended.state, Tensor) else attended.state
    empty = None if attended.weights is None else attended.weights[..., :0]
    return replace(attended, weights=empty, state=next_state)


def as_score(score: ScoreLike) -> Score:
    """Return a score unchanged, and wrap a plain function (query, key) -> logits."""
    if isinstance(score, Score):
        return score
    checks.check_score(score)
    return ScoreFunction(score)


def as_align(align: AlignLike) -> Align:
    """Return an alignment unchanged, and wrap a plain function (logits, mask) -> weights."""
    if isinstance(align, Align):
        return align
    checks.check_align(align)
    return AlignFunction(align)


def unshared(part: Part) -> Part:
    """Return a copy of a shared object, so that `train()` and `eval()` of one model do not reach another."""
    if not part.is_shared:
        return part
    own = copy(part)
    own.is_shared = False
    own.train()  # as every new module, whatever mode the shared one is in
    return own
