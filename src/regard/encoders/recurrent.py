"""Recurrent encoders: h_i = [forward_i; backward_i] (Bahdanau et al. 2015, section 3.2)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.attention import mask
from regard.encoders.encoded import Encoded

NETWORKS = {"gru": nn.GRU, "lstm": nn.LSTM}


class RecurrentEncoder(nn.Module):
    """A stack of GRU or LSTM layers over packed sentences, so that padding is never read.

    Each layer has its own dropout on its input; the states are those of the last layer.
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
        """Encode sentences of these lengths."""
        embedded = self.dropout(self.embedding(source))
        packed = pack_padded_sequence(embedded, lengths.cpu(), batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.network(packed)[0], batch_first=True, total_length=source.shape[1])
        return Encoded(
            self.state_dropout(states), mask.padding(lengths, source.shape[1]), self._summary(states, lengths)
        )

    def _summary(self, states: Float[Tensor, "b n d"], lengths: Int[Tensor, "b"]) -> Float[Tensor, "b d"]:
        last = states[torch.arange(states.shape[0], device=states.device), lengths - 1]
        if not self.network.bidirectional:
            return last
        forward, _ = last.chunk(2, dim=-1)
        _, backward = states[:, 0].chunk(2, dim=-1)
        return torch.cat([forward, backward], dim=-1)
