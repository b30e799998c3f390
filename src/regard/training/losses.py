"""Losses: cross-entropy of words and classes, and REINFORCE with its baselines for choices that were sampled.

REINFORCE (Williams 1992): loss = -(reward - baseline) log p(choice). The baseline does not depend on the choice, so it
changes the variance of the gradient but not its mean.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from regard.attention import mask


def smoothed_cross_entropy(
    logits: Float[Tensor, "n y"],
    targets: Int[Tensor, "n"],
    *,
    smoothing: float,
    real: Bool[Tensor, "n"] | None = None,
) -> tuple[Float[Tensor, ""], Float[Tensor, "n"]]:
    """The mean cross-entropy with label smoothing, and the plain negative log-likelihood of each target.

    loss = (1 - smoothing) * mean(nll) - smoothing * mean(log p): `smoothing` of the probability is spread evenly over
    all words (Szegedy et al. 2016, section 7). The means are over the targets that are `real`, or over all.
    """
    log_probs = functional.log_softmax(logits, dim=-1)
    nll = functional.nll_loss(log_probs, targets, reduction="none")
    loss = mean_where(nll, real)
    if smoothing:
        spread = log_probs.mean() if real is None else mean_where(log_probs.mean(-1), real)
        loss = (1 - smoothing) * loss - smoothing * spread
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
    """-(reward - baseline) log p(choice), averaged over the positions where something was chosen."""
    return -mean_where(advantage * log_prob, chosen)


def advantage_over_others(reward: Float[Tensor, "s *n"]) -> Float[Tensor, "s *n"]:
    """The reward of each sample minus the mean reward of the other samples of the same input (along the first axis)."""
    return reward - (reward.sum(0) - reward) / (len(reward) - 1)


def mean_where(values: Float[Tensor, "*n"], chosen: Bool[Tensor, "*n"] | None) -> Float[Tensor, ""]:
    """The mean over the positions that are true in `chosen`, or over all; 0 where there is none."""
    if chosen is None:
        return values.mean()
    return (values * chosen).sum() / chosen.sum().clamp_min(1)


def real_tokens(
    lengths: Int[Tensor, "b"], tokens: Int[Tensor, "b n"]
) -> tuple[Callable[[Tensor], Tensor], Bool[Tensor, "b*n"] | None]:
    """Return what takes, of tensors of a batch of padded sentences, the tokens that count; and which of them do.

    Padding gets no logits, since the output layer is the largest product: the tokens taken are those before the end of
    each sentence, and all of them count (None). Lengths on a GPU belong to an update that is recorded, whose shapes
    cannot depend on them: all tokens are taken then.
    """
    is_token = mask.padding(lengths, tokens.shape[1]).flatten()
    if is_token.is_cuda:
        return lambda tensor: tensor.flatten(0, 1), is_token
    # The positions are found on the CPU: asking a GPU for them would wait for it.
    positions = is_token.nonzero().squeeze(1).to(tokens.device, non_blocking=tokens.is_cuda)
    return lambda tensor: tensor.flatten(0, 1).index_select(0, positions), None
