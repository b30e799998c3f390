"""What search needs of a model, whatever computes it: the next step, and the rows of a state."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float

from regard.search.log_probs import LogProbs


@dataclass(frozen=True)
class Predicted:
    """What a model predicts after one token of each hypothesis."""

    log_probs: LogProbs
    state: Any
    """The state after the token, of any kind."""
    weights: Any
    """The attention of the step, a row for each hypothesis, of any kind; None for a model without attention."""


@runtime_checkable
class Steps(Protocol):
    """A model that predicts token by token, with states that only itself looks into."""

    def step(self, tokens: Sequence[int], state: Any) -> Predicted:
        """Read the last token of each hypothesis, and predict the next."""

    def select(self, state: Any, rows: Sequence[int], *, same_inputs: bool = False) -> Any:
        """The rows of a state in this order: search drops, repeats and reorders hypotheses with it.

        With `same_inputs`, each selected row belongs to the same input as the row whose place it takes.
        """

    def source_mask(self, state: Any) -> Bool[np.ndarray, "b n"] | None:
        """Which source positions exist; None if all of them do."""

    def stack(self, weights: Sequence[Any]) -> Float[np.ndarray, "m n"]:
        """Rows of `Predicted.weights` as one array."""

    def random(self, seed: int | None) -> np.random.Generator:
        """What samples are drawn with; without a seed, anew each time."""
