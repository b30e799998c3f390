"""Guided attention: a loss that pulls attention weights to where they should be (Mi et al. 2016, Chen et al. 2016).

It takes the weights of any attention, of `attend`, of one head or of a decoder, and a mask of the right positions:

    attended = attend(query, key, weights=True)
    loss = task_loss + 0.5 * guidance_loss(attended.weights, right)
"""

from jaxtyping import Bool, Float
from torch import Tensor

from regard.errors import ShapeError

SMALLEST_MASS = 1e-8
"""Added to the attention on the right positions, so that a weight of exactly 0 has a finite loss."""


def guidance_loss(
    weights: Float[Tensor, "*b q k"], right: Bool[Tensor, "*b q k"] | Float[Tensor, "*b q k"]
) -> Float[Tensor, ""]:
    """Compute -log sum_(k right) weight_qk, the attention that falls on right keys, as a mean over the guided queries.

    A query whose right keys are unknown has none in `right`, and adds nothing: examples may be guided in part. With
    several right keys (the subwords of a word, the cells of a box), the query is free to choose among them. `right` may
    also say how right each key is, from 0 to 1, by which its weight is multiplied. Without any guided query the loss
    is 0.
    """
    if weights.shape != right.shape:
        raise ShapeError(
            "guidance_loss needs a mask of the shape of the weights; got weights "
            f"{tuple(weights.shape)} and right {tuple(right.shape)}."
        )
    mass = (weights.float() * right).sum(-1)
    is_guided = right.any(-1)
    losses = -(mass + SMALLEST_MASS).log() * is_guided
    return losses.sum() / is_guided.sum().clamp_min(1)
