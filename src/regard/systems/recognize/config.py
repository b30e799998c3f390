"""The settings of an image classifier: its parts, options, data, training and test set."""

from dataclasses import dataclass
from typing import Annotated, Literal

from regard.config import Checked, Count, Fraction, Names, NonNegativeFloat, PositiveInt
from regard.errors import OptionError
from regard.systems.config import Options
from regard.training.settings import TrainSettings

NETWORKS = (
    "lenet5",
    "alexnet",
    "convnetjs_mnist",
    "convnetjs_cifar",
    "small_vgg",
    "vgg11",
    "vgg16",
    "vgg19",
    "efficientnet_lite0",
    "efficientnet_lite2",
)
"""The networks of `encoders.image_networks`, which are named here so that a recipe can be read without torch."""


@dataclass(frozen=True)
class RecognitionConfig(Checked):
    """The parts of an image classifier."""

    architecture: Annotated[str, Names(NETWORKS, prefixes=("timm:",))] = "small_vgg"
    """The convolutional network; timm:NAME is a network of the package timm."""
    channels: Literal[1, 3] = 3
    """1 for grey images, 3 for RGB."""
    image_size: PositiveInt = 32
    """Height and width of an image in pixels; other images are resized to it."""
    resize: Literal["center_crop", "mnist"] = "center_crop"
    """How other images are resized: scaled and cropped to their centre, or drawn ink centred as MNIST was made."""
    batch_norm: bool = True
    """vgg11, vgg16, vgg19: batch normalisation after each convolution."""
    dropout: Fraction = 0.0
    """Dropout before linear layers, in the networks that have it."""


@dataclass(frozen=True)
class RecognitionOptions(Options):
    """Options of `recognize`."""

    top: PositiveInt = 5
    """Number of most probable classes to report."""


@dataclass(frozen=True)
class ImageFolder(Checked):
    """Where labelled images are."""

    folder: str = "."
    """Folder with the images."""
    format: Literal["mnist", "cifar10", "folders"] = "folders"
    """mnist: four IDX files; cifar10: binary files or their archive; folders: one folder for each class."""


@dataclass(frozen=True)
class RecognitionData(ImageFolder):
    """Which images to learn from."""

    test_folder: str = ""
    """folders: the test images, sorted in the same way."""
    held_out: PositiveInt = 1000
    """Number of training images held out for validation, at most a tenth of them."""
    held_out_test: Count = 0
    """folders: number of training images held out for testing, where there is no test_folder."""


@dataclass(frozen=True)
class RecognitionTrain(TrainSettings):
    """How to train an image classifier."""

    gradient_clip: NonNegativeFloat = 0.0
    batch_size: Count = 0
    """Images in a batch; 0 chooses 128, or fewer where an epoch would have fewer than 20 batches."""
    optimizer: Literal["adam", "sgd"] = "adam"
    """adam: AdamW; sgd: with Nesterov momentum."""
    momentum: Fraction = 0.9
    """sgd: momentum."""
    crop: Count = 0
    """Pixels by which images are shifted at random, up or down, left or right."""
    flip: bool = False
    """Mirror half of the images."""
    cutout: Count = 0
    """Height and width of a square that is blanked at random; 0 for none."""
    pretrained: bool = False
    """EfficientNet and timm networks: start from published parameters."""


@dataclass(frozen=True)
class RecognitionTest(ImageFolder):
    """What an image classifier is evaluated on."""

    folder: str = ""

    def check(self) -> None:
        """Refuse fields that contradict each other."""
        if not self.folder:
            raise OptionError(
                "Give the folder with the test images (folder), and its format if it is mnist or cifar10."
            )
