"""The base of recurrent decoders: bahdanau.py (attention before the step), luong.py (after it, or none), captions.py.

Whatever does not depend on the recurrence is computed for the whole target at once: the projections of the embedded
words before the loop, the features for the output layer after it, and the gradients of the parameters that the loop
uses (see kernels/hoisted.py). Teacher forcing and decoding share the body of the loop, `advance`, so that both compute
the same numbers. On a GPU, training records the loop as CUDA graphs (see kernels/cuda_graphs.py).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from regard.attention.align import Soft
from regard.attention.attend import Attention
from regard.attention.fused import StepReader
from regard.attention.memory import Attended, Memory
from regard.decoders.protocol import OF_INPUT, Decoder, Override, Step, Unrolled, Weights
from regard.encoders.encoded import Encoded
from regard.kernels.cuda_graphs import KEY_MULTIPLE, ROW_MULTIPLE, STEP_MULTIPLE, GraphedLoop
from regard.kernels.hoisted import Columns, Hoisted, hoisting
from regard.layers.cells import uniform_

Cells = tuple[tuple[Float[Tensor, "b _"], ...], ...]
Pieces = tuple[Any, ...]
"""What a step leaves for the features, each (b, _); None for a context that `Look.contexts` computes for all steps."""

MAX_FOLDED_KEYS = 2
"""Number of keys per step up to which projecting all values once is faster than projecting the context of each step."""


@dataclass(frozen=True)
class RecurrentState:
    """The state of a recurrent decoder between steps."""

    cells: Cells
    """The state of each layer, and what else is kept from step to step."""
    memory: Memory | None = field(metadata=OF_INPUT)
    align_state: Any = None
    """The state of the alignment."""


class Look:
    """Attends once per step of a loop, `context = look(query)`, and keeps what each step attended to in `steps`.

    `state` is that of the alignment. `override` replaces the attention weights. `read` is a kernel for single steps,
    for a loop that needs no weights: its steps have the query in `extras`. With `folded`, the values that it reads are
    already projected by the layer that reads the contexts.
    """

    def __init__(
        self,
        attention: Attention | None,
        memory: Memory | None,
        state: Any = None,
        *,
        weights: bool,
        override: Override = None,
        soft: Soft = False,
        read: StepReader | None = None,
        folded: bool = False,
    ) -> None:
        self.attention, self.memory, self.state = attention, memory, state
        self.weights, self.override, self.soft, self.read, self.folded = weights, override, soft, read, folded
        self.steps: list[Attended] = []

    def __call__(self, query: Float[Tensor, "b h"]) -> Float[Tensor, "b c"]:
        """Attend with one query and return its context."""
        if self.attention is None or self.memory is None:
            raise TypeError("This decoder has no attention.")
        context: Tensor
        if self.read is not None:
            context, _ = self.read(query)
            self.steps.append(Attended(context.unsqueeze(1), extras={"query": query.unsqueeze(1)}))
            return context
        attended = self.attention.attend(
            query.unsqueeze(1),
            self.memory,
            weights=self.weights,
            state=self.state,
            override=self.override,
            soft=self.soft,
        )
        self.state = attended.state
        self.steps.append(attended)
        context = attended.context[:, 0]
        return context

    def into(self, query: Float[Tensor, "b h"], inputs: Float[Tensor, "b g"] | None) -> Float[Tensor, "b g"]:
        """Attend with one query of a folded look; return inputs + the projected context."""
        if self.read is None:
            raise TypeError("Only a recorded loop folds a layer into the values.")
        projected, weights = self.read(query, inputs)
        extras = {"query": query.unsqueeze(1)}
        self.steps.append(Attended(projected.unsqueeze(1), weights=weights.unsqueeze(1), extras=extras))
        return projected

    def contexts(self) -> Float[Tensor, "b m c"]:
        """Return the contexts of all steps of a folded look."""
        if self.memory is None:
            raise TypeError("This decoder has no memory.")
        weights = torch.cat([step.weights for step in self.steps if step.weights is not None], dim=1)
        return weights.to(self.memory.values.dtype) @ self.memory.values

    def note(self, **extras: Tensor) -> None:
        """Add to what the last step reports."""
        self.steps[-1] = replace(self.steps[-1], extras=self.steps[-1].extras | extras)


Body = Callable[[Float[Tensor, "b g"], Cells, Look], tuple[Cells, Pieces]]
"""One step of the loop: `advance`, or the part of it that must run inside the loop."""


class RecurrentDecoder(Decoder):
    """A decoder whose step is a recurrence; subclasses define `start_cells`, `advance` and `features`."""

    word_layer: nn.Linear
    """The part of the gates that comes from the embedded words."""

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
        self.graphs = GraphedLoop()

    def advance(self, inputs: Float[Tensor, "b g"], cells: Cells, look: Look) -> tuple[Cells, Pieces]:
        """Run one step of the recurrence; return the new cells and the pieces of the features."""
        raise TypeError(f"{type(self).__name__} must define advance(inputs, cells, look).")

    def features(self, embedded: Float[Tensor, "b m e"], *pieces: Float[Tensor, "b m _"]) -> Float[Tensor, "b m f"]:
        """Compute the inputs of the output layer from the pieces of all steps at once."""
        raise TypeError(f"{type(self).__name__} must define features(embedded, *pieces).")

    def folded_layer(self) -> Hoisted | Columns | None:
        """Return the layer that alone reads the contexts inside the loop, if there is one; see `Look.into`."""
        return None

    def joined_layers(self, *, folded: bool) -> list[Hoisted | Columns]:
        """Return the layers that multiply the same tensor in each step of a recorded loop."""
        return []

    def query_layers(self) -> list[Hoisted]:
        """Return the layers of the score that multiply a query."""
        parts = () if self.attention is None else self.attention.score.modules()
        return [layer for layer in parts if isinstance(layer, Hoisted)]

    def start_cells(self, hidden: tuple[Tensor, ...]) -> Cells:
        """Return the cells that begin with these hidden vectors."""
        raise TypeError(f"{type(self).__name__} must define start_cells(hidden).")

    def start(self, encoded: Encoded) -> RecurrentState:
        """Return the state before the first token; the keys are projected here, once."""
        memory = None if self.attention is None else self.attention.remember(encoded.states, encoded.mask)
        hidden = torch.tanh(self.bridge(encoded.summary[:, -self.bridge.in_features :]))
        return RecurrentState(self.start_cells(hidden.split(self.hidden, dim=-1)), memory)

    def step(self, token: Int[Tensor, "b"], state: RecurrentState, *, override: Override = None) -> Step:
        """Read a token and predict the next one; `override` replaces the attention of this step."""
        embedded = self.dropout(self.embedding(token.unsqueeze(1)))
        look = Look(self.attention, state.memory, state.align_state, weights=True, override=override)
        cells, pieces = self.advance(self.word_layer(embedded)[:, 0], state.cells, look)
        features = self.features(embedded, *(piece.unsqueeze(1) for piece in pieces))
        state = RecurrentState(cells, state.memory, look.state)
        return Step(self.output(features)[:, 0], state, look.steps[-1] if look.steps else None)

    def forward(
        self, encoded: Encoded, target: Int[Tensor, "b m"], *, weights: Weights = False, soft: Soft = False
    ) -> Unrolled:
        """Predict after each token of the target; weights="all" is the same as True, since there is one attention."""
        embedded = self.dropout(self.embedding(target))
        state = self.start(encoded)
        pieces, steps = self.unroll(self.advance, self.word_layer(embedded), state, weights=bool(weights), soft=soft)
        return unrolled(self.features(embedded, *pieces), steps)

    def source_mask(self, state: RecurrentState) -> Bool[Tensor, "b n"] | None:
        """Return which source positions exist."""
        return None if state.memory is None or state.memory.mask is None else state.memory.mask[:, 0]

    def unroll(
        self, body: Body, inputs: Float[Tensor, "b m g"], state: RecurrentState, *, weights: bool, soft: Soft = False
    ) -> tuple[tuple[Float[Tensor, "b m _"], ...], list[Attended]]:
        """Run the body for all steps; return its pieces, stacked along the steps, and the attention of each step."""
        if not self.records(inputs, state):
            look = Look(self.attention, state.memory, state.align_state, weights=weights, soft=soft)
            return self._loop(body, inputs, state.cells, look), look.steps
        # Only softmax attention is recorded, and it has no use for `soft`.
        if not weights or self.attention is None or state.memory is None:
            return self._recorded(body, inputs, state), []
        # The kernels of the loop return no weights; they are computed from the queries of all steps at once.
        *pieces, queries = self._recorded(body, inputs, state, queries=True)
        return tuple(pieces), [self.attention(queries, state.memory, weights=True)]

    def records(self, inputs: Tensor, state: RecurrentState) -> bool:
        """Whether the loop runs as CUDA graphs: in training, without attention or with a kernel for single steps."""
        return self.graphs.accepts(inputs) and (
            state.memory is None or (self.attention is not None and self.attention.in_steps(state.memory) is not None)
        )

    def _loop(
        self, body: Body, inputs: Tensor, cells: Cells, look: Look, joined: Sequence[Hoisted | Columns] = ()
    ) -> tuple[Tensor, ...]:
        pieces = []
        with hoisting(self, joined):
            for step in inputs.unbind(1):
                cells, piece = body(step, cells, look)
                pieces.append(piece)
        return tuple(
            look.contexts() if parts[0] is None else torch.stack(parts, dim=1) for parts in zip(*pieces, strict=True)
        )

    def _recorded(
        self, body: Body, inputs: Tensor, state: RecurrentState, *, queries: bool = False
    ) -> tuple[Tensor, ...]:
        """Run the loop as CUDA graphs, with its sizes rounded up; the last piece are the queries if asked for."""
        memory, attention = state.memory, self.attention
        kept = [part for cell in state.cells for part in cell]
        tensors, multiples = [inputs, *kept], [(ROW_MULTIPLE, STEP_MULTIPLE), *((ROW_MULTIPLE,) for _ in kept)]
        if memory is not None:
            mask = inputs.new_ones(1, 1, dtype=torch.bool) if memory.mask is None else memory.mask[:, 0]
            tensors += [memory.keys, memory.values, mask.expand(len(inputs), len(memory))]
            multiples += [(ROW_MULTIPLE, KEY_MULTIPLE)] * 3

        def loop(inputs: Tensor, *parts: Tensor) -> tuple[Tensor, ...]:
            rest = iter(parts)
            cells = tuple(tuple(next(rest) for _ in cell) for cell in state.cells)
            look = Look(attention, None, weights=False)
            if memory is not None and attention is not None:
                keys, values, mask = rest
                look.memory = read = Memory(keys, values, mask.unsqueeze(1))
                layer = self.folded_layer()
                if layer is not None and len(read) <= MAX_FOLDED_KEYS * inputs.shape[1]:
                    look.folded = True
                    read = replace(read, values=functional.linear(read.values, layer.weight))
                look.read = attention.in_steps(read)
            pieces = self._loop(body, inputs, cells, look, self.joined_layers(folded=look.folded))
            asked = [step.extras["query"] for step in look.steps] if queries else []
            return (*pieces, torch.cat(asked, dim=1)) if asked else pieces

        outside = ("embedding.", "output.")
        parameters = {name: part for name, part in self.named_parameters() if not name.startswith(outside)}
        return self.graphs(self, loop, tensors, parameters, multiples=multiples, variant=queries)


def unrolled(features: Tensor, steps: Iterable[Attended]) -> Unrolled:
    """Join the attention of all steps into an `Unrolled`."""

    def joined(parts: Iterable[Tensor | None]) -> Tensor | None:
        present = [part for part in parts if part is not None]
        return torch.cat(present, dim=1) if present else None

    return Unrolled(
        features,
        joined(step.weights for step in steps),
        joined(step.log_prob for step in steps),
        joined(step.extras.get("entropy") for step in steps),
        joined(step.extras.get("overlap") for step in steps),
    )
