"""Novelty detection: how unlike its training images an image is, by the Mahalanobis distance (Lee et al. 2018)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import OptionError

FALSE_ALARMS = 0.05
"""Share of held-out images, which are like the training images, that are called foreign."""
SHRINKAGE = 0.05
"""Weight of the mean variance in the covariance, so that directions that hardly vary count for little."""


class Novelty(nn.Module):
    """The Mahalanobis distance of an image's mean features x from those of the training images.

    d(x) = sqrt((x - m)' S^-1 (x - m)), divided by the distance that 5 % of held-out images exceed (section 2.1 of Lee
    et al. 2018, with one class). Above 1, an image is unlike the training images: foreign. The Gaussian is saved with
    the model, and is not trained.
    """

    mean: Float[Tensor, "d"]
    whitening: Float[Tensor, "d d"]
    """W with S^-1 = W W', divided by the threshold."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("whitening", torch.eye(features))

    def fit(self, training: Float[Tensor, "n d"], held_out: Float[Tensor, "k d"]) -> None:
        """Take the Gaussian of training images, and the threshold of held-out ones."""
        if len(training) < 2 or not len(held_out):
            raise OptionError(
                "Novelty needs at least two training images and a held-out one; got "
                f"{len(training)} and {len(held_out)}."
            )
        samples = training.double()
        mean = samples.mean(0)
        covariance = (samples - mean).T @ (samples - mean) / len(samples)
        variance = covariance.diagonal().mean() * torch.eye(len(mean), dtype=covariance.dtype, device=covariance.device)
        values, vectors = torch.linalg.eigh((1 - SHRINKAGE) * covariance + SHRINKAGE * variance)
        self.mean.copy_(mean)
        self.whitening.copy_(vectors / values.sqrt())
        self.whitening /= self(held_out.to(self.mean)).quantile(1 - FALSE_ALARMS)

    def forward(self, features: Float[Tensor, "b d"]) -> Float[Tensor, "b"]:
        """Compute how unlike the training images each image is; above 1 it is foreign."""
        return ((features.float() - self.mean) @ self.whitening).norm(dim=-1)
