"""attend: score x align x read, in one operation.

score(query, key)    ->  logits  (..., q, k)    how well does key i match query t?
align(logits)        ->  weights (..., q, k)    turn matches into a focus
read(weights, value) ->  context (..., q, v)    the weighted average, or the one chosen
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn
from torch.nn import functional

from regard.attention import contract
from regard.attention.align import Softmax, softmax
from regard.attention.focus import Align, Window, rows, widen
from regard.attention.local import Local
from regard.attention.local_read import read_windows
from regard.attention.mask import causal as causal_mask
from regard.attention.match import Function, Product, Score, is_plain_product
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

    def __iter__(self) -> Iterator[Any]:
        return iter((self.context, self.weights))


def attend(
    query: Shaped[Tensor, "... q d"] | None,
    key: Shaped[Tensor, "... k p"],
    value: Float[Tensor, "... k v"] | None = None,
    *,
    score: ScoreLike = scaled_dot,
    align: Align = softmax,
    mask: Bool[Tensor, "..."] | None = None,
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
        mask: Bool[Tensor, "..."] | None = None,
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
        mask: Bool[Tensor, "..."] | None = None,
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
    mask: Bool[Tensor, "..."] | None = None,
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
    projected = score.project_query(query)
    query, projected, keys, values = (
        part if part.shape[:-2] == lead else part.expand(*lead, *part.shape[-2:])
        for part in (query, projected, memory.keys, memory.values)
    )
    for part in (mask, memory.mask):
        if part is not None:
            contract.check_mask(part, lead, query.shape[-2], len(memory), values.device)
    mask = _both(_over_keys(mask, len(memory)), _over_keys(memory.mask, len(memory)))
    if override is not None:
        override = contract.check_override(override, (*lead, query.shape[-2], len(memory))).to(values.dtype)
        override = override if mask is None else override.masked_fill(~mask, 0)
        state = align.state_after(override, state)
        return Attended(override @ values, override if weights else None, state=state)

    # A single query has no more scores than there are keys: there is nothing to save, and the plain steps are faster.
    wants_fused = kernel == "fused" or (kernel == "auto" and query.shape[-2] > 1)
    if not weights and wants_fused and is_plain_product(score) and type(align) is Softmax:
        if causal:
            contract.check_past(query, memory)
        return Attended(_fused(projected, keys, values, score.scale(keys.shape[-1]), mask, causal=causal))
    if not weights and type(align) is Softmax and (kernel == "fused" or _read_pays(kernel, score, projected, keys)):
        visible = _both(mask, _causal(query, memory)) if causal else mask
        context = score.read(projected, keys, values, visible)
        if context is not None:
            return Attended(context)
    if causal:
        mask = _both(mask, _causal(query, memory))
        state = align.start_at(len(memory) - query.shape[-2]) if state is None else state
    if not weights and kernel != "reference" and isinstance(align, Local):
        read = read_windows(align, score, query, projected, keys, values, mask, state)
        if read is not None:
            return Attended(read.context, state=read.state, extras=read.extras)
    if kernel == "fused" and not score.lean:
        raise KernelError(_why_not_fused(score, align, weights=weights))
    compare = score.reference if kernel == "reference" else score.compare
    window = align.look(query, len(memory), mask, state)
    return _score_align_read(projected, keys, values, score, compare, align, mask, state, window, weights=weights)


def _causal(query: Tensor, memory: Memory) -> Tensor:
    """Which keys each query may see, where the last query lines up with the last key."""
    past = contract.check_past(query, memory)
    return causal_mask(query.shape[-2], past=past, device=memory.values.device)


def _read_pays(kernel: Kernel, score: Score, projected: Tensor, keys: Tensor) -> bool:
    return kernel == "auto" and score.read_pays(projected, keys)


def _score_align_read(
    projected: Tensor,
    keys: Tensor,
    values: Tensor,
    score: Score,
    compare: Callable[[Tensor, Tensor], Tensor],
    align: Align,
    mask: Tensor | None,
    state: Any,
    window: Window | None,
    *,
    weights: bool,
) -> Attended:
    """The three steps, in float32 at least; with a window, on each query's own few keys."""
    num_keys, dtype = keys.shape[-2], values.dtype
    with _without_autocast(values.device):
        if window is not None:
            projected = projected.unsqueeze(-2)
            keys, values = rows(keys, window.index), rows(values, window.index)
            mask = window.allowed(mask, num_keys).unsqueeze(-2)
        projected, keys, values = widen(projected), widen(keys), widen(values)
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


def _recall_nothing(query: Tensor | None, memory: Memory, *, weights: bool, state: Any, **options: Any) -> Attended:
    """A memory without keys is one key that may not be attended to."""
    keys, values = (functional.pad(part, (0, 0, 0, 1)) for part in (memory.keys, memory.values))
    closed = torch.zeros(1, 1, dtype=torch.bool, device=values.device)
    # A state with a weight per key (there are none) has nothing to say.
    last = None if isinstance(state, Tensor) else state
    attended = recall(query, Memory(keys, values, closed), weights=weights, state=last, **options)
    next_state = attended.state[..., :0] if isinstance(attended.state, Tensor) else attended.state
    asked = None if attended.weights is None else attended.weights[..., :0]
    return replace(attended, weights=asked, state=next_state)


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
        mask = _mask_with_two_lead_axes(mask | ~is_open, lead)
    dtype, (width, value_width) = values.dtype, (query.shape[-1], values.shape[-1])
    if (query.dtype != dtype or keys.dtype != dtype) and not torch.is_autocast_enabled(values.device.type):
        query, keys = query.to(dtype), keys.to(dtype)
    if width != value_width:
        # The lean backends want one number of features; zeros change neither the products nor what is read.
        query, keys = (functional.pad(part, (0, max(0, value_width - width))) for part in (query, keys))
        values = functional.pad(values, (0, max(0, width - value_width)))
    query, keys, values = (_with_two_lead_axes(part) for part in (query, keys, values))
    with _without_cudnn(query):
        context = functional.scaled_dot_product_attention(query, keys, values, mask, is_causal=causal, scale=scale)
    context = context if width <= value_width else context[..., :value_width]
    context = context.reshape(*lead, num_queries, value_width).to(dtype)
    return context if is_open is None else context.masked_fill(~is_open, 0)


def _without_cudnn(query: Tensor) -> AbstractContextManager[object]:
    """cuDNN's attention builds a plan for every new shape: with sentences as they come, that is most batches."""
    is_eligible = query.is_cuda and (query.dtype != torch.float32 or torch.is_autocast_enabled("cuda"))
    return _cudnn_put_aside() if is_eligible and torch.backends.cuda.cudnn_sdp_enabled() else nullcontext()


@contextmanager
def _cudnn_put_aside() -> Iterator[None]:
    torch.backends.cuda.enable_cudnn_sdp(False)
    try:
        yield
    finally:
        torch.backends.cuda.enable_cudnn_sdp(True)


def _with_two_lead_axes(tensor: Tensor) -> Tensor:
    """(b, h, ..., ...), which is what torch's fused kernels take; whatever the leading axes are."""
    if tensor.ndim in (3, 4):
        return tensor if tensor.ndim == 4 else tensor.unsqueeze(1)
    lead = tensor.shape[:-2]
    return tensor.reshape(lead[:-1].numel(), lead[-1] if lead else 1, *tensor.shape[-2:])


def _mask_with_two_lead_axes(mask: Tensor, lead: torch.Size) -> Tensor:
    """The same for a mask, whose axes of size 1 stay so where they can: a mask for all heads is not written out."""
    mask = mask.view(*(1,) * (len(lead) + 2 - mask.ndim), *mask.shape)
    if len(lead) == 1:
        return mask.unsqueeze(1)
    return mask if len(lead) == 2 else _with_two_lead_axes(mask.expand(*lead, -1, -1))


def _over_keys(mask: Tensor | None, num_keys: int) -> Tensor | None:
    """With an axis for the queries, and the whole axis of the keys, along which alignments count."""
    if mask is None:
        return None
    mask = torch.atleast_2d(mask)
    return mask.expand(*mask.shape[:-1], num_keys)


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
