"""RNNsearch: a recurrent decoder that attends before each step."""

from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.attend import Attention
from regard.decoders.recurrent import Cells, Look, Pieces, RecurrentDecoder
from regard.kernels.hoisted import Columns, Hoisted
from regard.layers.cells import CELLS, uniform_


class Bahdanau(RecurrentDecoder):
    """RNNsearch (Bahdanau et al. 2015, appendix A.2.2): attention before each step.

    The query of alpha_t is s_(t-1). s_t = GRU(y_(t-1), c_t, s_(t-1)), where c_t enters the reset gate, the update gate
    and the candidate. The deep output is a maxout of U s_(t-1) + V y_(t-1) + C c_t, or with `output_after` of U s_t and
    the others: the lectures' g(y_(t-1), s_t, c_t). s_0 = tanh(W h_1 backward), so `summary_dim` is the size of the
    backward state, the last part of the encoder's summary.

    `conditional` is the variant of later systems (Sennrich et al. 2017, appendix A): a first GRU reads the word, its
    state is the query, a second GRU reads the context, and the output depends on the new state.
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
        output_after: bool = False,
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
        self.conditional, self.output_after = conditional, output_after
        self.cell = CELLS[cell](hidden)
        self.second_cell = CELLS[cell](hidden) if conditional else None
        gates = self.cell.num_gates * hidden
        self.word_layer = uniform_(nn.Linear(embedding.embedding_dim, gates))
        self.context_layer = uniform_(Hoisted(memory_dim, gates, bias=conditional))
        self.deep_state = uniform_(nn.Linear(hidden, 2 * output_dim))
        self.deep_word = uniform_(nn.Linear(embedding.embedding_dim, 2 * output_dim, bias=False))
        self.deep_context = uniform_(nn.Linear(memory_dim, 2 * output_dim, bias=False))
        self.output_dropout = nn.Dropout(output_dropout)

    def start_cells(self, hidden: tuple[Tensor, ...]) -> Cells:
        """Return the state of the single layer."""
        return (self.cell.start(hidden[0]),)

    def folded_layer(self) -> Hoisted:
        """Return the layer of the context."""
        return self.context_layer

    def joined_layers(self, *, folded: bool) -> list[Hoisted | Columns]:
        """Return the layers that multiply the state with which the decoder attends."""
        return [*self.query_layers(), (self.cell if self.second_cell is None else self.second_cell).gates]

    def advance(self, inputs: Float[Tensor, "b g"], cells: Cells, look: Look) -> tuple[Cells, Pieces]:
        """Attend, then step; if conditional, step, attend, step."""
        (cell,) = cells
        if self.second_cell is not None:
            cell = self.cell(inputs, cell)
            if look.folded:
                cell = self.second_cell(look.into(cell[0], None) + self.context_layer.bias, cell)
                return (cell,), (cell[0], None)
            context = look(cell[0])
            cell = self.second_cell(self.context_layer(context), cell)
            return (cell,), (cell[0], context)
        last = cell[0]
        read = None if look.folded else look(last)
        gates = look.into(last, inputs) if read is None else inputs + self.context_layer(read)
        cell = self.cell(gates, cell)
        return (cell,), (cell[0] if self.output_after else last, read)

    def features(self, embedded: Float[Tensor, "b m e"], *pieces: Float[Tensor, "b m _"]) -> Float[Tensor, "b m f"]:
        """Compute the deep output: the maximum of each pair of units of U s + V y + C c."""
        hidden, context = pieces
        deep = self.deep_state(hidden) + self.deep_word(embedded) + self.deep_context(context)
        dropped: Tensor = self.output_dropout(deep.unflatten(-1, (-1, 2)).amax(-1))
        return dropped
