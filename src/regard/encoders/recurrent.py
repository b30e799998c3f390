"""Recurrent encoders: h_i = [forward_i; backward_i] (Bahdanau et al. 2015, section 3.2)."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from regard.attention import mask
from regard.encoders.encoded import Encoded
from regard.encoders.readers import reversed_order, scattered_parameters, take_words
from regard.errors import ShapeError

NETWORKS = {"gru": nn.GRU, "lstm": nn.LSTM}
PARAMETERS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


class RecurrentEncoder(nn.Module):
    """A stack of GRU or LSTM layers over packed sentences, which never read the padding.

    Dropout applies to the input of each layer; the states are those of the last layer.
    """

    def __init__(
        self,
        embedding: nn.Embedding,
        hidden: int,
        *,
        cell: str = "gru",
        num_layers: int = 1,
        bidirectional: bool = True,
        dropout: float = 0.0,
        state_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.dim = hidden * (2 if bidirectional else 1)
        self.dropout, self.state_dropout = nn.Dropout(dropout), nn.Dropout(state_dropout)
        self.network = NETWORKS[cell](
            embedding.embedding_dim,
            hidden,
            num_layers=num_layers,
            bidirectional=bidirectional,
            batch_first=True,
            dropout=dropout if num_layers > 1 else 0.0,
        )
        for name, weight in self.network.named_parameters():
            if "weight_hh" in name:
                for block in weight.data.split(hidden):
                    nn.init.orthogonal_(block)
            elif "weight_ih" in name:
                nn.init.xavier_uniform_(weight)
            else:
                nn.init.zeros_(weight)

    def forward(self, source: Int[Tensor, "b n"], lengths: Int[Tensor, "b"]) -> Encoded:
        """Encode padded sentences of these lengths."""
        if lengths.shape != source.shape[:1]:
            raise ShapeError(
                f"There must be one length per sentence; got lengths {tuple(lengths.shape)} for sentences "
                f"{tuple(source.shape)}."
            )
        embedded = self.dropout(self.embedding(source))
        if lengths.is_cuda:
            states = self.read_padded(embedded, lengths)
        else:
            positions, rows = packed_positions(lengths, source.shape[1])
            positions, lengths = (part.to(source.device, non_blocking=source.is_cuda) for part in (positions, lengths))
            read = self.network(PackedSequence(embedded.flatten(0, 1).index_select(0, positions), rows))[0].data
            states = read.new_zeros(source.numel(), self.dim).index_copy(0, positions, read).unflatten(0, source.shape)
        return Encoded(
            self.state_dropout(states), mask.padding(lengths, source.shape[1]), self._summary(states, lengths)
        )

    def read_padded(self, embedded: Float[Tensor, "b n e"], lengths: Int[Tensor, "b"]) -> Float[Tensor, "b n d"]:
        """Compute the states of padded sentences without reading their lengths, which are on a GPU.

        What reads from the end reads sentences whose words are in reverse order, with the padding behind them.
        """
        network, states = self.network, embedded
        order = reversed_order(embedded, lengths)
        is_gru = network.mode == "GRU"
        run: Any = torch._VF.gru if is_gru else torch._VF.lstm
        for layer in range(network.num_layers):
            states = functional.dropout(states, network.dropout, self.training) if layer else states
            read = []
            for end in ("", "_reverse")[: 1 + network.bidirectional]:
                words = take_words(states, order) if end else states
                parts = [getattr(network, f"{name}_l{layer}{end}") for name in PARAMETERS]
                zeros = words.new_zeros(1, len(words), network.hidden_size)
                start = zeros if is_gru else (zeros, zeros)
                with scattered_parameters():
                    # Inputs, first state, parameters, has_biases, layers, dropout, train, bidirectional, batch_first.
                    found = run(words, start, parts, True, 1, 0.0, self.training, False, True)[0]
                read.append(take_words(found, order) if end else found)
            states = torch.cat(read, dim=-1)
        exists = mask.padding(lengths, embedded.shape[1]).mT
        return states * exists

    def _summary(self, states: Float[Tensor, "b n d"], lengths: Int[Tensor, "b"]) -> Float[Tensor, "b d"]:
        last = states[torch.arange(states.shape[0], device=states.device), lengths - 1]
        if not self.network.bidirectional:
            return last
        forward, _ = last.chunk(2, dim=-1)
        _, backward = states[:, 0].chunk(2, dim=-1)
        return torch.cat([forward, backward], dim=-1)


def packed_positions(lengths: Int[Tensor, "b"], width: int) -> tuple[Int[Tensor, "w"], Int[Tensor, "n"]]:
    """Return the flat indices of the words in the order of a PackedSequence, and how many sentences have an n-th word.

    That order is all first words, then all second words, and so on, with the longest sentence first. torch's packing of
    unsorted sentences launches a kernel for each length, and waits for the GPU.
    """
    ordered, sentences = lengths.sort(descending=True)
    if not len(lengths) or ordered[-1] < 1 or ordered[0] > width:
        raise ShapeError(f"The lengths of sentences must be from 1 to {width} here; got {ordered.tolist()}.")
    words = torch.arange(int(ordered[0]), device=lengths.device).unsqueeze(1)
    is_word = words < ordered
    return (sentences * width + words)[is_word], is_word.sum(1)
