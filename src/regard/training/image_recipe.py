"""What a recipe for an image classifier says."""

from dataclasses import dataclass, field
from typing import Literal

from regard.systems.image_classifier import ImageClassifierConfig


@dataclass(frozen=True)
class ImageDataConfig:
    """Which pictures to learn from."""

    folder: str = "."
    """Folder with the files."""
    format: Literal["mnist", "cifar10", "folders"] = "folders"
    """mnist: four IDX files; cifar10: binary files, their archive, or mosaics; folders: one for each class."""
    test_folder: str = ""
    """folders: the test pictures, sorted in the same way."""
    held_out: int = 1000
    """How many training pictures are held out for validation, at most a tenth of them."""
    held_out_test: int = 0
    """folders: how many more are held out for a test, where there is no test_folder."""


@dataclass(frozen=True)
class ImageTrainConfig:
    """How to learn from pictures."""

    epochs: int = 20
    """Most passes over the data."""
    minutes: float = 0.0
    """Most time, 0 for any; the step size then falls with the time, so that training ends well where it ends."""
    batch: int = 128
    """Pictures in a batch."""
    optimizer: Literal["adam", "sgd"] = "adam"
    """adam: AdamW; sgd: with Nesterov momentum."""
    momentum: float = 0.9
    """sgd: how much of the last step is kept."""
    learning_rate: float = 1e-3
    """The highest step size."""
    schedule: Literal["one_cycle", "inverse_sqrt", "constant", "plateau"] = "one_cycle"
    """How the step size rises and falls; plateau: halved after each validation that is not better, down to 1 %."""
    warmup: float = 0.1
    """Share of the steps in which the step size rises."""
    label_smoothing: float = 0.0
    """Probability given to all other classes."""
    clip: float = 0.0
    """Largest norm of the gradients; 0 for any."""
    weight_decay: float = 0.0
    """Decay of the weights; biases and normalisations have none."""
    average: float = 0.0
    """Decay of the running average of the weights that is evaluated and kept; 0 for none."""
    crop: int = 0
    """Pixels by which pictures are moved at random, up or down, left or right."""
    flip: bool = False
    """Show half of the pictures in a mirror."""
    cutout: int = 0
    """Height and width of a square that is blanked at random; 0 for none."""
    pretrained: bool = False
    """efficientnet_lite0 and networks of timm: begin with published weights."""
    validate_every: int = 1
    """Epochs between validations."""
    checkpoint_minutes: float = 30.0
    """Minutes between checkpoints within an epoch, for --resume; 0 for only one after each epoch."""
    patience: int = 0
    """Validations without a better accuracy before training ends; 0 for no early end."""
    precision: Literal["auto", "32-true", "bf16-mixed", "16-mixed"] = "auto"
    """auto: bfloat16 on a GPU, float32 otherwise."""
    seed: int = 1
    """Decides everything that is random."""


@dataclass(frozen=True)
class ImageRecipe:
    """A whole experiment with pictures."""

    data: ImageDataConfig = field(default_factory=ImageDataConfig)
    model: ImageClassifierConfig = field(default_factory=ImageClassifierConfig)
    train: ImageTrainConfig = field(default_factory=ImageTrainConfig)


IMAGE_TABLES: dict[str, type] = {"data": ImageDataConfig, "model": ImageClassifierConfig, "train": ImageTrainConfig}
