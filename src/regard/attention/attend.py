"""attend: score x align x read, in one operation.

score(query, key)    ->  logits  (..., q, k)    how well does key i match query t?
align(logits)        ->  weights (..., q, k)    turn matches into a focus
read(weights, value) ->  context (..., q, v)    the weighted average, or the chosen value
"""

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any, TypeVar

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn
from torch.nn import functional

from regard.attention import checks
from regard.attention.align import Align, AlignFunction, Soft, softmax
from regard.attention.dispatch import Call, Kernel, answer, both, in_steps
from regard.attention.memory import Attended, Memory
from regard.attention.score import Score, ScoreFunction, scaled_dot

__all__ = ["Attended", "Attention", "Kernel", "attend", "recall"]

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
    weights: bool = False,
    kernel: Kernel = "auto",
    state: Any = None,
    soft: Soft = False,
    check_finite: bool = False,
) -> Attended:
    """Read the values whose keys match the query; without `value`, the keys themselves are read.

    `score` and `align` are parts of regard.score and regard.align, or plain functions (query, key) -> logits and
    (logits, mask) -> weights. `mask` is True where a query may attend, and broadcasts to (..., q, k); hidden keys and
    values must be finite, but do not matter otherwise. `weights` asks for the attention weights; without them, fused
    kernels never build the (q, k) tensor. `kernel` is "auto", "reference" (the plain formulas) or "fused" (an error
    where there is no fused kernel). `state` is the state of the previous `Attended`. `soft` lets hard attention read
    softly in this call, for the whole batch or for each row (b,). `check_finite` raises an error if an input contains
    NaN or infinity.
    """
    score, align = as_score(score), as_align(align)
    checks.check_states(key, value, score)
    if check_finite:
        checks.check_all_finite(query=query, key=key, value=value)
    memory = Memory(score.project_key(key), key if value is None else value)
    return recall(
        query, memory, score=score, align=align, mask=mask, weights=weights, kernel=kernel, state=state, soft=soft
    )


class Attention(nn.Module):
    """A score and an alignment as a module, with a memory whose keys are projected once.

    memory = attention.remember(states, mask.padding(lengths))
    context, weights = attention(query, memory, weights=True)
    """

    def __init__(self, score: ScoreLike = scaled_dot, align: AlignLike = softmax) -> None:
        super().__init__()
        self.score, self.align = unshared(as_score(score)), unshared(as_align(align))

    def remember(
        self,
        states: Shaped[Tensor, "... k p"],
        mask: Bool[Tensor, "..."] | None = None,
        values: Float[Tensor, "... k v"] | None = None,
    ) -> Memory:
        """Project the keys once; without `values`, the states themselves are read."""
        checks.check_states(states, values, self.score)
        return Memory(self.score.project_key(states), states if values is None else values, mask)

    def forward(
        self,
        query: Shaped[Tensor, "... q d"] | None,
        memory: Memory,
        *,
        mask: Bool[Tensor, "..."] | None = None,
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
            soft=soft,
        )

    def in_steps(self, memory: Memory) -> Callable[[Tensor], Tensor] | None:
        """Return a function from a query (b, d) to its context (b, v) that runs one kernel; None if there is none."""
        if type(self).forward is not Attention.forward:
            return None
        return in_steps(self.score, self.align, memory)


def recall(
    query: Shaped[Tensor, "... q d"] | None,
    memory: Memory,
    *,
    score: Score,
    align: Align,
    mask: Bool[Tensor, "..."] | None = None,
    causal: bool = False,
    weights: bool = False,
    kernel: Kernel = "auto",
    state: Any = None,
    override: Float[Tensor, "... k"] | None = None,
    soft: Soft = False,
) -> Attended:
    """Attend to a memory of projected keys: the common core of `attend`, Attention and MultiHead.

    `causal` aligns the last query with the last key and hides later keys. `override` replaces the attention weights.
    """
    checks.check_kernel(kernel)
    checks.check_memory(memory)
    num_keys = memory.num_keys
    if num_keys == 0:
        return _recall_nothing(
            query, memory, score=score, align=align, weights=weights, kernel=kernel, state=state, soft=soft
        )
    query = checks.check_query(query, memory.keys, memory.values, score)
    lead = checks.lead_of(query, memory.keys, memory.values)
    projected = score.project_query(query)
    query, projected, keys, values = (
        part if part.shape[:-2] == lead else part.expand(*lead, *part.shape[-2:])
        for part in (query, projected, memory.keys, memory.values)
    )
    for part in (mask, memory.mask):
        if part is not None:
            checks.check_mask(part, lead, query.shape[-2], num_keys, values.device)
    mask = both(_over_keys(mask, num_keys), _over_keys(memory.mask, num_keys))
    if override is not None:
        override = checks.check_override(override, (*lead, query.shape[-2], num_keys)).to(values.dtype)
        override = override if mask is None else override.masked_fill(~mask, 0)
        state = align.state_after(override, state)
        return Attended(override @ values, override if weights else None, state=state)
    return answer(Call(query, projected, keys, values, mask, score, align, kernel, weights, causal, state, soft))


def _recall_nothing(query: Tensor | None, memory: Memory, *, weights: bool, state: Any, **options: Any) -> Attended:
    """Attend to a memory without keys, as if it had one key that may not be attended to."""
    keys, values = (functional.pad(part, (0, 0, 0, 1)) for part in (memory.keys, memory.values))
    closed = torch.zeros(1, 1, dtype=torch.bool, device=values.device)
    # A state with one weight per key has no entries, and does not fit the added key.
    last = None if isinstance(state, Tensor) else state
    attended = recall(query, Memory(keys, values, closed), weights=weights, state=last, **options)
    next_state = attended.state[..., :0] if isinstance(attended.state, Tensor) else attended.state
    empty = None if attended.weights is None else attended.weights[..., :0]
    return replace(attended, weights=empty, state=next_state)


def _over_keys(mask: Tensor | None, num_keys: int) -> Tensor | None:
    """Give a mask an axis for the queries and the full axis of the keys, along which alignments count."""
    if mask is None:
        return None
    mask = torch.atleast_2d(mask)
    return mask.expand(*mask.shape[:-1], num_keys)


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
