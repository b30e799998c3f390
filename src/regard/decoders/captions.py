"""Caption decoders: Show and Tell reads the image once; the others attend to it for each word."""

from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.align import Hard, Soft, softmax
from regard.attention.attend import Attended, Attention, read
from regard.attention.memory import Memory
from regard.attention.score import Score
from regard.decoders.protocol import Override, Unrolled, Weights
from regard.decoders.recurrent import Pieces, RecurrentDecoder, RecurrentState, unrolled
from regard.encoders.encoded import Encoded
from regard.kernels.hoisted import Hoisted
from regard.kernels.numerics import masked_softmax, widen, without_autocast
from regard.layers.cells import LSTM, uniform_


class ShowAttendTell(RecurrentDecoder):
    """Show, Attend and Tell (Xu et al. 2015, section 3.1.2): gated attention before each step.

    The query of alpha_t is h_(t-1). z_t = beta_t sum_i alpha_ti a_i with the gate beta_t = sigmoid(f(h_(t-1))), one
    number (section 4.2.1). h_t, c_t = LSTM(E y_(t-1), h_(t-1), z_t). The input of the output layer L_o is
    E y_(t-1) + L_h h_t + L_z z_t (equation 7), so `output` takes as many features as a word has. h_0 and c_0 are each
    tanh(W mean_i a_i).
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
            num_layers=2,  # the bridge computes both h_0 and c_0 from the mean annotation
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
        """Compute W y for all gates."""
        projected: Tensor = self.word_layer(embedded)
        return projected

    def start_cells(self, hidden: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], ...]:
        """Return the state of the single layer; h_0 and c_0 both come from the mean annotation."""
        return ((hidden[0], hidden[1]),)

    def advance(
        self,
        inputs: Float[Tensor, "b g"],
        state: RecurrentState,
        override: Override,
        *,
        weights: bool,
        soft: Soft = False,
    ) -> tuple[RecurrentState, Pieces, Attended | None]:
        """Attend, multiply the context with the gate, then step; extras["gate"] of the attention is the gate."""
        (cell_state,) = state.cells
        last = cell_state[0]
        context, state, attended = self.look(last, state, override, weights=weights, soft=soft)
        gate = torch.sigmoid(self.gate_layer(last))
        context = gate * context
        cell_state = self.cell(inputs + self.context_layer(context), cell_state)
        attended = replace(attended, extras=attended.extras | {"gate": gate})
        return replace(state, cells=(cell_state,)), (cell_state[0], context, gate), attended

    def features(self, embedded: Float[Tensor, "b m e"], *pieces: Float[Tensor, "b m _"]) -> Float[Tensor, "b m f"]:
        """Compute the deep output: E y + L_h h + L_z z."""
        hidden, context, _ = pieces
        deep = embedded + self.deep_state(self.output_dropout(hidden)) + self.deep_context(context)
        dropped: Tensor = self.output_dropout(deep)
        return dropped

    def forward(
        self, encoded: Encoded, target: Int[Tensor, "b m"], *, weights: Weights = False, soft: Soft = False
    ) -> Unrolled:
        """Predict after each token of the target.

        Where the loop runs as CUDA graphs, the weights are computed after it, for all steps at once. With hard
        attention, `chances` are the distributions from which keys were chosen.
        """
        state, embedded = self.start(encoded), self.dropout(self.embedding(target))
        later = bool(weights) and embedded.is_cuda and self._can_record(state)
        pieces, steps = self.unroll(
            self.advance, self.project(embedded), state, weights=bool(weights) and not later, soft=soft
        )
        whole = replace(unrolled(self.features(embedded, *pieces), steps), gates=pieces[2][..., 0])
        if later:
            return replace(whole, weights=self._chances(pieces[0], state))
        if weights and self.attention is not None and isinstance(self.attention.align, Hard):
            return replace(whole, chances=self._chances(pieces[0], state))
        return whole

    def chances(self, state: RecurrentState) -> Float[Tensor, "b n"]:
        """Compute the distribution over the cells from which the next step chooses, or with which it averages."""
        return self._chances(state.cells[0][0].unsqueeze(1), state)[:, 0]

    def _chances(self, hidden: Float[Tensor, "b m h"], state: RecurrentState) -> Float[Tensor, "b m n"]:
        """Compute the softmax of the logits of each step, from the states that the steps began with."""
        if self.attention is None or state.memory is None:
            raise TypeError("Show, Attend and Tell needs an attention and a memory.")
        queries = torch.cat([state.cells[0][0].unsqueeze(1), hidden[:, :-1]], dim=1)
        attended = read(queries, state.memory, self.attention.score, softmax, weights=True)
        if attended.weights is None:
            raise TypeError("read(..., weights=True) returned no weights.")
        return attended.weights


class ShowAndTell(RecurrentDecoder):
    """Show and Tell (Vinyals et al. 2015, section 3.1): an LSTM reads the image once, then the words.

    x_(-1) = W mean_i a_i is the first input, from an empty state; then x_t = E y_t (equations 10 to 12). The input of
    the output layer is h_t, so `output` takes `hidden` features.
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
            num_layers=LSTM.num_gates,  # the bridge computes the inputs of all gates from the image
            attention=None,
            output=output,
            dropout=dropout,
        )
        self.cell = LSTM(hidden)
        self.word_layer = uniform_(nn.Linear(embedding.embedding_dim, LSTM.num_gates * hidden))
        self.output_dropout = nn.Dropout(output_dropout)

    def start(self, encoded: Encoded) -> RecurrentState:
        """Return the state after the image has been read."""
        inputs: Tensor = self.bridge(encoded.summary)
        empty = inputs.new_zeros(len(inputs), self.hidden)
        return RecurrentState((self.cell(inputs, (empty, empty)),), None)

    def project(self, embedded: Float[Tensor, "b m e"]) -> Float[Tensor, "b m g"]:
        """Compute W y for all gates."""
        projected: Tensor = self.word_layer(embedded)
        return projected

    def advance(
        self,
        inputs: Float[Tensor, "b g"],
        state: RecurrentState,
        override: Override,
        *,
        weights: bool,
        soft: Soft = False,
    ) -> tuple[RecurrentState, Pieces, Attended | None]:
        """Run one step of the LSTM."""
        cell_state = self.cell(inputs, state.cells[0])
        return replace(state, cells=(cell_state,)), (cell_state[0],), None

    def features(self, embedded: Float[Tensor, "b m e"], *pieces: Float[Tensor, "b m _"]) -> Float[Tensor, "b m f"]:
        """Return h_t."""
        dropped: Tensor = self.output_dropout(pieces[0])
        return dropped


class Adaptive(RecurrentDecoder):
    """Adaptive attention with a visual sentinel (Lu et al. 2017, section 2.4).

    h_t, m_t = LSTM([E y_(t-1); v]), where v = mean_i a_i is the image as a whole, and h_0 and m_0 are each tanh(W v).
    The query is h_t, so the last word is known when the model looks. The sentinel
    s_t = sigmoid(W_y [E y_(t-1); v] + W_h h_(t-1)) tanh(m_t) is what the decoder knows without looking. It competes
    with the cells, by the same score:

        z_ti = score(h_t, a_i),   z_ts = score(h_t, s_t),   [alpha_t (1 - beta_t); beta_t] = softmax([z_t; z_ts])
        c_t = beta_t W_s s_t + (1 - beta_t) sum_i alpha_ti a_i

    Words that name nothing in the image, such as "of", have a beta_t near 1. The input of the output layer is
    E y_(t-1) + L_h h_t + L_c c_t. The gate in the traces is 1 - beta_t, and weights are alpha_t, which sum to 1.

    The recurrence does not depend on the attention, so training attends for all words at once.
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
            num_layers=2,  # the bridge computes both h_0 and m_0 from the mean annotation
            attention=attention,
            output=output,
            dropout=dropout,
        )
        self.cell = LSTM(hidden)
        gates, width = self.cell.num_gates * hidden, embedding.embedding_dim
        self.word_layer = uniform_(nn.Linear(width, gates + hidden))
        """W y for the gates, then W_y."""
        self.image_layer = uniform_(nn.Linear(memory_dim, gates + hidden, bias=False))
        self.sentinel_gate = uniform_(Hoisted(hidden, hidden, bias=False))
        self.sentinel_layer = uniform_(nn.Linear(hidden, memory_dim))
        """W_s: a sentinel as one of the annotations."""
        self.deep_state = uniform_(nn.Linear(hidden, width))
        self.deep_context = uniform_(nn.Linear(memory_dim, width, bias=False))
        self.output_dropout = nn.Dropout(output_dropout)

    def project(self, embedded: Float[Tensor, "b m e"]) -> Float[Tensor, "b m g"]:
        """Compute W y for all gates."""
        projected: Tensor = self.word_layer(embedded)
        return projected

    def start_cells(self, hidden: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], ...]:
        """Return the state of the single layer; h_0 and m_0 both come from the mean annotation."""
        return ((hidden[0], hidden[1]),)

    def start(self, encoded: Encoded) -> RecurrentState:
        """Return the state before the first word, with what the image as a whole adds to the gates of every step."""
        state = super().start(encoded)
        image = self.image_layer(encoded.summary[:, -self.image_layer.in_features :])
        return replace(state, cells=(*state.cells, (image,)))

    def advance(
        self,
        inputs: Float[Tensor, "b g"],
        state: RecurrentState,
        override: Override,
        *,
        weights: bool,
        soft: Soft = False,
    ) -> tuple[RecurrentState, Pieces, Attended | None]:
        """Step, then attend; extras["gate"] of the attention is 1 - beta_t."""
        state, (hidden, sentinel), _ = self._recur(inputs, state, override, weights=weights, soft=soft)
        attended, gate = self._look(hidden.unsqueeze(1), sentinel.unsqueeze(1), state, override)
        context = attended.context[:, 0]
        attended = replace(attended, extras={"gate": gate[:, 0].unsqueeze(-1)})
        return state, (hidden, context), attended

    def features(self, embedded: Float[Tensor, "b m e"], *pieces: Float[Tensor, "b m _"]) -> Float[Tensor, "b m f"]:
        """Compute the deep output: E y + L_h h + L_c c."""
        hidden, context = pieces
        deep = embedded + self.deep_state(self.output_dropout(hidden)) + self.deep_context(context)
        dropped: Tensor = self.output_dropout(deep)
        return dropped

    def forward(
        self, encoded: Encoded, target: Int[Tensor, "b m"], *, weights: Weights = False, soft: Soft = False
    ) -> Unrolled:
        """Predict after each token of the target; `soft` changes nothing, since the attention is soft."""
        state, embedded = self.start(encoded), self.dropout(self.embedding(target))
        recurrence = replace(state, memory=None)  # the attention comes after it
        (hidden, sentinel), _ = self.unroll(self._recur, self.project(embedded), recurrence, weights=False)
        attended, gate = self._look(hidden, sentinel, state, None)
        features = self.features(embedded, hidden, attended.context)
        return Unrolled(features, weights=attended.weights if weights else None, gates=gate)

    def _recur(
        self, inputs: Tensor, state: RecurrentState, override: Override, *, weights: bool, soft: Soft = False
    ) -> tuple[RecurrentState, Pieces, Attended | None]:
        """Run one step of the LSTM; return its state, h_t and the sentinel."""
        cell_state, (image,) = state.cells
        inputs = inputs + image
        for_gates, for_sentinel = inputs.split([inputs.shape[-1] - self.hidden, self.hidden], dim=-1)
        opened = torch.sigmoid(for_sentinel + self.sentinel_gate(cell_state[0]))
        hidden, memory = self.cell(for_gates, cell_state)
        return replace(state, cells=((hidden, memory), (image,))), (hidden, opened * torch.tanh(memory)), None

    def _look(
        self,
        hidden: Float[Tensor, "b m h"],
        sentinel: Float[Tensor, "b m h"],
        state: RecurrentState,
        override: Override,
    ) -> tuple[Attended, Float[Tensor, "b m"]]:
        """Attend to the cells and the sentinel; return the attention to the cells and 1 - beta."""
        score, memory = self._parts(state)
        query, own = score.project_query(hidden), self.sentinel_layer(sentinel)
        own_key, dtype = score.project_key(own.flatten(0, 1).unsqueeze(1)), memory.values.dtype
        with without_autocast(own.device):
            query, keys, values, own, own_key = map(widen, (query, memory.keys, memory.values, own, own_key))
            logits = score.compare(query, keys)
            # Each sentinel is compared with its own query alone, so that words become rows of the batch.
            own_logits = score.compare(query.flatten(0, 1).unsqueeze(1), own_key).view(logits.shape[:2])
            if memory.mask is not None:
                logits = logits.masked_fill(~memory.mask, -torch.inf)
            weights = masked_softmax(logits, None) if override is None else widen(override)
            # Where no cell may be attended to, this is sigmoid(-inf): all attention is on the sentinel.
            gate = torch.sigmoid(logits.logsumexp(-1) - own_logits)
            context = gate.unsqueeze(-1) * (weights @ values) + (1 - gate.unsqueeze(-1)) * own
        return Attended(context.to(dtype), weights=weights.to(dtype)), gate

    def _parts(self, state: RecurrentState) -> tuple[Score, Memory]:
        if self.attention is None or state.memory is None:
            raise TypeError("Adaptive attention needs an attention and a memory.")
        return self.attention.score, state.memory
