"""Caption decoders: Show and Tell reads the image once; the others attend to it for each word."""

from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.align import Hard, Soft, softmax
from regard.attention.attend import Attention, attend_memory
from regard.attention.memory import Attended, Memory
from regard.decoders.protocol import Override, Unrolled, Weights
from regard.decoders.recurrent import Cells, Look, Pieces, RecurrentDecoder, RecurrentState, unrolled
from regard.encoders.encoded import Encoded
from regard.kernels.hoisted import Columns, Hoisted
from regard.kernels.numerics import masked_softmax, widen, without_autocast
from regard.layers.cells import LSTM, uniform_


class CaptionDecoder(RecurrentDecoder):
    """Base class of the decoders that attend to an image: one LSTM, and a deep output.

    h_0 and c_0 are each tanh(W mean_i a_i). The input of the output layer is E y_(t-1) + L_h h_t + L_c c_t with the
    context c_t, so `output` takes as many features as a word has.
    """

    num_word_gates = LSTM.num_gates
    """How many vectors of the size of the state are computed from each word."""

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
        width = embedding.embedding_dim
        self.cell = LSTM(hidden)
        self.word_layer = uniform_(nn.Linear(width, self.num_word_gates * hidden))
        self.add_layers(memory_dim, hidden)
        self.deep_state = uniform_(nn.Linear(hidden, width))
        self.deep_context = uniform_(nn.Linear(memory_dim, width, bias=False))
        self.output_dropout = nn.Dropout(output_dropout)

    def add_layers(self, memory_dim: int, hidden: int) -> None:
        """Create the layers of a subclass, between those of the LSTM and those of the output."""
        raise TypeError(f"{type(self).__name__} must define add_layers(memory_dim, hidden).")

    def start_cells(self, hidden: tuple[Tensor, ...]) -> Cells:
        """Return the state of the single layer; h_0 and c_0 both come from the mean annotation."""
        return ((hidden[0], hidden[1]),)

    def features(self, embedded: Float[Tensor, "b m e"], *pieces: Float[Tensor, "b m _"]) -> Float[Tensor, "b m f"]:
        """Compute the deep output: E y + L_h h + L_c c."""
        hidden, context, *_ = pieces
        deep = embedded + self.deep_state(self.output_dropout(hidden)) + self.deep_context(context)
        dropped: Tensor = self.output_dropout(deep)
        return dropped


class ShowAttendTell(CaptionDecoder):
    """Show, Attend and Tell (Xu et al. 2015, section 3.1.2): gated attention before each step.

    The query of alpha_t is h_(t-1). z_t = beta_t sum_i alpha_ti a_i with the gate beta_t = sigmoid(f(h_(t-1))), one
    number (section 4.2.1). h_t, c_t = LSTM(E y_(t-1), h_(t-1), z_t). The input of the output layer L_o is
    E y_(t-1) + L_h h_t + L_z z_t (equation 7).
    """

    def add_layers(self, memory_dim: int, hidden: int) -> None:
        """Create the layers of the context and of the gate."""
        self.context_layer = uniform_(Hoisted(memory_dim, self.cell.num_gates * hidden, bias=False))
        self.gate_layer = uniform_(Hoisted(hidden, 1))

    def joined_layers(self, *, folded: bool) -> list[Hoisted | Columns]:
        """Return the layers that multiply h_(t-1)."""
        return [*self.query_layers(), self.gate_layer, self.cell.gates]

    def advance(self, inputs: Float[Tensor, "b g"], cells: Cells, look: Look) -> tuple[Cells, Pieces]:
        """Attend, multiply the context with the gate, then step; extras["gate"] of the attention is the gate."""
        (cell,) = cells
        last = cell[0]
        context = look(last)
        gate = torch.sigmoid(self.gate_layer(last))
        look.note(gate=gate)
        context = gate * context
        cell = self.cell(inputs + self.context_layer(context), cell)
        return (cell,), (cell[0], context, gate)

    def forward(
        self, encoded: Encoded, target: Int[Tensor, "b m"], *, weights: Weights = False, soft: Soft = False
    ) -> Unrolled:
        """Predict after each token of the target.

        With hard attention, `distribution` has the probabilities with which the keys were chosen.
        """
        state, embedded = self.start(encoded), self.dropout(self.embedding(target))
        pieces, steps = self.unroll(self.advance, self.word_layer(embedded), state, weights=bool(weights), soft=soft)
        whole = replace(unrolled(self.features(embedded, *pieces), steps), gates=pieces[2][..., 0])
        if weights and self.attention is not None and isinstance(self.attention.align, Hard):
            queries = torch.cat([state.cells[0][0].unsqueeze(1), pieces[0][:, :-1]], dim=1)
            return replace(whole, distribution=self._distribution(queries, state.memory))
        return whole

    def distribution(self, state: RecurrentState) -> Float[Tensor, "b n"]:
        """Compute the distribution over the cells from which the next step chooses, or with which it averages."""
        return self._distribution(state.cells[0][0].unsqueeze(1), state.memory)[:, 0]

    def _distribution(self, queries: Float[Tensor, "b m h"], memory: Memory | None) -> Float[Tensor, "b m n"]:
        """Compute the softmax of the logits of each step."""
        if self.attention is None or memory is None:
            raise TypeError("Show, Attend and Tell needs an attention and a memory.")
        attended = attend_memory(queries, memory, self.attention.score, softmax, weights=True)
        if attended.weights is None:
            raise TypeError("attend_memory(..., weights=True) returned no weights.")
        return attended.weights


class Adaptive(CaptionDecoder):
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

    num_word_gates = LSTM.num_gates + 1  # W y for the gates, then W_y

    def add_layers(self, memory_dim: int, hidden: int) -> None:
        """Create the layers of the image as a whole and of the sentinel."""
        self.image_layer = uniform_(nn.Linear(memory_dim, self.num_word_gates * hidden, bias=False))
        self.sentinel_gate = uniform_(Hoisted(hidden, hidden, bias=False))
        self.sentinel_layer = uniform_(nn.Linear(hidden, memory_dim))
        """W_s: a sentinel as one of the annotations."""

    def start(self, encoded: Encoded) -> RecurrentState:
        """Return the state before the first word, with what the image as a whole adds to the gates of every step."""
        state = super().start(encoded)
        image = self.image_layer(encoded.summary[:, -self.image_layer.in_features :])
        return replace(state, cells=(*state.cells, (image,)))

    def advance(self, inputs: Float[Tensor, "b g"], cells: Cells, look: Look) -> tuple[Cells, Pieces]:
        """Step, then attend; extras["gate"] of the attention is 1 - beta_t."""
        cells, (hidden, sentinel) = self._recur(inputs, cells, look)
        attended, gate = self._look(hidden.unsqueeze(1), sentinel.unsqueeze(1), look.memory, look.override)
        look.steps.append(replace(attended, extras={"gate": gate[:, 0].unsqueeze(-1)}))
        return cells, (hidden, attended.context[:, 0])

    def forward(
        self, encoded: Encoded, target: Int[Tensor, "b m"], *, weights: Weights = False, soft: Soft = False
    ) -> Unrolled:
        """Predict after each token of the target; `soft` changes nothing, since the attention is soft."""
        state, embedded = self.start(encoded), self.dropout(self.embedding(target))
        recurrence = replace(state, memory=None)  # the attention comes after it
        (hidden, sentinel), _ = self.unroll(self._recur, self.word_layer(embedded), recurrence, weights=False)
        attended, gate = self._look(hidden, sentinel, state.memory)
        features = self.features(embedded, hidden, attended.context)
        return Unrolled(features, weights=attended.weights if weights else None, gates=gate)

    def _recur(self, inputs: Tensor, cells: Cells, look: Look) -> tuple[Cells, Pieces]:
        """Run one step of the LSTM; return its state, h_t and the sentinel."""
        cell, (image,) = cells
        inputs = inputs + image
        for_gates, for_sentinel = inputs.split([inputs.shape[-1] - self.hidden, self.hidden], dim=-1)
        opened = torch.sigmoid(for_sentinel + self.sentinel_gate(cell[0]))
        hidden, memory = self.cell(for_gates, cell)
        return ((hidden, memory), (image,)), (hidden, opened * torch.tanh(memory))

    def _look(
        self,
        hidden: Float[Tensor, "b m h"],
        sentinel: Float[Tensor, "b m h"],
        memory: Memory | None,
        override: Override = None,
    ) -> tuple[Attended, Float[Tensor, "b m"]]:
        """Attend to the cells and the sentinel; return the attention to the cells and 1 - beta."""
        if self.attention is None or memory is None:
            raise TypeError("Adaptive attention needs an attention and a memory.")
        score = self.attention.score
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

    def advance(self, inputs: Float[Tensor, "b g"], cells: Cells, look: Look) -> tuple[Cells, Pieces]:
        """Run one step of the LSTM."""
        cell = self.cell(inputs, cells[0])
        return (cell,), (cell[0],)

    def features(self, embedded: Float[Tensor, "b m e"], *pieces: Float[Tensor, "b m _"]) -> Float[Tensor, "b m f"]:
        """Return h_t."""
        dropped: Tensor = self.output_dropout(pieces[0])
        return dropped
