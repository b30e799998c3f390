"""What recurrent decoders share: bahdanau.py (attention before the step) and luong.py (after it, or none).

What does not depend on the recurrence is computed for the whole target at once: the projections of
the embedded words before the loop, the features for the output layer after it, and the gradients of the weights that
the loop uses (see kernels/hoisted.py). `advance` is the loop's body, for teacher forcing and for decoding alike, so
that both give the same numbers. On a GPU the loop of a training is recorded and replayed (see replay.py).
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.attend import Attended, Attention
from regard.attention.memory import Memory
from regard.attention.steps import in_steps
from regard.decoders.protocol import OF_INPUT, Decoder, Override, Step, Unrolled
from regard.decoders.replay import KEYS, ROWS, STEPS, Replay, grown, rounded
from regard.encoders.encoded import Encoded
from regard.kernels.hoisted import hoisting
from regard.layers.cells import uniform_

Pieces = tuple[Float[Tensor, "b _"], ...]


@dataclass(frozen=True)
class RecurrentState:
    """What a recurrent decoder carries from step to step."""

    cells: tuple[tuple[Float[Tensor, "b h"], ...], ...]
    """The state of each layer."""
    memory: Memory | None = field(metadata=OF_INPUT)
    align_state: Any = None
    fed: Float[Tensor, "b f"] | None = None
    """Luong's input feeding: the attentional vector of the last step."""
    ask: Callable[[Tensor], Tensor] | None = field(default=None, metadata=OF_INPUT)
    """A quick way from a query to what it reads, for a loop that needs no weights."""


Body = Callable[..., tuple[RecurrentState, Pieces, Attended | None]]
"""A step: `advance`, or the part of it that has to be in the loop."""


class RecurrentDecoder(Decoder):
    """The shared shape; `output_dim` features per step go to the output layer."""

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
        self._replay = Replay()

    def project(self, embedded: Float[Tensor, "b m e"]) -> Float[Tensor, "b m g"]:
        """What enters the cell from the embedded words, for all steps at once."""
        raise TypeError(f"{type(self).__name__} does not define project(embedded).")

    def advance(
        self, inputs: Float[Tensor, "b g"], state: RecurrentState, override: Override, *, weights: bool
    ) -> tuple[RecurrentState, Pieces, Attended | None]:
        """One step of the recurrence: the new state, and the pieces that the features are made of."""
        raise TypeError(f"{type(self).__name__} does not define advance(...).")

    def features(self, embedded: Float[Tensor, "b m e"], *pieces: Float[Tensor, "b m _"]) -> Float[Tensor, "b m f"]:
        """What the output layer sees, for all steps at once."""
        raise TypeError(f"{type(self).__name__} does not define features(...).")

    def start_cells(self, hidden: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], ...]:
        """The states of the cells that begin with these hidden vectors."""
        raise TypeError(f"{type(self).__name__} does not define start_cells(...).")

    def start(self, encoded: Encoded) -> RecurrentState:
        """The state before the first token; the keys are projected here, once."""
        memory = None if self.attention is None else self.attention.remember(encoded.states, encoded.mask)
        hidden = torch.tanh(self.bridge(encoded.summary[:, -self.bridge.in_features :]))
        return RecurrentState(self.start_cells(hidden.split(self.hidden, dim=-1)), memory)

    def step(self, token: Int[Tensor, "b"], state: RecurrentState, *, override: Override = None) -> Step:
        """Read a token and predict the next."""
        embedded = self.dropout(self.embedding(token.unsqueeze(1)))
        state, pieces, attended = self.advance(self.project(embedded)[:, 0], state, override, weights=True)
        features = self.features(embedded, *(piece.unsqueeze(1) for piece in pieces))
        return Step(self.output(features)[:, 0], state, attended)

    def forward(self, encoded: Encoded, target: Int[Tensor, "b m"], *, weights: bool = False) -> Unrolled:
        """Predict after each token of the target."""
        embedded = self.dropout(self.embedding(target))
        pieces, steps = self.unroll(self.advance, self.project(embedded), self.start(encoded), weights=weights)
        return unrolled(self.features(embedded, *pieces), steps)

    def unroll(
        self, body: Body, inputs: Float[Tensor, "b m g"], state: RecurrentState, *, weights: bool
    ) -> tuple[tuple[Float[Tensor, "b m _"], ...], list[Attended | None]]:
        """The body for all steps: its pieces, stacked, and what each step attended to."""
        if inputs.is_cuda and inputs.requires_grad and not weights and self._is_askable(state):
            return self._replayed(body, inputs, state), []
        return self._loop(body, inputs, state, weights=weights)

    def _loop(
        self, body: Body, inputs: Tensor, state: RecurrentState, *, weights: bool
    ) -> tuple[tuple[Tensor, ...], list[Attended | None]]:
        pieces, steps = [], []
        with hoisting(self):
            for step in inputs.unbind(1):
                state, piece, attended = body(step, state, None, weights=weights)
                pieces.append(piece)
                steps.append(attended)
        return tuple(torch.stack(parts, dim=1) for parts in zip(*pieces, strict=True)), steps

    def _is_askable(self, state: RecurrentState) -> bool:
        """Whether the loop needs no attention, or one that answers step by step."""
        return state.memory is None or (
            self.attention is not None and in_steps(self.attention, state.memory) is not None
        )

    def _replayed(self, body: Body, inputs: Tensor, state: RecurrentState) -> tuple[Tensor, ...]:
        """The loop as a recorded one, whose sizes are rounded up."""
        (batch, length, _), memory, attention = inputs.shape, state.memory, self.attention
        rows = rounded(batch, ROWS)
        tensors = [grown(inputs, rows, rounded(length, STEPS))]
        tensors += [grown(part, rows) for cell in state.cells for part in cell]
        if memory is not None:
            keys = rounded(len(memory), KEYS)
            mask = inputs.new_ones(1, 1, dtype=torch.bool) if memory.mask is None else memory.mask[:, 0]
            mask = mask.expand(batch, len(memory))
            tensors += [grown(part, rows, keys) for part in (memory.keys, memory.values, mask)]

        def loop(inputs: Tensor, *parts: Tensor) -> tuple[Tensor, ...]:
            rest = iter(parts)
            here = RecurrentState(tuple(tuple(next(rest) for _ in cell) for cell in state.cells), None)
            if memory is not None and attention is not None:
                keys, values, mask = rest
                own = Memory(keys, values, mask.unsqueeze(1))
                here = replace(here, memory=own, ask=in_steps(attention, own))
            return self._loop(body, inputs, here, weights=False)[0]

        outside = ("embedding.", "output.")
        weights = [weight for name, weight in self.named_parameters() if not name.startswith(outside)]
        return tuple(piece[:batch, :length] for piece in self._replay(loop, tensors, weights))

    def look(
        self, query: Float[Tensor, "b h"], state: RecurrentState, override: Override, *, weights: bool
    ) -> tuple[Float[Tensor, "b c"], RecurrentState, Attended]:
        """The context of one query, and the state with what the alignment will need next."""
        if self.attention is None or state.memory is None:
            raise TypeError(f"This {type(self).__name__} has no attention.")
        if state.ask is not None and override is None and not weights:
            context = state.ask(query)
            return context, state, Attended(context.unsqueeze(1))
        attended = self.attention(
            query.unsqueeze(1), state.memory, weights=weights, state=state.align_state, override=override
        )
        return attended.context[:, 0], replace(state, align_state=attended.state), attended


def unrolled(features: Tensor, steps: list[Attended | None]) -> Unrolled:
    """The features of all steps with what they attended to, joined along the steps."""

    def joined(parts: list[Tensor | None]) -> Tensor | None:
        there = [part for part in parts if part is not None]
        return torch.cat(there, dim=1) if there else None

    attended = [step for step in steps if step is not None]
    return Unrolled(
        features,
        joined([step.weights for step in attended]),
        joined([step.log_prob for step in attended]),
        joined([step.extras.get("entropy") for step in attended]),
        joined([step.extras.get("overlap") for step in attended]),
    )
