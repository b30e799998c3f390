"""Search with an exported decoder: its graph computes a step of all hypotheses in one call."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from regard.runtime.session import Session
from regard.search.log_probs import ArrayLogProbs
from regard.search.steps import Predicted

MEMORY, PAST, PRESENT = "memory.", "past.", "present."
"""How the names begin of what depends on the input alone, of the state before a step, and of the state after it."""


@dataclass(frozen=True)
class GraphState:
    """The state of an exported decoder between steps."""

    memory: Mapping[str, np.ndarray]
    """What depends on the input alone, a row for each input."""
    past: Mapping[str, np.ndarray]
    """What changes from step to step, a row for each hypothesis."""
    owners: tuple[int, ...]
    """The row of the memory that each hypothesis belongs to: equally many for each, one after another."""
    mask: Bool[np.ndarray, "b n"] | None = None
    """Which positions of the inputs exist, before the first step; None if all of them do."""


class GraphSteps:
    """An exported decoder as search uses it."""

    def __init__(self, decoder: Session) -> None:
        self.decoder = decoder

    @staticmethod
    def begin(encoded: Mapping[str, np.ndarray], mask: Bool[np.ndarray, "b n"] | None = None) -> GraphState:
        """The state before the first token, from the outputs of the graph of the encoder."""
        memory = {name: value for name, value in encoded.items() if name.startswith(MEMORY)}
        past = {name: value for name, value in encoded.items() if name.startswith(PAST)}
        return GraphState(memory, past, tuple(range(len(next(iter(encoded.values()))))), mask)

    def run(self, tokens: Sequence[int], state: GraphState) -> tuple[dict[str, np.ndarray], GraphState]:
        """All outputs of a step, and the state after it."""
        given = {"input_ids": np.array(tokens, np.int64), **state.memory, **state.past}
        found = self.decoder(given)
        past = {PAST + name.removeprefix(PRESENT): found[name] for name in found if name.startswith(PRESENT)}
        return found, GraphState(state.memory, past, state.owners)

    def step(self, tokens: Sequence[int], state: GraphState) -> Predicted:
        """Read the last token of each hypothesis, and predict the next."""
        found, after = self.run(tokens, state)
        return Predicted(ArrayLogProbs(found["log_probs"]), after, found.get("attention"))

    def select(self, state: GraphState, rows: Sequence[int], *, same_inputs: bool = False) -> GraphState:
        """The rows of a state in this order."""
        chosen = np.array(rows, np.int64)
        past = {name: value[chosen] for name, value in state.past.items()}
        if same_inputs:
            return GraphState(state.memory, past, state.owners)
        groups = [(owner, len(list(group))) for owner, group in groupby(state.owners[row] for row in rows)]
        if len({count for _, count in groups}) > 1:  # then each hypothesis is an input of its own
            groups = [(state.owners[row], 1) for row in rows]
        inputs = [owner for owner, _ in groups]
        memory = state.memory
        if inputs != list(range(len(next(iter(memory.values()), ())))):
            memory = {name: value[np.array(inputs, np.int64)] for name, value in memory.items()}
        return GraphState(memory, past, tuple(place for place, (_, count) in enumerate(groups) for _ in range(count)))

    def source_mask(self, state: GraphState) -> Bool[np.ndarray, "b n"] | None:
        """Which positions of the inputs exist, of a state before the first step."""
        return state.mask

    def stack(self, weights: Sequence[Any]) -> Float[np.ndarray, "m n"]:
        """Rows of attention weights as one array."""
        return np.stack(list(weights))

    def random(self, seed: int | None) -> np.random.Generator:
        """What samples are drawn with; without a seed, anew each time."""
        return np.random.default_rng(seed)
