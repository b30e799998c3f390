"""Alignments: turn logits into a focus, over all keys or within a window, softly or hard.

An alignment may first restrict each query to a window of keys, and then turns logits into weights. A plain function
(logits, mask) -> weights serves as an alignment too. Each alignment declares its properties (normalised, equivariant,
differentiable), and the property tests read them.
"""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn
from torch.nn import functional

from regard.arguments import checked
from regard.attention.mask import unpadded_length
from regard.attention.window import Mask, Window
from regard.config import Count, PositiveFloat, PositiveInt
from regard.errors import OptionError, ShapeError
from regard.kernels.numerics import masked_softmax, take_rows, widen

__all__ = [
    "ALIGNMENTS",
    "Addressing",
    "Align",
    "Focus",
    "Hard",
    "Local",
    "LocalBell",
    "LocalMonotonic",
    "LocalPredictive",
    "Normalised",
    "Softmax",
    "Sparsemax",
    "Spatial",
    "Uniform",
    "Unnormalised",
    "Window",
    "masked_softmax",
    "none",
    "normalised",
    "softmax",
    "sparsemax",
    "uniform",
]


def __dir__() -> list[str]:
    return __all__


Query = Shaped[Tensor, "... q d"]
Logits = Float[Tensor, "... q k"]
Soft = bool | Bool[Tensor, "b"]
"""Whether hard attention reads softly in this call: for the whole batch, or for each of its rows."""


@dataclass(frozen=True)
class Focus:
    """Where each query looks: the weights of the keys, or the index of the one chosen key."""

    weights: Float[Tensor, "... q k"] | None = None
    index: Int[Tensor, "... q"] | None = None
    """The chosen key; -1 where no key may be attended to."""
    log_prob: Float[Tensor, "... q"] | None = None
    state: Any = None
    extras: dict[str, Any] = field(default_factory=dict)

    def read(self, values: Float[Tensor, "... k v"], dropout: float = 0.0) -> Float[Tensor, "... q v"]:
        """Return the weighted average of the values, or the chosen value, after dropout of the weights."""
        if self.weights is not None:
            return (functional.dropout(self.weights, dropout) if dropout else self.weights) @ values
        if self.index is None:
            raise TypeError("A Focus needs weights or an index.")
        closed = (self.index < 0).unsqueeze(-1)
        chosen = take_rows(values, self.index.clamp_min(0)).masked_fill(closed, 0)
        return chosen * functional.dropout(torch.ones_like(closed, dtype=values.dtype), dropout) if dropout else chosen

    def all_weights(self, num_keys: int) -> Float[Tensor, "... q k"]:
        """Return the weights, one-hot where one key was chosen."""
        if self.weights is not None:
            return self.weights
        assert self.index is not None  # noqa: S101 - `read` says so
        return (self.index.unsqueeze(-1) == torch.arange(num_keys, device=self.index.device)).float()


class Align(nn.Module):
    """Base class of all alignments: turns logits into a focus. Subclasses define `weigh`.

    A plain function (logits, mask) -> weights serves as an alignment too.
    """

    is_shared: bool = False
    """Whether this object is one of the package's own, such as `align.softmax`, which models copy."""
    is_built_in: bool = True
    """Whether the class is one of the package's own; what `weigh` returns is checked and masked for all others."""

    normalised: bool = True
    """Weights are not negative and sum to 1, or to 0 where nothing may be attended to."""
    equivariant: bool = True
    """Permuting the keys permutes the weights."""
    differentiable: bool = True
    """Gradients reach the logits through the context."""
    uses_scores: bool = True
    """Whether the focus depends on the logits; otherwise they are not computed."""
    query_dim: int | None = None
    """Number of query features; None accepts any number."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.is_built_in = cls.__module__ == __name__
        if not cls.is_built_in and "weigh" in vars(cls):
            _check_signature(cls)

    def choose_window(self, query: Shaped[Tensor, "... q d"], num_keys: int, mask: Mask, state: Any) -> Window | None:
        """Return the window of keys that each query sees; None if it sees all keys."""
        return None

    def start_at(self, step: int) -> Any:
        """Return the state after `step` queries, with which a causal call starts that has keys of the past.

        For an alignment that counts its queries; otherwise None.
        """
        return None

    def state_after(self, weights: Float[Tensor, "... q k"], state: Any) -> Any:
        """Return the state after an `override` with these weights; None for an alignment without a state.

        It is called only where `override` replaces the weights, in place of `weigh`, which returns the state in its
        Focus.
        """
        return None

    def weigh(
        self, logits: Float[Tensor, "... q k"], allowed: Mask, state: Any, window: Window | None, *, soft: Soft = False
    ) -> Focus:
        """Turn logits into a focus.

        `allowed` is the mask, if there is one; its True entries may be attended to. `state` is the state of the last
        focus, and the `state` of the Focus is passed to the next call. With a window, each query has its own keys:
        logits are (..., q, 1, w). `soft` asks hard attention to read softly in this call; other alignments ignore it.
        """
        raise OptionError(f"{type(self).__name__} must define weigh(logits, allowed, state, window, *, soft=False).")


def _check_signature(cls: type[Align]) -> None:
    """Check that the `weigh` of a user's class takes what it is called with."""
    try:
        signature = inspect.signature(cls.weigh)
    except ValueError:
        return
    try:
        signature.bind(None, None, None, None, None, soft=False)
    except TypeError as error:
        raise OptionError(
            f"{cls.__name__}.weigh{signature} does not take what it is called with: {error}. Define it as "
            "weigh(self, logits, allowed, state, window, *, soft=False) -> Focus."
        ) from None


class AlignFunction(Align):
    """A plain function (logits, mask) -> weights as an alignment; `mask` is None where everything is allowed.

    Its properties are unknown, so it declares the weakest ones. Masked keys get weight 0 in any case.
    """

    normalised = False
    equivariant = False

    def __init__(self, function: Callable[[Tensor, Tensor | None], Tensor]) -> None:
        super().__init__()
        if not callable(function):
            raise OptionError(f"An alignment must be a function (logits, mask) -> weights; got {function!r:.80}.")
        self.function = function

    def weigh(
        self, logits: Float[Tensor, "... q k"], allowed: Mask, state: Any, window: Window | None, *, soft: Soft = False
    ) -> Focus:
        """Call the function and set the weights of masked keys to 0."""
        weights = self.function(logits, allowed)
        name = getattr(self.function, "__name__", type(self.function).__name__)
        if not isinstance(weights, Tensor) or not weights.is_floating_point() or weights.shape != logits.shape:
            given = f"{weights.dtype} {tuple(weights.shape)}" if isinstance(weights, Tensor) else type(weights).__name__
            raise ShapeError(
                f"The alignment {name} returned {given} for logits {tuple(logits.shape)}; it must return weights of "
                "that shape. For a state or a window, write a subclass of regard.align.Align that defines weigh(...)."
            )
        return Focus(weights if allowed is None else weights.masked_fill(~allowed, 0))


class Softmax(Align):
    """Soft attention over all keys: exp(logit_i) / sum_j exp(logit_j) (Bahdanau et al. 2015, section 3.1)."""

    def weigh(self, logits: Logits, allowed: Mask, state: Any, window: Window | None, *, soft: Soft = False) -> Focus:
        """Compute the softmax over the allowed keys."""
        return Focus(masked_softmax(logits, allowed))


class Unnormalised(Align):
    """The scores themselves as weights: context = sum_i score(q, k_i) v_i.

    With `score.equality` this is a database look-up: a query that matches two rows reads the sum of both.
    """

    normalised = False

    def weigh(self, logits: Logits, allowed: Mask, state: Any, window: Window | None, *, soft: Soft = False) -> Focus:
        """Return the scores, with 0 for masked keys and for scores of minus infinity."""
        closed = logits == -math.inf
        return Focus(logits.masked_fill(closed if allowed is None else closed | ~allowed, 0))


class Normalised(Align):
    """Scores divided by their sum, for scores that are never negative, such as look-ups: the mean of the matches.

    A negative score is an error on a CPU; on a GPU and in compiled code, the weights of its query are NaN.
    """

    def weigh(self, logits: Logits, allowed: Mask, state: Any, window: Window | None, *, soft: Soft = False) -> Focus:
        """Return score_i / sum_j score_j, and 0 where nothing matches."""
        scores = logits if allowed is None else logits.masked_fill(~allowed, 0)
        is_negative = scores.detach() < 0
        if scores.device.type != "cpu" or torch.compiler.is_compiling():
            # Reading them would wait for all work queued on a GPU, and break the graph of torch.compile.
            scores = scores.masked_fill(is_negative, math.nan)
        elif is_negative.any():
            raise OptionError(
                "align.normalised takes scores that are 0 or more; the smallest here is "
                f"{scores.min().item():.4g}. Use align.softmax for scores of either sign."
            )
        total = scores.sum(-1, keepdim=True)
        return Focus(scores / total.masked_fill(total == 0, 1))


class Uniform(Align):
    """Equal weights for all allowed keys, independent of the scores: a baseline for learned attention."""

    uses_scores = False

    def weigh(self, logits: Logits, allowed: Mask, state: Any, window: Window | None, *, soft: Soft = False) -> Focus:
        """Return 1 / n for each of the n allowed keys."""
        return Focus(masked_softmax(torch.zeros_like(logits), allowed))


class Sparsemax(Align):
    """Projection of the logits onto the simplex, which gives most keys exactly 0 (Martins and Astudillo 2016)."""

    def weigh(self, logits: Logits, allowed: Mask, state: Any, window: Window | None, *, soft: Soft = False) -> Focus:
        """Compute sparsemax over the allowed keys."""
        closed = logits == -math.inf
        closed = closed if allowed is None else closed | ~allowed
        # Sparsemax is invariant to adding a constant to all logits, and a key 2 below the best gets exactly 0.
        best = logits.detach().masked_fill(closed, -math.inf).amax(-1, keepdim=True)
        below = (logits - torch.where(best > -math.inf, best, 0)).masked_fill(closed, -2)
        return Focus(project_onto_simplex(below).masked_fill(closed, 0))


def project_onto_simplex(logits: Logits) -> Logits:
    """Compute max(logits - threshold, 0) with the threshold at which the sum is 1 (algorithm 1 of the paper).

    With the logits in falling order, 1 + k z_k > z_1 + ... + z_k holds for the k keys that get a weight.
    """
    ordered = logits.sort(-1, descending=True).values
    excess = ordered.cumsum(-1) - 1
    ranks = torch.arange(1, logits.shape[-1] + 1, device=logits.device)
    support = (ranks * ordered > excess).sum(-1, keepdim=True).clamp_min(1)  # at least 1 where logits are NaN
    return torch.relu(logits - excess.gather(-1, support - 1) / support)


class Hard(Align):
    """Hard attention: one key per query, sampled from the softmax in training, the most likely one in evaluation.

    A sampled focus has a log-probability, for REINFORCE (Xu et al. 2015, section 4.1), and extras["entropy"], the
    entropy of the distribution, for an entropy bonus. The most likely key requires neither a softmax nor a sum over
    values. `sample=True` or `sample=False` overrides the choice by mode. `generator` makes sampling reproducible.

    With `temperature`, training uses straight-through Gumbel-softmax (Jang et al. 2017): one-hot weights in the forward
    pass, the gradient of the tempered softmax in the backward pass.

    A call with `soft=True` reads with the whole softmax in training mode, as soft attention does: a warm start, since
    early random choices earn too little reward to learn from. `soft` may be a bool tensor (b,), one entry per row of
    the batch: Xu et al. (section 4.1) decide for each row at random. A soft row has log-probability 0. Evaluation is
    always hard.
    """

    @checked
    def __init__(
        self,
        *,
        sample: bool | None = None,
        temperature: PositiveFloat | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if generator is not None and not isinstance(generator, torch.Generator):
            raise OptionError(f"generator must be a torch.Generator; got {generator!r:.80}.")
        self.sample, self.temperature, self.generator = sample, temperature, generator
        self.differentiable = temperature is not None

    def weigh(self, logits: Logits, allowed: Mask, state: Any, window: Window | None, *, soft: Soft = False) -> Focus:
        """Choose a key for each query, as an index or as one-hot weights with a gradient."""
        if self.training and soft is True:
            return Focus(masked_softmax(logits, allowed))
        is_sampled = self.training if self.sample is None else self.sample
        soft_rows = soft if self.training and isinstance(soft, Tensor) else None
        if allowed is None and not is_sampled and soft_rows is None:
            index = logits.detach().argmax(-1)
            return Focus(index=index, extras={"index": index})
        if allowed is not None:
            logits = logits.masked_fill(~allowed, -math.inf)
        best, index = logits.detach().max(-1)
        is_open = best > -math.inf
        logits = logits.masked_fill(~is_open.unsqueeze(-1), 0)
        hard = self._sampled(logits, is_open) if is_sampled else _chosen(index, is_open)
        return hard if soft_rows is None else _softened(hard, logits, is_open, soft_rows)

    def _sampled(self, logits: Logits, is_open: Bool[Tensor, "... q"]) -> Focus:
        """Draw a key for each query; `is_open` says which queries may attend to a key."""
        # argmax(logit + Gumbel noise) is a draw from the softmax, and -log of an exponential draw is Gumbel noise.
        noise = -torch.empty_like(logits).exponential_(generator=self.generator).log()
        index = (logits.detach() + noise).argmax(-1)
        log_weights = functional.log_softmax(logits, dim=-1)
        log_prob = log_weights.gather(-1, index.unsqueeze(-1)).squeeze(-1).masked_fill(~is_open, 0)
        possible = log_weights.masked_fill(log_weights == -math.inf, 0)
        entropy = -(log_weights.exp() * possible).sum(-1).masked_fill(~is_open, 0)
        chosen = replace(_chosen(index, is_open), log_prob=log_prob)
        chosen.extras["entropy"] = entropy
        if not self.training or self.temperature is None:
            return chosen
        tempered = torch.softmax((logits + noise) / self.temperature, dim=-1)
        one_hot = torch.zeros_like(tempered).scatter(-1, index.unsqueeze(-1), 1)
        straight_through = one_hot + (tempered - tempered.detach())
        return replace(chosen, weights=straight_through.masked_fill(~is_open.unsqueeze(-1), 0), index=None)


def _chosen(index: Int[Tensor, "... q"], is_open: Bool[Tensor, "... q"]) -> Focus:
    index = index.masked_fill(~is_open, -1)
    return Focus(index=index, extras={"index": index})


def _softened(hard: Focus, logits: Logits, is_open: Bool[Tensor, "... q"], soft: Tensor) -> Focus:
    """Give the rows of the batch in which `soft` is True the weights of the softmax, and log-probability 0."""
    if soft.shape != is_open.shape[:1]:
        raise ShapeError(
            f"`soft` must be a bool or a bool tensor ({is_open.shape[0]},), one entry per row of the batch; "
            f"got shape {tuple(soft.shape)}."
        )
    is_soft = soft.view(-1, *[1] * (is_open.ndim - 1)).expand_as(is_open)
    weights = functional.log_softmax(logits, dim=-1).exp().masked_fill(~is_open.unsqueeze(-1), 0)
    mixed = torch.where(is_soft.unsqueeze(-1), weights, hard.all_weights(logits.shape[-1]).to(weights.dtype))
    log_prob = None if hard.log_prob is None else hard.log_prob.masked_fill(is_soft, 0)
    return Focus(mixed, log_prob=log_prob, extras=hard.extras)


class Local(Align):
    """Base class: each query sees the keys within `window` positions of its own centre, with softmax among them.

    `extras["centre"]` is the centre, among keys counted from 0.
    """

    equivariant = False
    window: int
    """Number of positions that a query sees on each side of its centre."""

    def centre(self, query: Query, num_keys: int, mask: Mask, state: Any) -> Float[Tensor, "... q"]:
        """Return the centre of each query's window, among keys counted from 0."""
        raise TypeError(f"{type(self).__name__} must define centre(query, num_keys, mask, state).")

    @property
    def sigma(self) -> float | None:
        """Standard deviation of the Gaussian that damps weights away from the centre; None for no Gaussian."""
        return None

    def choose_window(self, query: Query, num_keys: int, mask: Mask, state: Any) -> Window | None:
        """Return the window around the centre."""
        return Window.around(self.centre(query, num_keys, mask, state), self.window, num_keys)

    def next_state(self, num_queries: int, state: Any) -> Any:
        """Return the state after `num_queries` more queries; None for an alignment without a state."""
        return None

    def state_after(self, weights: Float[Tensor, "... q k"], state: Any) -> Any:
        """Return the state after the queries of these weights."""
        return self.next_state(weights.shape[-2], state)

    def weigh(self, logits: Logits, allowed: Mask, state: Any, window: Window | None, *, soft: Soft = False) -> Focus:
        """Compute the softmax inside the window, times the Gaussian around its centre if there is one."""
        assert window is not None  # noqa: S101 - `choose_window` returns one
        weights = masked_softmax(logits, allowed)
        if self.sigma is not None:
            gaussian = torch.exp(-window.offset.square() / (2 * self.sigma**2)).unsqueeze(-2)
            weights = weights * gaussian.to(logits.dtype)
        return Focus(weights, state=self.next_state(logits.shape[-3], state), extras={"centre": window.centre})


class LocalMonotonic(Local):
    """local-m: query t sees the keys t - window .. t + window, with softmax among them.

    The state is the number of queries so far. A decoder that asks one query at a time passes it on:
    attention(query, memory, state=last.state).
    """

    @checked
    def __init__(self, window: Count = 10) -> None:
        super().__init__()
        self.window = window

    def centre(self, query: Query, num_keys: int, mask: Mask, state: Any) -> Float[Tensor, "... q"]:
        """Return the time step of each query: 0, 1, 2, ..., or continuing from the state."""
        # Half precision cannot count far: bfloat16 cannot represent 257.
        dtype = torch.float64 if query.dtype == torch.float64 else torch.float32
        times = torch.arange(query.shape[-2], device=query.device, dtype=dtype)
        return (times + (state or 0)).expand(query.shape[:-1])

    def start_at(self, step: int) -> Any:
        """Return the number of queries so far."""
        return step

    def next_state(self, num_queries: int, state: Any) -> Any:
        """Add `num_queries` to the number of queries so far."""
        return (state or 0) + num_queries


class LocalPredictive(Local):
    """local-p: the model predicts where to look, p_t = n sigmoid(v' tanh(W s_t)), n being the unpadded length.

    Softmax inside [p_t - window, p_t + window], times exp(-(s - p_t)^2 / (2 sigma^2)) with sigma = window / 2,
    positions s counted from 1 and weights not renormalised, as in the paper. Gradients reach p_t through the Gaussian.
    `extras["centre"]` is p_t - 1: the centre among keys counted from 0. n is one past the last key that a query may
    attend to, so a mask that excludes the end for some queries shortens their source.
    """

    normalised = False

    @checked
    def __init__(self, query_dim: PositiveInt, dim: PositiveInt | None = None, window: PositiveInt = 10) -> None:
        super().__init__()
        self.window = window
        self.query_dim = query_dim
        self.layer = nn.Linear(query_dim, dim or query_dim, bias=False)
        self.direction = nn.Linear(dim or query_dim, 1, bias=False)

    @property
    def sigma(self) -> float:
        """Half the window, as in the paper."""
        return self.window / 2

    def centre(self, query: Query, num_keys: int, mask: Mask, state: Any) -> Float[Tensor, "... q"]:
        """Predict the centre from the query."""
        share = torch.sigmoid(widen(self.direction(torch.tanh(self.layer(query))))).squeeze(-1)
        length = num_keys if mask is None else unpadded_length(mask)
        centre: Tensor = length * share - 1
        return centre


class LocalBell(LocalPredictive):
    """local-p as one lecture writes it: the softmax over all keys, times the Gaussian around p_t.

    The paper takes the softmax inside the window (`LocalPredictive`). Here the Gaussian alone makes it local, so that
    all keys are scored, and the weights sum to less.
    """

    def choose_window(self, query: Query, num_keys: int, mask: Mask, state: Any) -> Window | None:
        """Return windows of all keys, with their distances from the centre."""
        centre = self.centre(query, num_keys, mask, state)
        index = torch.arange(num_keys, device=centre.device).expand(*centre.shape, num_keys)
        return Window(index, torch.ones_like(index, dtype=torch.bool), index - centre.unsqueeze(-1), centre)


class Spatial(LocalMonotonic):
    """Equal weights for the keys within `window` of the query's own position: average pooling as attention.

    weight_ji = 1{|j - i| <= window} / sum_k 1{|j - k| <= window} (Fleuret, Deep Learning 13.1), that is local-m without
    a score.
    """

    uses_scores = False


class Addressing(Align):
    """Content-based focus, interpolated with the last focus, shifted in a circle, and sharpened.

    1. w_c = softmax(logits), with logits beta cos(key, memory) from `score.Cosine(beta)`
    2. w_g = gate w_c + (1 - gate) w_(t-1), where w_(t-1) is the state; without a state, w_g = w_c
    3. w_s(i) = sum_j w_g(i - j) shift(j), circular, for j = -max_shift .. max_shift
    4. w(i) = w_s(i)^sharpen / sum_j w_s(j)^sharpen, with sharpen >= 1

    The controller produces gate, shift and sharpen at each step, so an Addressing is created for one call. Its state
    is its weights. Under a padding mask the circle has the unpadded length.
    """

    equivariant = False
    gate: Tensor
    shift: Tensor
    sharpen: Tensor

    def __init__(
        self,
        gate: Float[Tensor, "... q 1"],
        shift: Float[Tensor, "... q s"],
        sharpen: Float[Tensor, "... q 1"],
    ) -> None:
        super().__init__()
        for name, part in [("gate", gate), ("shift", shift), ("sharpen", sharpen)]:
            if not isinstance(part, Tensor) or part.layout is not torch.strided or part.is_nested or part.ndim < 2:
                raise ShapeError(f"The {name} must be a tensor (..., q, n), one row per query; got {part!r:.60}.")
            self.register_buffer(name, part, persistent=False)
        if (steps := shift.shape[-1]) % 2 == 0:
            raise ShapeError(f"The shift has weights for -max_shift to max_shift, an odd number; got {steps}.")

    def state_after(self, weights: Float[Tensor, "... q k"], state: Any) -> Any:
        """Return the weights, which are the state."""
        return weights

    def weigh(self, logits: Logits, allowed: Mask, state: Any, window: Window | None, *, soft: Soft = False) -> Focus:
        """Run the four steps."""
        gate, shift, sharpen = (part.to(logits.dtype) for part in (self.gate, self.shift, self.sharpen))
        weights = masked_softmax(logits, allowed)
        if state is not None:
            if state.shape[-1] != weights.shape[-1]:
                raise ShapeError(
                    f"The state holds weights of {state.shape[-1]} memory slots, but the memory has "
                    f"{weights.shape[-1]}: {tuple(state.shape)} and {tuple(weights.shape)}."
                )
            weights = gate * weights + (1 - gate) * state.to(logits.dtype)
        weights = circular_shift(weights, shift, allowed)
        # The largest weight is divided out first: (1/128)^100 would underflow to 0, and give 0/0.
        weights = _over(weights, weights.amax(-1, keepdim=True)).pow(sharpen)
        weights = _over(weights, weights.sum(-1, keepdim=True))
        return Focus(weights, state=weights)


def _over(weights: Logits, total: Float[Tensor, "... q 1"]) -> Logits:
    """Divide by the total; weights that are all 0 stay so, with finite gradients."""
    return weights / total.masked_fill(total == 0, 1)


def circular_shift(
    weights: Float[Tensor, "... q k"], shift: Float[Tensor, "... q s"], allowed: Mask = None
) -> Float[Tensor, "... q k"]:
    """Compute sum_j weights((i - j) mod n) shift(j), j = -max_shift .. max_shift; n is the unpadded number of keys."""
    num_keys, max_shift = weights.shape[-1], shift.shape[-1] // 2
    length: Tensor | int = num_keys
    if allowed is not None:
        length = unpadded_length(allowed).clamp_min(1).unsqueeze(-1)
    positions = torch.arange(num_keys, device=weights.device)
    shifted = torch.zeros_like(weights)
    for column, step in enumerate(range(-max_shift, max_shift + 1)):
        source = ((positions - step) % length).expand_as(weights)
        shifted = shifted + weights.gather(-1, source) * shift[..., column : column + 1]
    return shifted if allowed is None else shifted.masked_fill(~allowed, 0)


softmax = Softmax()
none = Unnormalised()
normalised = Normalised()
sparsemax = Sparsemax()
uniform = Uniform()
for _align in (softmax, none, normalised, sparsemax, uniform):
    _align.is_shared = True

ALIGNMENTS: dict[str, type[Align]] = {
    "hard": Hard,
    "local_m": LocalMonotonic,
    "local_bell": LocalBell,
    "local_p": LocalPredictive,
    "none": Unnormalised,
    "normalised": Normalised,
    "ntm": Addressing,
    "softmax": Softmax,
    "sparsemax": Sparsemax,
    "spatial": Spatial,
    "uniform": Uniform,
}
