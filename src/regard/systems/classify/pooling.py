"""Pooling the states of a sequence into one vector: by attention, by their average, or by their maximum.

The sequences are packed, not padded: `owners` says which sequence each state belongs to. So padding can change nothing,
and the cost depends on the number of states alone, however different the lengths are.
"""

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.score import Context
from regard.kernels.numerics import widen

Pool = Literal["attention", "average", "max"]
States = Float[Tensor, "n d"]
Owners = Int[Tensor, "n"]
Pooled = tuple[Float[Tensor, "s d"], Float[Tensor, "n"]]


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
        owners: Owners,
        count: int,
        *,
        values: Float[Tensor, "n v"] | None = None,
        override: Float[Tensor, "n"] | None = None,
    ) -> tuple[Float[Tensor, "s v"], Float[Tensor, "n"]]:
        """Pool the states of `count` sequences; `values` are read in place of the states that decide the weights.

        `override` replaces the weights of attention.
        """
        values = states if values is None else values
        if override is not None:
            return weighted_sum(values, override, owners, count), override
        match self.pool:
            case "max":
                return _maximum(values, owners, count)
            case "average":
                ones = states.new_ones(len(states))
                weights = ones / _sums(ones, owners, count)[owners]
            case _:
                weights = softmax_by_owner(self.logits(states), owners, count)
        return weighted_sum(values, weights, owners, count), weights

    def logits(self, states: States) -> Float[Tensor, "n"]:
        """The score of each state, in float32 at least."""
        score = self.score
        assert score is not None  # noqa: S101 -- only attention has scores
        return widen(widen(score.project_key(states)) @ widen(score.query[0]))


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
    places = owners.unsqueeze(-1).expand_as(states)
    largest = states.new_full((count, states.shape[1]), -torch.inf).scatter_reduce(0, places, states, "amax")
    taken = (states == largest[owners]).float().sum(-1).detach()
    return largest, taken / _sums(taken, owners, count)[owners]
