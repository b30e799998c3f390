"""What every decoder answers, and all that search needs of one.

    state = decoder.start(encoded)
    step = decoder.step(token, state)      # logits of the next token, the new state, and what was attended to

Teacher forcing computes the same for a whole target at once: `decoder(encoded, target)`.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.attend import Attended
from regard.encoders.encoded import Encoded

Override = Float[Tensor, "b 1 n"] | None
State = TypeVar("State")
OF_INPUT = {"of_input": True}
"""Marks a field of a state that belongs to the input, such as its memory: the same for all hypotheses about it."""


@dataclass(frozen=True)
class Step:
    """One step of decoding."""

    logits: Float[Tensor, "b y"]
    state: Any
    attended: Attended | None
    """What this step attended to, with weights (b, 1, n); None for a decoder without attention."""


@dataclass(frozen=True)
class Unrolled:
    """A whole target under teacher forcing: what the output layer turns into logits, and the attention behind it."""

    features: Float[Tensor, "b m f"]
    weights: Float[Tensor, "b m n"] | None = None
    log_prob: Float[Tensor, "b m"] | None = None
    """Of hard attention: the log-probability of each choice."""
    entropy: Float[Tensor, "b m"] | None = None
    overlap: Float[Tensor, "b m"] | None = None
    """Of coverage: how much of what each step attends to was attended to before."""
    gates: Float[Tensor, "b m"] | None = None
    """Of Show, Attend and Tell: how much of what it saw each step let in."""
    chances: Float[Tensor, "b m n"] | None = None
    """Of its hard attention: the distributions that the choices were taken from."""


class Decoder(nn.Module):
    """A decoder over a vocabulary; subclasses define `start`, `step` and `forward`."""

    output: Callable[[Tensor], Tensor]
    """From features to logits; apart, so that training can leave out the padding."""

    def start(self, encoded: Encoded) -> Any:
        """The state before the first token."""
        raise TypeError(f"{type(self).__name__} does not define start(encoded).")

    def step(self, token: Int[Tensor, "b"], state: Any, *, override: Override = None) -> Step:
        """Read a token and predict the next; `override` replaces the attention of this step."""
        raise TypeError(f"{type(self).__name__} does not define step(token, state).")

    def forward(self, encoded: Encoded, target: Int[Tensor, "b m"], *, weights: bool = False) -> Unrolled:
        """Predict after each token of the target, the right ones being given."""
        raise TypeError(f"{type(self).__name__} does not define forward(encoded, target).")


def select(state: State, rows: Int[Tensor, "r"], *, same_inputs: bool = False) -> State:
    """The state of these rows of the batch, in this order; how search drops, repeats and reorders hypotheses.

    With `same_inputs`, each new row is about the same input as the row in its place was: fields OF_INPUT stay.
    """
    selected: State = _select(state, rows, same_inputs)
    return selected


def _select(value: Any, rows: Tensor, same_inputs: bool) -> Any:
    if isinstance(value, Tensor):
        return value.index_select(0, rows)
    if isinstance(value, tuple):
        return tuple(_select(part, rows, same_inputs) for part in value)
    if is_dataclass(value) and not isinstance(value, type):
        moving = [part.name for part in fields(value) if not (same_inputs and part.metadata == OF_INPUT)]
        return replace(value, **{name: _select(getattr(value, name), rows, same_inputs) for name in moving})
    return value
