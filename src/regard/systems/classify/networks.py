"""The networks of a document classifier: they read packed sequences, and pool their states to one vector each."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from regard.attention import mask
from regard.attention.attend import Attention
from regard.attention.score import Context
from regard.kernels.numerics import widen
from regard.parts import build_part
from regard.systems.assembly import build_align, build_score
from regard.systems.classify.config import ClassificationConfig, Pool
from regard.systems.classify.data import Packing

States = Float[Tensor, "n d"]
Owners = Int[Tensor, "n"]
Pooled = tuple[Float[Tensor, "s v"], Float[Tensor, "n"]]


class Pooling(nn.Module):
    """One vector per sequence, and how much each state contributed to it.

    attention: u_i = tanh(W h_i + b), weights = softmax(u_i' u), sum of weights_i h_i (Yang et al. 2016, section 2.2).
    average: equal weights. max: the largest value of each feature; the weight of a state is the fraction of features
    that are taken from it.
    """

    def __init__(self, pool: Pool, dim: int, attention_dim: int) -> None:
        super().__init__()
        self.pool = pool
        self.score = Context(1, dim, attention_dim) if pool == "attention" else None

    def forward(
        self,
        states: States,
        packing: Packing,
        *,
        values: Float[Tensor, "n v"] | None = None,
        override: Float[Tensor, "n"] | None = None,
    ) -> Pooled:
        """Pool packed states; `values` are read in place of the states that decide the weights.

        `override` replaces the weights of attention.
        """
        values, owners, count = states if values is None else values, packing.owners, packing.count
        if override is not None:
            return weighted_sum(values, override, owners, count), override
        match self.pool:
            case "max":
                return _maximum(values, owners, count)
            case "average":
                ones = states.new_ones(len(states))
                weights = ones / _sums(ones, owners, count)[owners]
            case _:
                weights = self.weigh(states, packing)
        return weighted_sum(values, weights, owners, count), weights

    def weigh(self, states: States, packing: Packing) -> Float[Tensor, "n"]:
        """The attention weights of packed states."""
        return softmax_by_owner(self.logits(states), packing.owners, packing.count)

    def logits(self, states: States) -> Float[Tensor, "n"]:
        """The score of each state, in float32 at least."""
        score = self.score
        assert score is not None  # noqa: S101 -- only attention has scores
        return widen(widen(score.project_key(states)) @ widen(score.query[0]))


class AttentionPooling(Pooling):
    """Pooling by any score and alignment: the states of each sequence are keys that a learned query attends to."""

    def __init__(self, attention: Attention, query_dim: int) -> None:
        super().__init__("average", 0, 0)
        self.pool, self.attention = "attention", attention
        has_query = attention.score.learned_query() is not None
        self.query = None if has_query else nn.Parameter(torch.randn(1, query_dim) / query_dim**0.5)

    def weigh(self, states: States, packing: Packing) -> Float[Tensor, "n"]:
        """The attention weights of packed states."""
        padded, lengths = _padded(states, packing)
        memory = self.attention.remember(padded, mask.padding(lengths, padded.shape[1]).to(padded.device))
        query = None if self.query is None else self.query.expand(len(padded), -1, -1)
        weights = self.attention(query, memory, weights=True).weights
        return pack_padded_sequence(weights.mT, lengths, batch_first=True).data[:, 0]


def build_pooling(config: ClassificationConfig, dim: int) -> Pooling:
    """The pooling of a config for states of `dim` features."""
    inner = config.attention_dim or dim
    if (config.score, config.align) == ("context", "softmax"):
        return Pooling(config.pool, dim, inner)
    sizes = {"query_dim": inner, "key_dim": dim, "dim": inner}
    score = Context(1, dim, inner) if config.score == "context" else build_score(config.score, sizes)
    return AttentionPooling(Attention(score, build_align(config.align, sizes)), inner)


def build_encoder(config: ClassificationConfig, input_dim: int) -> tuple[nn.Module, int]:
    """The network that reads sequences, and the number of features of its states."""
    if config.encoder == "gru":
        return _bidirectional_gru(input_dim, config.hidden), 2 * config.hidden
    built: Any = build_part(config.encoder, {"input_dim": input_dim, "hidden": config.hidden})
    return built, int(built.dim)


def run_packed(network: nn.Module, inputs: Float[Tensor, "n e"], packing: Packing) -> States:
    """The states of packed sequences, in packed order; a custom network reads them padded."""
    if isinstance(network, nn.GRU):
        states: Tensor = network(PackedSequence(inputs, packing.rows))[0].data
        return states
    padded, lengths = _padded(inputs, packing)
    return pack_padded_sequence(network(padded, lengths), lengths, batch_first=True).data


def _padded(packed: Float[Tensor, "n d"], packing: Packing) -> tuple[Float[Tensor, "s m d"], Int[Tensor, "s"]]:
    """Packed sequences with padding, the longest first, and their lengths."""
    return pad_packed_sequence(PackedSequence(packed, packing.rows), batch_first=True)


def _bidirectional_gru(inputs: int, hidden: int) -> nn.GRU:
    """A bidirectional GRU with orthogonal recurrent parameters."""
    network = nn.GRU(inputs, hidden, bidirectional=True, batch_first=True)
    for name, parameter in network.named_parameters():
        if "weight_hh" in name:
            for block in parameter.data.split(hidden):
                nn.init.orthogonal_(block)
        elif "weight_ih" in name:
            nn.init.xavier_uniform_(parameter)
        else:
            nn.init.zeros_(parameter)
    return network


def softmax_by_owner(logits: Float[Tensor, "n"], owners: Owners, count: int) -> Float[Tensor, "n"]:
    """Softmax over the logits of each sequence."""
    largest = logits.new_full((count,), -torch.inf).scatter_reduce(0, owners, logits.detach(), "amax")
    powers = (logits - largest[owners]).exp()
    return powers / _sums(powers, owners, count)[owners]


def weighted_sum(states: States, weights: Float[Tensor, "n"], owners: Owners, count: int) -> Float[Tensor, "s d"]:
    """The sum of weight x state over each sequence."""
    scaled = weights.to(states.dtype).unsqueeze(-1) * states
    return states.new_zeros(count, states.shape[1]).index_add(0, owners, scaled)


def _sums(numbers: Float[Tensor, "n"], owners: Owners, count: int) -> Float[Tensor, "s"]:
    return numbers.new_zeros(count).index_add(0, owners, numbers)


def _maximum(states: States, owners: Owners, count: int) -> Pooled:
    index = owners.unsqueeze(-1).expand_as(states)
    largest = states.new_full((count, states.shape[1]), -torch.inf).scatter_reduce(0, index, states, "amax")
    taken = (states == largest[owners]).sum(-1, dtype=torch.promote_types(states.dtype, torch.float32))
    return largest, taken / _sums(taken, owners, count)[owners]
