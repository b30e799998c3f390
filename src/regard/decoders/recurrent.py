"""The base of recurrent decoders: bahdanau.py (attention before the step), luong.py (after it, or none), captions.py.

Whatever does not depend on the recurrence is computed for the whole target at once: the projections of the embedded
words before the loop, the features for the output layer after it, and the gradients of the parameters that the loop
uses (see kernels/hoisted.py). Teacher forcing and decoding share the body of the loop, `advance`, so that both compute
the same numbers. On a GPU, training records the loop as CUDA graphs (see cuda_graphs.py).
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.align import Soft
from regard.attention.attend import Attended, Attention
from regard.attention.memory import Memory
from regard.decoders.protocol import OF_INPUT, Decoder, Override, Step, Unrolled, Weights
from regard.encoders.encoded import Encoded
from regard.kernels.cuda_graphs import KEY_MULTIPLE, ROW_MULTIPLE, STEP_MULTIPLE, GraphedLoop, pad_axes, round_up
from regard.kernels.hoisted import hoisting
from regard.layers.cells import uniform_

Pieces = tuple[Float[Tensor, "b _"], ...]


@dataclass(frozen=True)
class RecurrentState:
    """The state of a recurrent decoder between steps."""

    cells: tuple[tuple[Float[Tensor, "b _"], ...], ...]
    """The state of each layer, and what else is kept from step to step."""
    memory: Memory | None = field(metadata=OF_INPUT)
    align_state: Any = None
    """The state of the alignment."""
    fed: Float[Tensor, "b f"] | None = None
    """Luong's input feeding: the attentional vector of the last step."""
    read: Callable[[Tensor], Tensor] | None = field(default=None, metadata=OF_INPUT)
    """A kernel from a query to its context, for a loop that needs no weights."""


Body = Callable[..., tuple[RecurrentState, Pieces, Attended | None]]
"""One step of the loop: `advance`, or the part of it that must run inside the loop."""


class RecurrentDecoder(Decoder):
    """A decoder whose step is a recurrence; subclasses define `project`, `start_cells`, `advance` and `features`."""

    def __init__(
        self,
        embedding: nn.Embedding,
        *,
        summary_dim: int,
        hidden: int,
        num_layers: int,
        attention: Attention | None,
        output: nn.Module,
        dropout: float,
    ) -> None:
        super().__init__()
        self.embedding, self.hidden, self.attention, self.output = embedding, hidden, attention, output
        self.bridge = uniform_(nn.Linear(summary_dim, num_layers * hidden))
        self.dropout = nn.Dropout(dropout)
        self._graphed_loop = GraphedLoop()

    def project(self, embedded: Float[Tensor, "b m e"]) -> Float[Tensor, "b m g"]:
        """Compute the part of the gates that comes from the embedded words, for all steps at once."""
        raise TypeError(f"{type(self).__name__} must define project(embedded).")

    def advance(
        self,
        inputs: Float[Tensor, "b g"],
        state: RecurrentState,
        override: Override,
        *,
        weights: bool,
        soft: Soft = False,
    ) -> tuple[RecurrentState, Pieces, Attended | None]:
        """Run one step of the recurrence; return the new state, the pieces of the features, and the attention."""
        raise TypeError(f"{type(self).__name__} must define advance(...).")

    def features(self, embedded: Float[Tensor, "b m e"], *pieces: Float[Tensor, "b m _"]) -> Float[Tensor, "b m f"]:
        """Compute the inputs of the output layer from the pieces of all steps at once."""
        raise TypeError(f"{type(self).__name__} must define features(embedded, *pieces).")

    def start_cells(self, hidden: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], ...]:
        """Return the cell states that begin with these hidden vectors."""
        raise TypeError(f"{type(self).__name__} must define start_cells(hidden).")

    def start(self, encoded: Encoded) -> RecurrentState:
        """Return the state before the first token; the keys are projected here, once."""
        memory = None if self.attention is None else self.attention.remember(encoded.states, encoded.mask)
        hidden = torch.tanh(self.bridge(encoded.summary[:, -self.bridge.in_features :]))
        return RecurrentState(self.start_cells(hidden.split(self.hidden, dim=-1)), memory)

    def step(self, token: Int[Tensor, "b"], state: RecurrentState, *, override: Override = None) -> Step:
        """Read a token and predict the next one; `override` replaces the attention of this step."""
        embedded = self.dropout(self.embedding(token.unsqueeze(1)))
        state, pieces, attended = self.advance(self.project(embedded)[:, 0], state, override, weights=True)
        features = self.features(embedded, *(piece.unsqueeze(1) for piece in pieces))
        return Step(self.output(features)[:, 0], state, attended)

    def forward(
        self, encoded: Encoded, target: Int[Tensor, "b m"], *, weights: Weights = False, soft: Soft = False
    ) -> Unrolled:
        """Predict after each token of the target; weights="all" is the same as True, since there is one attention."""
        embedded = self.dropout(self.embedding(target))
        state = self.start(encoded)
        pieces, steps = self.unroll(self.advance, self.project(embedded), state, weights=bool(weights), soft=soft)
        return unrolled(self.features(embedded, *pieces), steps)

    def source_mask(self, state: RecurrentState) -> Bool[Tensor, "b n"] | None:
        """Return which source positions exist."""
        return None if state.memory is None or state.memory.mask is None else state.memory.mask[:, 0]

    def unroll(
        self,
        body: Body,
        inputs: Float[Tensor, "b m g"],
        state: RecurrentState,
        *,
        weights: bool,
        soft: Soft = False,
    ) -> tuple[tuple[Float[Tensor, "b m _"], ...], list[Attended | None]]:
        """Run the body for all steps; return its pieces, stacked along the steps, and the attention of each step."""
        if not (inputs.is_cuda and inputs.requires_grad and self._can_record(state)):
            return self._loop(body, inputs, state, weights=weights, soft=soft)
        # Only softmax attention is recorded, and it has no use for `soft`.
        if not weights or self.attention is None or state.memory is None:
            return self._recorded(body, inputs, state), []
        # The kernels of the loop return no weights; they are computed from the queries of all steps at once.
        *pieces, queries = self._recorded(body, inputs, state, queries=True)
        return tuple(pieces), [self.attention(queries, state.memory, weights=True)]

    def _loop(
        self, body: Body, inputs: Tensor, state: RecurrentState, *, weights: bool, soft: Soft
    ) -> tuple[tuple[Tensor, ...], list[Attended | None]]:
        pieces, steps = [], []
        with hoisting(self):
            for step in inputs.unbind(1):
                state, piece, attended = body(step, state, None, weights=weights, soft=soft)
                pieces.append(piece)
                steps.append(attended)
        return tuple(torch.stack(parts, dim=1) for parts in zip(*pieces, strict=True)), steps

    def _can_record(self, state: RecurrentState) -> bool:
        """Whether the loop has no attention, or one with a kernel for single steps."""
        return state.memory is None or (
            self.attention is not None and self.attention.in_steps(state.memory) is not None
        )

    def _recorded(
        self, body: Body, inputs: Tensor, state: RecurrentState, *, queries: bool = False
    ) -> tuple[Tensor, ...]:
        """Run the loop as CUDA graphs, with its sizes rounded up; the last piece are the queries if asked for."""
        (batch, length, _), memory, attention = inputs.shape, state.memory, self.attention
        rows = round_up(batch, ROW_MULTIPLE)
        tensors = [pad_axes(inputs, rows, round_up(length, STEP_MULTIPLE))]
        tensors += [pad_axes(part, rows) for cell in state.cells for part in cell]
        if memory is not None:
            keys = round_up(len(memory), KEY_MULTIPLE)
            mask = inputs.new_ones(1, 1, dtype=torch.bool) if memory.mask is None else memory.mask[:, 0]
            mask = mask.expand(batch, len(memory))
            tensors += [pad_axes(part, rows, keys) for part in (memory.keys, memory.values, mask)]

        def loop(inputs: Tensor, *parts: Tensor) -> tuple[Tensor, ...]:
            rest = iter(parts)
            here = RecurrentState(tuple(tuple(next(rest) for _ in cell) for cell in state.cells), None)
            if memory is not None and attention is not None:
                keys, values, mask = rest
                own = Memory(keys, values, mask.unsqueeze(1))
                here = replace(here, memory=own, read=attention.in_steps(own))
            pieces, steps = self._loop(body, inputs, here, weights=False, soft=False)
            asked = [step.extras["query"] for step in steps if step is not None] if queries else []
            return (*pieces, torch.cat(asked, dim=1)) if asked else pieces

        outside = ("embedding.", "output.")
        parameters = {name: part for name, part in self.named_parameters() if not name.startswith(outside)}
        outputs = self._graphed_loop(self, loop, tensors, parameters, variant=queries)
        return tuple(piece[:batch, :length] for piece in outputs)

    def look(
        self,
        query: Float[Tensor, "b h"],
        state: RecurrentState,
        override: Override,
        *,
        weights: bool,
        soft: Soft = False,
    ) -> tuple[Float[Tensor, "b c"], RecurrentState, Attended]:
        """Attend with one query; return its context, the state with that of the alignment, and the attention."""
        if self.attention is None or state.memory is None:
            raise TypeError(f"This {type(self).__name__} has no attention.")
        if state.read is not None and override is None and not weights:
            context = state.read(query)
            return context, state, Attended(context.unsqueeze(1), extras={"query": query.unsqueeze(1)})
        attended = self.attention(
            query.unsqueeze(1), state.memory, weights=weights, state=state.align_state, override=override, soft=soft
        )
        return attended.context[:, 0], replace(state, align_state=attended.state), attended


def unrolled(features: Tensor, steps: list[Attended | None]) -> Unrolled:
    """Join the attention of all steps into an `Unrolled`."""

    def joined(parts: list[Tensor | None]) -> Tensor | None:
        present = [part for part in parts if part is not None]
        return torch.cat(present, dim=1) if present else None

    attended = [step for step in steps if step is not None]
    return Unrolled(
        features,
        joined([step.weights for step in attended]),
        joined([step.log_prob for step in attended]),
        joined([step.extras.get("entropy") for step in attended]),
        joined([step.extras.get("overlap") for step in attended]),
    )
