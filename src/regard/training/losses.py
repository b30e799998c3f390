"""Losses of predicted words and classes."""

from jaxtyping import Float, Int
from torch import Tensor
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
