"""Luong's decoder, which attends after each step; without attention, the plain sequence-to-sequence decoder."""

from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.align import Soft
from regard.attention.attend import Attention
from regard.decoders.protocol import Unrolled, Weights
from regard.decoders.recurrent import Cells, Look, Pieces, RecurrentDecoder, unrolled
from regard.encoders.encoded import Encoded
from regard.kernels.hoisted import Columns, Hoisted
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
        self.combine_context = Columns(self.combine, slice(0, -hidden), bias=False)
        self.combine_hidden = Columns(self.combine, slice(-hidden, None), bias=True)
        self.output_dim = output_dim
        self.output_dropout = nn.Dropout(output_dropout)

    def start_cells(self, hidden: tuple[Tensor, ...]) -> Cells:
        """Return the state of each layer, which begins with its own projection of the summary, and nothing to feed."""
        return (*(cell.start(part) for cell, part in zip(self.cells, hidden, strict=True)), ())  # type: ignore[operator]

    def folded_layer(self) -> Columns:
        """Return the part of W_c for the context."""
        return self.combine_context

    def joined_layers(self, *, folded: bool) -> list[Hoisted | Columns]:
        """Return the layers that multiply the state of the highest layer."""
        if self.feeding is None:
            return []
        joined: list[Hoisted | Columns] = [*self.query_layers(), self.cells[-1].gates]  # type: ignore[list-item]
        return [*joined, self.combine_hidden] if folded else joined

    def advance(self, inputs: Float[Tensor, "b g"], cells: Cells, look: Look) -> tuple[Cells, Pieces]:
        """Step through the layers, attend, then combine."""
        if self.feeding is not None and cells[-1]:
            inputs = inputs + self.feeding(cells[-1][0])
        cells, (hidden,) = self._recur(inputs, cells, look)
        if self.attention is None:
            return cells, (self._combine(hidden),)
        if look.folded:
            combined = look.into(hidden, self.combine_hidden(hidden))
        else:
            combined = self.combine(torch.cat([look(hidden), hidden], dim=-1))
        attentional = self._finish(combined)
        return cells if self.feeding is None else (*cells[:-1], (attentional,)), (attentional,)

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
        inputs = self.word_layer(self.dropout(self.embedding(target)))
        (hidden,), _ = self.unroll(self._recur, inputs, replace(state, memory=None), weights=False)
        attended = self.attention(hidden, state.memory, weights=bool(weights), soft=soft)
        return unrolled(self._combine(torch.cat([attended.context, hidden], dim=-1)), [attended])

    def _recur(self, inputs: Tensor, cells: Cells, look: Look) -> tuple[Cells, Pieces]:
        """Step through the layers; return h_t."""
        new: list[tuple[Tensor, ...]] = []
        for index, (cell, state) in enumerate(zip(self.cells, cells, strict=False)):
            if index:
                inputs = self.upper_layers[index - 1](self.dropout(new[-1][0]))
            new.append(cell(inputs, state))
        return (*new, cells[-1]), (new[-1][0],)

    def _combine(self, joined: Tensor) -> Tensor:
        return self._finish(self.combine(joined))

    def _finish(self, combined: Tensor) -> Tensor:
        finished: Tensor = self.output_dropout(torch.tanh(combined))
        return finished
