"""Recurrent decoders: plain, Bahdanau's (attention before the step) and Luong's (attention after it).

All share one shape. What does not depend on the recurrence is computed for the whole target at once: the projections of
the embedded words before the loop, the features for the output layer after it, and the gradients of the weights that
the loop uses (see kernels/hoisted.py). `advance` is the loop's body, for
teacher forcing and for decoding alike, so that both give the same numbers.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.attend import Attended, Attention
from regard.attention.memory import Memory
from regard.decoders.protocol import OF_INPUT, Decoder, Override, Step, Unrolled
from regard.encoders.encoded import Encoded
from regard.kernels.hoisted import Hoisted, hoisting
from regard.layers.cells import CELLS, uniform_

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
        state = self.start(encoded)
        pieces, steps = [], []
        with hoisting(self):
            for inputs in self.project(embedded).unbind(1):
                state, piece, attended = self.advance(inputs, state, None, weights=weights)
                pieces.append(piece)
                steps.append(attended)
        stacked = [torch.stack(parts, dim=1) for parts in zip(*pieces, strict=True)]
        return _unrolled(self.features(embedded, *stacked), steps)

    def look(
        self, query: Float[Tensor, "b h"], state: RecurrentState, override: Override, *, weights: bool
    ) -> tuple[Float[Tensor, "b c"], RecurrentState, Attended]:
        """The context of one query, and the state with what the alignment will need next."""
        if self.attention is None or state.memory is None:
            raise TypeError(f"This {type(self).__name__} has no attention.")
        attended = self.attention(
            query.unsqueeze(1), state.memory, weights=weights, state=state.align_state, override=override
        )
        return attended.context[:, 0], replace(state, align_state=attended.state), attended


def _unrolled(features: Tensor, steps: list[Attended | None]) -> Unrolled:
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


class Bahdanau(RecurrentDecoder):
    """RNNsearch (Bahdanau et al. 2015, appendix A.2.2): the attention comes before the step.

    alpha_t from s_(t-1); s_t = GRU(y_(t-1), c_t, s_(t-1)), where c_t enters reset, update and candidate; the deep
    output is a maxout of U s_(t-1) + V y_(t-1) + C c_t; s_0 = tanh(W h_1 backward), so that `summary_dim` is the size
    of the backward state, the last part of the encoder's summary.

    `conditional` is the variant of later systems (Sennrich et al. 2017, appendix A): one GRU reads the word, its state
    asks, and a second GRU reads the context; the output sees the new state.
    """

    def __init__(
        self,
        embedding: nn.Embedding,
        *,
        memory_dim: int,
        summary_dim: int,
        hidden: int,
        attention: Attention,
        output: nn.Module,
        output_dim: int,
        cell: str = "gru",
        conditional: bool = False,
        dropout: float = 0.0,
        output_dropout: float = 0.0,
    ) -> None:
        super().__init__(
            embedding,
            summary_dim=summary_dim,
            hidden=hidden,
            num_layers=1,
            attention=attention,
            output=output,
            dropout=dropout,
        )
        self.conditional = conditional
        self.cell = CELLS[cell](hidden)
        self.second_cell = CELLS[cell](hidden) if conditional else None
        gates = self.cell.num_gates * hidden
        self.word_layer = uniform_(nn.Linear(embedding.embedding_dim, gates))
        self.context_layer = uniform_(Hoisted(memory_dim, gates, bias=conditional))
        self.deep_state = uniform_(nn.Linear(hidden, 2 * output_dim))
        self.deep_word = uniform_(nn.Linear(embedding.embedding_dim, 2 * output_dim, bias=False))
        self.deep_context = uniform_(nn.Linear(memory_dim, 2 * output_dim, bias=False))
        self.output_dropout = nn.Dropout(output_dropout)

    def project(self, embedded: Float[Tensor, "b m e"]) -> Float[Tensor, "b m g"]:
        """W y, for all gates."""
        projected: Tensor = self.word_layer(embedded)
        return projected

    def start_cells(self, hidden: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], ...]:
        """One layer."""
        return (self.cell.start(hidden[0]),)

    def advance(
        self, inputs: Float[Tensor, "b g"], state: RecurrentState, override: Override, *, weights: bool
    ) -> tuple[RecurrentState, Pieces, Attended | None]:
        """Look, then step; or, conditional, step, look, step."""
        (cell_state,) = state.cells
        if self.second_cell is not None:
            cell_state = self.cell(inputs, cell_state)
            context, state, attended = self.look(cell_state[0], state, override, weights=weights)
            cell_state = self.second_cell(self.context_layer(context), cell_state)
            return replace(state, cells=(cell_state,)), (cell_state[0], context), attended
        last = cell_state[0]
        context, state, attended = self.look(last, state, override, weights=weights)
        cell_state = self.cell(inputs + self.context_layer(context), cell_state)
        return replace(state, cells=(cell_state,)), (last, context), attended

    def features(self, embedded: Float[Tensor, "b m e"], *pieces: Float[Tensor, "b m _"]) -> Float[Tensor, "b m f"]:
        """The deep output: the larger of each two of U s + V y + C c."""
        hidden, context = pieces
        deep = self.deep_state(hidden) + self.deep_word(embedded) + self.deep_context(context)
        dropped: Tensor = self.output_dropout(deep.unflatten(-1, (-1, 2)).amax(-1))
        return dropped


class Luong(RecurrentDecoder):
    """Luong et al. 2015: stacked cells, the attention after the step, h~_t = tanh(W_c [c_t; h_t]).

    With input feeding (section 3.3), h~_t enters the next step beside the word. Without it, nothing in the recurrence
    waits for the attention, and teacher forcing attends with all steps at once. With no attention at all this is the
    plain sequence-to-sequence decoder (Sutskever et al. 2014), h~_t = tanh(W_c h_t).
    """

    def __init__(
        self,
        embedding: nn.Embedding,
        *,
        memory_dim: int,
        summary_dim: int,
        hidden: int,
        attention: Attention | None,
        output: nn.Module,
        output_dim: int,
        cell: str = "lstm",
        num_layers: int = 1,
        input_feeding: bool = True,
        dropout: float = 0.0,
        output_dropout: float = 0.0,
    ) -> None:
        super().__init__(
            embedding,
            summary_dim=summary_dim,
            hidden=hidden,
            num_layers=num_layers,
            attention=attention,
            output=output,
            dropout=dropout,
        )
        self.cells = nn.ModuleList(CELLS[cell](hidden) for _ in range(num_layers))
        gates = CELLS[cell].num_gates * hidden
        self.word_layer = uniform_(nn.Linear(embedding.embedding_dim, gates))
        self.upper_layers = nn.ModuleList(uniform_(Hoisted(hidden, gates)) for _ in range(num_layers - 1))
        self.feeding = uniform_(Hoisted(output_dim, gates, bias=False)) if input_feeding and attention else None
        self.combine = uniform_(Hoisted(hidden + (memory_dim if attention else 0), output_dim))
        self.output_dim = output_dim
        self.output_dropout = nn.Dropout(output_dropout)

    def project(self, embedded: Float[Tensor, "b m e"]) -> Float[Tensor, "b m g"]:
        """W y, for all gates of the lowest layer."""
        projected: Tensor = self.word_layer(embedded)
        return projected

    def start_cells(self, hidden: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], ...]:
        """Each layer begins with its own projection of the summary."""
        return tuple(cell.start(part) for cell, part in zip(self.cells, hidden, strict=True))  # type: ignore[operator]

    def advance(
        self, inputs: Float[Tensor, "b g"], state: RecurrentState, override: Override, *, weights: bool
    ) -> tuple[RecurrentState, Pieces, Attended | None]:
        """Step through the layers, then look, then combine."""
        if self.feeding is not None and state.fed is not None:
            inputs = inputs + self.feeding(state.fed)
        hidden, state = self._through_layers(inputs, state)
        if self.attention is None:
            return state, (self._combine(hidden),), None
        context, state, attended = self.look(hidden, state, override, weights=weights)
        attentional = self._combine(torch.cat([context, hidden], dim=-1))
        if self.feeding is not None:
            state = replace(state, fed=attentional)
        return state, (attentional,), attended

    def features(self, embedded: Float[Tensor, "b m e"], *pieces: Float[Tensor, "b m _"]) -> Float[Tensor, "b m f"]:
        """h~_t as it is."""
        return pieces[0]

    def forward(self, encoded: Encoded, target: Int[Tensor, "b m"], *, weights: bool = False) -> Unrolled:
        """Predict after each token; without input feeding, the attention is one call for all steps."""
        if self.feeding is not None or self.attention is None:
            return super().forward(encoded, target, weights=weights)
        state = self.start(encoded)
        states = []
        with hoisting(self):
            for inputs in self.project(self.dropout(self.embedding(target))).unbind(1):
                hidden, state = self._through_layers(inputs, state)
                states.append(hidden)
        hidden = torch.stack(states, dim=1)
        attended = self.attention(hidden, state.memory, weights=weights)
        return _unrolled(self._combine(torch.cat([attended.context, hidden], dim=-1)), [attended])

    def _through_layers(self, inputs: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        cells: list[tuple[Tensor, ...]] = []
        for index, (cell, cell_state) in enumerate(zip(self.cells, state.cells, strict=True)):
            if index:
                inputs = self.upper_layers[index - 1](self.dropout(cells[-1][0]))
            cells.append(cell(inputs, cell_state))
        return cells[-1][0], replace(state, cells=tuple(cells))

    def _combine(self, joined: Tensor) -> Tensor:
        combined: Tensor = self.output_dropout(torch.tanh(self.combine(joined)))
        return combined
