"""The contract of a decoder, which is all that search needs.

    state = decoder.start(encoded)
    step = decoder.step(token, state)      # logits of the next token, the new state, and the attention of this step

Teacher forcing computes the same for a whole target at once: `decoder(encoded, target)`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Literal, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.align import Soft
from regard.attention.memory import Attended
from regard.encoders.encoded import Encoded
from regard.errors import OptionError

Override = Float[Tensor, "b 1 n"] | None
Weights = bool | Literal["all"]
"""Which attention weights teacher forcing returns: none, those of `Unrolled.weights`, or also all layers and heads."""
State = TypeVar("State")
OF_INPUT = {"of_input": True}
"""Marks a field of a state that depends on the input alone, such as its memory: all hypotheses of an input share it."""


@dataclass(frozen=True)
class Step:
    """The result of one decoding step."""

    logits: Float[Tensor, "b y"]
    state: Any
    attended: Attended | None
    """The attention of this step, with weights (b, 1, n); None for a decoder without attention."""


@dataclass(frozen=True)
class Unrolled:
    """The result of teacher forcing over a whole target: the inputs of the output layer, and the attention."""

    features: Float[Tensor, "b m f"]
    """`decoder.output` turns these into logits."""
    weights: Float[Tensor, "b m n"] | None = None
    log_prob: Float[Tensor, "b m"] | None = None
    """Hard attention: the log-probability of each choice."""
    entropy: Float[Tensor, "b m"] | None = None
    """Hard attention: the entropy of each distribution."""
    overlap: Float[Tensor, "b m"] | None = None
    """Coverage: how much of the attention of each step falls on keys that were attended to before."""
    gates: Float[Tensor, "b m"] | None = None
    """Captions: the share of the image in the context of each step."""
    distribution: Float[Tensor, "b m n"] | None = None
    """Show, Attend and Tell with hard attention: the distributions from which keys were chosen."""
    self_maps: tuple[Float[Tensor, "b h m m"], ...] = ()
    """Transformer with weights="all": the self-attention of each layer and head."""
    source_maps: tuple[Float[Tensor, "b h m n"], ...] = ()
    """Transformer with weights="all": the attention of each layer and head to the source."""


class Decoder(nn.Module):
    """A decoder over a vocabulary; subclasses define `start`, `step` and `forward`."""

    output: Callable[[Tensor], Tensor]
    """The output layer, from features to logits; it is separate so that training can skip the padding."""

    def start(self, encoded: Encoded) -> Any:
        """Return the state before the first token, made of what `select` can reorder."""
        raise TypeError(f"{type(self).__name__} must define start(encoded).")

    def step(self, token: Int[Tensor, "b"], state: Any, *, override: Override = None) -> Step:
        """Read a token and predict the next one.

        `override` (b, 1, n) replaces the attention weights of this step: the context is read with it, `Step.attended`
        reports it, and everything that follows (the logits, the state, coverage) is computed as if the model had
        attended there. Its rows need not sum to 1; padding keeps weight 0. A Transformer applies it to every head of
        the layer that it reports, and its other layers attend as usual. A decoder without attention ignores it.
        """
        raise TypeError(f"{type(self).__name__} must define step(token, state, *, override=None).")

    def forward(
        self, encoded: Encoded, target: Int[Tensor, "b m"], *, weights: Weights = False, soft: Soft = False
    ) -> Unrolled:
        """Predict after each token of the target, given the true tokens before it (teacher forcing).

        `weights` asks for the attention weights; "all" also for those of every layer and head. `soft` lets hard
        attention read softly in this call, for the whole batch or for each row (b,).
        """
        raise TypeError(f"{type(self).__name__} must define forward(encoded, target, *, weights=False, soft=False).")

    def source_mask(self, state: Any) -> Bool[Tensor, "b n"] | None:
        """Return which source positions exist, for the coverage penalty of search; None if all of them do."""
        return None


def select(state: State, rows: Int[Tensor, "r"], *, same_inputs: bool = False) -> State:
    """Select rows of a state's batch, in this order; search drops, repeats and reorders hypotheses with it.

    A state is a tensor, batch first, or a tuple, list, dict or dataclass of states; None, numbers and texts are the
    same for all rows.

    With `same_inputs`, each selected row belongs to the same input as the row whose place it takes, so that fields
    marked OF_INPUT are kept.
    """
    selected: State = _select(state, rows, same_inputs)
    return selected


def _select(value: Any, rows: Tensor, same_inputs: bool) -> Any:
    if isinstance(value, Tensor):
        return value.index_select(0, rows)
    if isinstance(value, (tuple, list)):
        parts = []
        for part in value:
            parts.append(_select(part, rows, same_inputs))
        return tuple(parts) if type(value) is tuple else _like(value, parts)
    if isinstance(value, dict):
        return {name: _select(part, rows, same_inputs) for name, part in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        moved = {}
        for part in fields(value):
            if not (same_inputs and part.metadata == OF_INPUT):
                moved[part.name] = _select(getattr(value, part.name), rows, same_inputs)
        return replace(value, **moved)
    return None if value is None else _shared(value)


def _like(value: Any, parts: list[Any]) -> Any:
    """The parts as a list, a tuple or a named tuple, as the value is."""
    return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)


def _shared(value: Any) -> Any:
    """Return a part of a state that is the same for all rows; refuse what has rows that search could not reorder."""
    if value is None or isinstance(value, (int, float, str)):
        return value
    raise OptionError(
        f"The state of a decoder holds a {type(value).__name__}, whose rows cannot be selected. A state is made of "
        "tensors, batch first, in tuples, lists, dicts or dataclasses; None, numbers and texts are the same for all "
        "rows."
    )


def join(states: Sequence[Any]) -> Any:
    """One state whose batch has the rows of several states of the same `sizes`."""
    first = states[0]
    if isinstance(first, Tensor):
        return torch.cat(list(states))
    if isinstance(first, (tuple, list)):
        return _like(first, [join(parts) for parts in zip(*states, strict=True)])
    if isinstance(first, dict):
        return {name: join([each[name] for each in states]) for name in first}
    if is_dataclass(first) and not isinstance(first, type):
        return replace(
            first, **{part.name: join([getattr(each, part.name) for each in states]) for part in fields(first)}
        )
    return _shared(first)


def sizes(state: Any) -> Any:
    """All sizes of a state but that of its batch; only states that are equal in them can be joined."""
    if isinstance(state, Tensor):
        return state.shape[1:]
    if isinstance(state, (tuple, list)):
        return [sizes(part) for part in state]
    if isinstance(state, dict):
        return {name: sizes(part) for name, part in state.items()}
    if is_dataclass(state) and not isinstance(state, type):
        return [sizes(getattr(state, part.name)) for part in fields(state)]
    return state
