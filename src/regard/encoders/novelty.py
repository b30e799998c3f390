"""Novelty detection: how unlike its training images an image is, by what their principal components leave out."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import OptionError

COMPONENTS = 128
"""Principal components of the training images, at most half as many as there are features."""
FALSE_ALARMS = 0.05
"""Share of held-out images, which are like the training images, that are called foreign."""


class Novelty(nn.Module):
    """The distance of an image's mean features x from the principal subspace of the training images.

    r(x) = |(x - m) - V V' (x - m)|, divided by the residual that 5 % of held-out images exceed (Wang et al. 2022,
    section 3). Above 1, an image is unlike the training images: foreign. The subspace is saved with the model, and is
    not trained.
    """

    mean: Float[Tensor, "d"]
    components: Float[Tensor, "d k"]
    threshold: Float[Tensor, "1"]
    """The residual that 5 % of held-out images exceed."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("components", torch.eye(features, min(COMPONENTS, features // 2)))
        self.register_buffer("threshold", torch.ones(1))

    def fit(self, training: Float[Tensor, "n d"], held_out: Float[Tensor, "h d"]) -> None:
        """Take the principal components of training images, and the threshold of held-out ones."""
        if len(training) < 2 or not len(held_out):
            raise OptionError(
                "Novelty needs at least two training images and a held-out one; got "
                f"{len(training)} and {len(held_out)}."
            )
        samples = training.double()
        centred = samples - samples.mean(0)
        # Eigenvalues are in ascending order.
        _, vectors = torch.linalg.eigh(centred.T @ centred / len(samples))
        self.mean.copy_(samples.mean(0))
        self.components.copy_(vectors[:, -self.components.shape[1] :])
        self.threshold.fill_(1)
        self.threshold.fill_(self(held_out.to(self.mean)).quantile(1 - FALSE_ALARMS))

    def forward(self, features: Float[Tensor, "b d"]) -> Float[Tensor, "b"]:
        """Compute how unlike the training images each image is; above 1 it is foreign."""
        centred = features.float() - self.mean
        left_out: Tensor = (centred - centred @ self.components @ self.components.T).norm(dim=-1)
        return left_out / self.threshold
