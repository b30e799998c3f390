"""Losses: cross-entropy of words and classes, and REINFORCE with its baselines for choices that were sampled.

REINFORCE (Williams 1992): loss = -(reward - baseline) log p(choice). The baseline does not depend on the choice, so it
changes the variance of the gradient but not its mean.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional


def smoothed_cross_entropy(
    logits: Float[Tensor, "n y"], targets: Int[Tensor, "n"], *, smoothing: float
) -> tuple[Float[Tensor, ""], Float[Tensor, "n"]]:
    """The mean cross-entropy with label smoothing, and the plain negative log-likelihood of each target.

    loss = (1 - smoothing) * mean(nll) - smoothing * mean(log p): `smoothing` of the probability is spread evenly over
    all words (Szegedy et al. 2016, section 7).
    """
    log_probs = functional.log_softmax(logits, dim=-1)
    nll = functional.nll_loss(log_probs, targets, reduction="none")
    loss = nll.mean() if not smoothing else (1 - smoothing) * nll.mean() - smoothing * log_probs.mean()
    return loss, nll


class RunningBaseline(nn.Module):
    """The baseline is a running mean of the reward: b <- 0.9 b + 0.1 reward (Xu et al. 2015, section 4.1)."""

    mean: Float[Tensor, ""]

    def __init__(self, momentum: float = 0.1) -> None:
        super().__init__()
        self.momentum = momentum
        self.register_buffer("mean", torch.zeros(()))

    def advantage(self, reward: Float[Tensor, "*n"], chosen: Bool[Tensor, "*n"] | None = None) -> Float[Tensor, "*n"]:
        """reward - baseline; afterwards the baseline moves towards the mean reward where something was chosen."""
        advantage = reward - self.mean
        self.mean.lerp_(mean_where(reward, chosen), self.momentum)
        return advantage


def reinforce_loss(
    advantage: Float[Tensor, "*n"], log_prob: Float[Tensor, "*n"], chosen: Bool[Tensor, "*n"] | None = None
) -> Float[Tensor, ""]:
    """-(reward - baseline) log p(choice), averaged over the places where something was chosen."""
    return -mean_where(advantage * log_prob, chosen)


def advantage_over_others(reward: Float[Tensor, "s *n"]) -> Float[Tensor, "s *n"]:
    """The reward of each sample minus the mean reward of the other samples of the same input (along the first axis)."""
    return reward - (reward.sum(0) - reward) / (len(reward) - 1)


def mean_where(values: Float[Tensor, "*n"], chosen: Bool[Tensor, "*n"] | None) -> Float[Tensor, ""]:
    """The mean over the places that are true in `chosen`, or over all; 0 where there is none."""
    if chosen is None:
        return values.mean()
    return (values * chosen).sum() / chosen.sum().clamp_min(1)
