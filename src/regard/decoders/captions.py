"""Captions, word by word: Show and Tell (the picture is read once) and Show, Attend and Tell (before each word)."""

from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.align import Hard, softmax
from regard.attention.attend import Attended, Attention, recall
from regard.decoders.protocol import Override, Unrolled
from regard.decoders.recurrent import Pieces, RecurrentDecoder, RecurrentState, unrolled
from regard.encoders.encoded import Encoded
from regard.kernels.hoisted import Hoisted
from regard.layers.cells import LSTM, uniform_


class ShowAttendTell(RecurrentDecoder):
    """Show, Attend and Tell (Xu et al. 2015, section 3.1.2): the attention comes before the step, and is gated.

    alpha_t from h_(t-1); z_t = beta_t sum_i alpha_ti a_i with beta_t = sigmoid(f(h_(t-1))), one number (section 4.2.1);
    h_t, c_t = LSTM(E y_(t-1), h_(t-1), z_t); the output layer L_o sees E y_(t-1) + L_h h_t + L_z z_t (equation 7), so
    that `output` takes as many features as a word has. h_0 and c_0 are each tanh(W mean_i a_i).
    """

    def __init__(
        self,
        embedding: nn.Embedding,
        *,
        memory_dim: int,
        hidden: int,
        attention: Attention,
        output: nn.Module,
        dropout: float = 0.0,
        output_dropout: float = 0.0,
    ) -> None:
        super().__init__(
            embedding,
            summary_dim=memory_dim,
            hidden=hidden,
            num_layers=2,  # what the bridge makes of the mean annotation: h_0 and c_0
            attention=attention,
            output=output,
            dropout=dropout,
        )
        self.cell = LSTM(hidden)
        gates, width = self.cell.num_gates * hidden, embedding.embedding_dim
        self.word_layer = uniform_(nn.Linear(width, gates))
        self.context_layer = uniform_(Hoisted(memory_dim, gates, bias=False))
        self.gate_layer = uniform_(Hoisted(hidden, 1))
        self.deep_state = uniform_(nn.Linear(hidden, width))
        self.deep_context = uniform_(nn.Linear(memory_dim, width, bias=False))
        self.output_dropout = nn.Dropout(output_dropout)

    def project(self, embedded: Float[Tensor, "b m e"]) -> Float[Tensor, "b m g"]:
        """W y, for all gates."""
        projected: Tensor = self.word_layer(embedded)
        return projected

    def start_cells(self, hidden: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], ...]:
        """One layer, whose state and cell both come from the mean annotation."""
        return ((hidden[0], hidden[1]),)

    def advance(
        self, inputs: Float[Tensor, "b g"], state: RecurrentState, override: Override, *, weights: bool
    ) -> tuple[RecurrentState, Pieces, Attended | None]:
        """Look, let in as much as the gate says, then step; the gate is among the extras of what was attended to."""
        (cell_state,) = state.cells
        last = cell_state[0]
        context, state, attended = self.look(last, state, override, weights=weights)
        gate = torch.sigmoid(self.gate_layer(last))
        context = gate * context
        cell_state = self.cell(inputs + self.context_layer(context), cell_state)
        attended = replace(attended, extras=attended.extras | {"gate": gate})
        return replace(state, cells=(cell_state,)), (cell_state[0], context, gate), attended

    def features(self, embedded: Float[Tensor, "b m e"], *pieces: Float[Tensor, "b m _"]) -> Float[Tensor, "b m f"]:
        """The deep output: E y + L_h h + L_z z."""
        hidden, context, _ = pieces
        deep = embedded + self.deep_state(self.output_dropout(hidden)) + self.deep_context(context)
        dropped: Tensor = self.output_dropout(deep)
        return dropped

    def forward(self, encoded: Encoded, target: Int[Tensor, "b m"], *, weights: bool = False) -> Unrolled:
        """Predict after each token; where the loop is replayed, the weights are taken after it, for all steps at once.

        Of hard attention that chooses, `chances` are the distributions that its choices were taken from.
        """
        state, embedded = self.start(encoded), self.dropout(self.embedding(target))
        later = weights and embedded.is_cuda and self._is_askable(state)
        pieces, steps = self.unroll(self.advance, self.project(embedded), state, weights=weights and not later)
        whole = replace(unrolled(self.features(embedded, *pieces), steps), gates=pieces[2][..., 0])
        if later:
            return replace(whole, weights=self._chances(pieces[0], state))
        if weights and self.attention is not None and isinstance(self.attention.align, Hard):
            return replace(whole, chances=self._chances(pieces[0], state))
        return whole

    def _chances(self, hidden: Float[Tensor, "b m h"], state: RecurrentState) -> Float[Tensor, "b m n"]:
        """The softmax of what each step found to match, from the states that the steps began with."""
        if self.attention is None or state.memory is None:
            raise TypeError("Show, Attend and Tell has an attention and a memory.")
        queries = torch.cat([state.cells[0][0].unsqueeze(1), hidden[:, :-1]], dim=1)
        attended = recall(queries, state.memory, score=self.attention.score, align=softmax, weights=True)
        if attended.weights is None:
            raise TypeError("Weights that were asked for are given.")
        return attended.weights


class ShowAndTell(RecurrentDecoder):
    """Show and Tell (Vinyals et al. 2015, section 3.1): an LSTM reads the picture once, then the words.

    x_(-1) = W mean_i a_i is read first, from an empty state; then x_t = E y_t (equations 10 to 12). The output layer
    sees h_t, so that `output` takes `hidden` features.
    """

    def __init__(
        self,
        embedding: nn.Embedding,
        *,
        memory_dim: int,
        hidden: int,
        output: nn.Module,
        dropout: float = 0.0,
        output_dropout: float = 0.0,
    ) -> None:
        super().__init__(
            embedding,
            summary_dim=memory_dim,
            hidden=hidden,
            num_layers=LSTM.num_gates,  # the bridge brings the picture to all gates
            attention=None,
            output=output,
            dropout=dropout,
        )
        self.cell = LSTM(hidden)
        self.word_layer = uniform_(nn.Linear(embedding.embedding_dim, LSTM.num_gates * hidden))
        self.output_dropout = nn.Dropout(output_dropout)

    def start(self, encoded: Encoded) -> RecurrentState:
        """The state that has read the picture."""
        inputs: Tensor = self.bridge(encoded.summary)
        empty = inputs.new_zeros(len(inputs), self.hidden)
        return RecurrentState((self.cell(inputs, (empty, empty)),), None)

    def project(self, embedded: Float[Tensor, "b m e"]) -> Float[Tensor, "b m g"]:
        """W y, for all gates."""
        projected: Tensor = self.word_layer(embedded)
        return projected

    def advance(
        self, inputs: Float[Tensor, "b g"], state: RecurrentState, override: Override, *, weights: bool
    ) -> tuple[RecurrentState, Pieces, Attended | None]:
        """Step."""
        cell_state = self.cell(inputs, state.cells[0])
        return replace(state, cells=(cell_state,)), (cell_state[0],), None

    def features(self, embedded: Float[Tensor, "b m e"], *pieces: Float[Tensor, "b m _"]) -> Float[Tensor, "b m f"]:
        """h_t as it is."""
        dropped: Tensor = self.output_dropout(pieces[0])
        return dropped
