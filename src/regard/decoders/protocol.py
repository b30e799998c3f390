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


def select(state: State, rows: Int[Tensor, "r"]) -> State:
    """The state of these rows of the batch, in this order; how search drops, repeats and reorders hypotheses."""
    selected: State = _map_tensors(state, lambda tensor: tensor.index_select(0, rows))
    return selected


def _map_tensors(value: Any, function: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, tuple):
        return tuple(_map_tensors(part, function) for part in value)
    if is_dataclass(value) and not isinstance(value, type):
        changed = {part.name: _map_tensors(getattr(value, part.name), function) for part in fields(value)}
        return replace(value, **changed)
    return value
