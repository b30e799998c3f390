"""The options of `glimpse`, and what a model is evaluated on."""

from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from regard.config import Checked, Count, PositiveInt, Probability


@dataclass(frozen=True)
class GlimpseOptions(Checked):
    """Options of `glimpse`."""

    policy: Literal["model", "learned", "random", "center"] = "model"
    """Who chooses the locations: model (as it was trained), the learned policy, random (uniform), center (always the
    centre of the image)."""
    num_glimpses: Count = 0
    """How many glimpses to take; 0 for as many as the model was trained with."""
    passes: PositiveInt = 1
    """Number of passes whose probabilities are averaged (Monte Carlo). One pass looks at the mean of the policy; of
    several, each looks at locations drawn from it."""
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 0
    """Random seed of the sampled locations."""


@dataclass(frozen=True)
class GlimpseTest(Checked):
    """What a glimpse model is evaluated on: images of digits that are drawn as in training."""

    folder: str = ""
    """Folder with the IDX files of MNIST; without one, digits of fonts that no model was trained on."""
    pieces: Count = 0
    """Pieces of other digits that clutter each image."""
    piece_size: PositiveInt = 8
    """Height and width of a piece in pixels."""
    distortion: Probability = 0.0
    """How much digits are rotated, sheared and scaled at random, from 0 to 1."""
    examples: Count = 0
    """How many images; 0 for 10,000 of MNIST (each test digit once) or 2,000 of fonts."""
    passes: PositiveInt = 1
    """Passes whose probabilities are averaged; scores are usually those of one pass."""
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 1
    """Seed of the images."""
