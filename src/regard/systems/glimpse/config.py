"""The settings of a glimpse model: its parts, options, data, training and test set."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from regard.config import Checked, Count, Fraction, Names, NonNegativeFloat, PositiveFloat, PositiveInt, Probability
from regard.errors import OptionError
from regard.systems.config import Arguments, Options
from regard.training.settings import TrainSettings

Policy = Literal["learned", "random", "center"]
MAX_IMAGE_SIZE = 8192
MAX_GLIMPSES = 1000
"""What a model can be asked for without taking the memory of the machine."""


@dataclass(frozen=True)
class GlimpsesConfig(Checked):
    """The parts of a glimpse model."""

    image_size: PositiveInt = 60
    """Height and width of an image in pixels. Larger images are made smaller; smaller ones get a dark border."""
    channels: Literal[1, 3] = 1
    """1 for grey images, 3 for RGB."""
    light_on_dark: bool = True
    """Invert images whose border is bright, since digits are learned light on dark."""
    num_glimpses: PositiveInt = 6
    """Number of glimpses."""
    glimpse_size: PositiveInt = 12
    """Height and width of a glimpse in pixels."""
    num_scales: PositiveInt = 3
    """Scales of the retina; each sees twice as far as the one before it, and half as sharply."""
    what: Annotated[str, Names(("linear", "convolution"))] = "linear"
    """The encoder of a glimpse: a linear layer (Mnih et al. 2014), two convolutions, or a custom one."""
    glimpse_dim: PositiveInt = 128
    """Units for what is seen, and for where."""
    hidden: PositiveInt = 256
    """Units of the core."""
    core: Annotated[str, Names(("lstm", "rnn"))] = "lstm"
    """The recurrent core: an LSTM, a plain network with ReLU (Mnih et al. 2014), or a custom cell, such as
    torch.nn:GRUCell."""
    locator_dim: PositiveInt = 128
    """Units of the hidden layer of the location policy."""
    policy: Policy = "learned"
    """Who chooses the locations: the learned policy, or as baselines random (uniform) or center (always the centre)."""
    location_noise: PositiveFloat = 0.05
    """Standard deviation of the locations around the mean of the policy, where 2 is the width of the image."""

    def check(self) -> None:
        """Refuse what would take too much memory, and fields that contradict each other."""
        for name, limit in (("image_size", MAX_IMAGE_SIZE), ("num_glimpses", MAX_GLIMPSES)):
            if (value := getattr(self, name)) > limit:
                raise OptionError(f"{name} must be at most {limit}; got {value}.")
        widest = self.glimpse_size * 2 ** min(self.num_scales - 1, 64)
        if widest > 4 * self.image_size:
            raise OptionError(
                f"A retina of {self.num_scales} scales from {self.glimpse_size} pixels sees {widest} pixels, more than "
                f"four times image_size {self.image_size}. Set fewer scales or a smaller glimpse_size."
            )


@dataclass(frozen=True)
class GlimpsesOptions(Options):
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
class GlimpsesArguments(Arguments):
    """What the command takes beside images."""

    crop: str | None = None
    """Save the attended part of the image to this file."""

    def check(self) -> None:
        """Refuse a file that no image can be saved to."""
        if self.crop is not None:
            image_format(self.crop)

    @property
    def writes(self) -> Mapping[str, str]:
        """The part of the image."""
        return {} if self.crop is None else {"--crop": self.crop}


def image_format(path: str) -> str:
    """The format that an image of this name is saved in."""
    from PIL import Image

    form = Image.registered_extensions().get(Path(path).suffix.lower())
    if form is None or form not in Image.SAVE:
        raise OptionError(f"--crop saves an image, such as FILE.png or FILE.jpg; got {Path(path).name!r}.")
    return form


@dataclass(frozen=True)
class DrawnDigits(Checked):
    """How digits are drawn into images."""

    folder: str = ""
    """Folder with the IDX files of MNIST; without one, digits of fonts, some of which are kept for tests."""
    pieces: Count = 0
    """Pieces of other digits that clutter each image."""
    piece_size: PositiveInt = 8
    """Height and width of a piece in pixels."""
    distortion: Probability = 0.0
    """How much digits are rotated, sheared and scaled at random, from 0 to 1."""


@dataclass(frozen=True)
class GlimpsesData(DrawnDigits):
    """Which digits to learn from, and how they are drawn into images."""

    distort_tests: bool = False
    """Distort the digits of validation and test images as well."""
    examples: Count = 0
    """Images in an epoch, each drawn anew; 0 for one of each training digit of MNIST, or 20,000 of fonts."""
    held_out: PositiveInt = 5000
    """MNIST: number of training digits held out for validation. Fonts: number of validation images."""
    test_examples: Count = 0
    """Number of test images; 0 for 10,000 of MNIST (each test digit once) or 2,000 of fonts."""


@dataclass(frozen=True)
class GlimpsesTrain(TrainSettings):
    """How to train a glimpse model."""

    warmup: Fraction = 0.02
    batch_size: Count = 0
    """Images in a batch; 0 chooses 512, or fewer where an epoch would have fewer than 20 batches."""
    reinforce_weight: NonNegativeFloat = 0.1
    """Weight of the REINFORCE term, which teaches the policy, beside the cross-entropy of the class."""
    baseline_weight: NonNegativeFloat = 1.0
    """Weight of the squared error of the baseline, the reward that is expected before each glimpse."""
    belief_weight: NonNegativeFloat = 0.0
    """Weight of the mean cross-entropy after the earlier glimpses; 0 to teach only the last answer."""
    first_noise: PositiveFloat = 0.25
    """Standard deviation of the locations around the mean of the policy at first; it falls to model.location_noise."""


@dataclass(frozen=True)
class GlimpsesTest(DrawnDigits):
    """What a glimpse model is evaluated on: images of digits that are drawn as in training."""

    examples: Count = 0
    """How many images; 0 for 10,000 of MNIST (each test digit once) or 2,000 of fonts."""
    passes: PositiveInt = 1
    """Passes whose probabilities are averaged; scores are usually those of one pass."""
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 1
    """Seed of the images."""
