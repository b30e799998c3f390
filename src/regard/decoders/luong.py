"""Luong's decoder, which attends after each step; without attention, the plain sequence-to-sequence decoder."""

from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.align import Soft
from regard.attention.attend import Attended, Attention
from regard.decoders.protocol import Override, Unrolled, Weights
from regard.decoders.recurrent import Pieces, RecurrentDecoder, RecurrentState, unrolled
from regard.encoders.encoded import Encoded
from regard.kernels.hoisted import Hoisted
from regard.layers.cells import CELLS, uniform_


class Luong(RecurrentDecoder):
    """Luong et al. 2015: stacked cells, attention after each step, h~_t = tanh(W_c [c_t; h_t]).

    With input feeding (section 3.3), h~_t is an input of the next step, beside the word. Without it the recurrence does
    not depend on the attention, and teacher forcing attends with all steps in one call. With attention=None this is
    the plain sequence-to-sequence decoder (Sutskever et al. 2014), h~_t = tanh(W_c h_t).
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
        """Compute W y for all gates of the lowest layer."""
        projected: Tensor = self.word_layer(embedded)
        return projected

    def start_cells(self, hidden: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], ...]:
        """Return the state of each layer, which begins with its own projection of the summary."""
        return tuple(cell.start(part) for cell, part in zip(self.cells, hidden, strict=True))  # type: ignore[operator]

    def advance(
        self,
        inputs: Float[Tensor, "b g"],
        state: RecurrentState,
        override: Override,
        *,
        weights: bool,
        soft: Soft = False,
    ) -> tuple[RecurrentState, Pieces, Attended | None]:
        """Step through the layers, attend, then combine."""
        if self.feeding is not None and state.fed is not None:
            inputs = inputs + self.feeding(state.fed)
        hidden, state = self._through_layers(inputs, state)
        if self.attention is None:
            return state, (self._combine(hidden),), None
        context, state, attended = self.look(hidden, state, override, weights=weights, soft=soft)
        attentional = self._combine(torch.cat([context, hidden], dim=-1))
        if self.feeding is not None:
            state = replace(state, fed=attentional)
        return state, (attentional,), attended

    def features(self, embedded: Float[Tensor, "b m e"], *pieces: Float[Tensor, "b m _"]) -> Float[Tensor, "b m f"]:
        """Return h~_t."""
        return pieces[0]

    def forward(
        self, encoded: Encoded, target: Int[Tensor, "b m"], *, weights: Weights = False, soft: Soft = False
    ) -> Unrolled:
        """Predict after each token of the target; without input feeding, all steps attend in one call."""
        if self.feeding is not None or self.attention is None:
            return super().forward(encoded, target, weights=weights, soft=soft)
        state = self.start(encoded)
        inputs = self.project(self.dropout(self.embedding(target)))
        (hidden,), _ = self.unroll(self._recur, inputs, replace(state, memory=None), weights=False)
        attended = self.attention(hidden, state.memory, weights=bool(weights), soft=soft)
        return unrolled(self._combine(torch.cat([attended.context, hidden], dim=-1)), [attended])

    def _recur(
        self, inputs: Tensor, state: RecurrentState, override: Override, *, weights: bool, soft: Soft = False
    ) -> tuple[RecurrentState, Pieces, Attended | None]:
        hidden, state = self._through_layers(inputs, state)
        return state, (hidden,), None

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
