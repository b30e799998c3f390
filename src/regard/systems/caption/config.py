"""The settings of a captioner: its parts, options, data, training and test set."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from regard.config import Checked, Count, Fraction, Names, NonNegativeFloat, PositiveInt, Probability
from regard.data.regions import Box
from regard.errors import OptionError
from regard.search.options import LengthPenalty, Search
from regard.systems.config import Options
from regard.training.settings import TrainSettings

LEARNED, FROZEN = "strided", ("efficientnet_lite0", "efficientnet_lite2")
"""The encoder that is trained with the decoder, and those with published parameters, as which timm:NAME counts too."""


@dataclass(frozen=True)
class CaptionConfig(Checked):
    """The parts of a captioner."""

    architecture: Literal["show_attend_tell", "adaptive", "show_and_tell"] = "show_attend_tell"
    """Attention before each step; attention after each step, to the image or to what was said; reading it once."""
    score: Annotated[str, Names(("additive",))] = "additive"
    """How well a cell matches the decoder's state."""
    align: Annotated[str, Names(("soft", "hard"))] = "soft"
    """show_attend_tell: the weighted average of all cells, or one cell per word."""
    temperature: NonNegativeFloat = 0.0
    """hard: train by straight-through Gumbel-softmax at this temperature; 0 for REINFORCE."""
    encoder: Annotated[str, Names((LEARNED, *FROZEN), prefixes=("timm:",))] = LEARNED
    """strided, a small network that is trained too, as a custom one is; or a frozen one with published parameters."""
    stride: PositiveInt = 8
    """Pixels of the image between two cells."""
    coarse_stride: Count = 0
    """Frozen encoders: a larger stride, whose deeper features are joined to those of each cell; 0 for none."""
    drop_last_layers: Count = 0
    """EfficientNet: how many of its last layers are left out."""
    image_size: PositiveInt = 64
    """Height and width of an image in pixels."""
    resize: Literal["stretch", "center_crop"] = "stretch"
    """How images are made square: stretched as a whole, or cropped to the centre."""
    filters: tuple[PositiveInt, PositiveInt, PositiveInt] = (16, 48, 96)
    """strided: number of feature maps after each halving."""
    feature_dim: PositiveInt = 1280
    """Frozen encoders: number of features of a cell."""
    pca_dim: Count = 0
    """Frozen encoders: number of principal components kept of these features; 0 keeps the features themselves."""
    annotation_dim: Count = 0
    """Features of a cell after a trained linear layer; 0 for no such layer."""
    domain: str = ""
    """Frozen encoders: what the training images show, in words. With it, a caption says how unlike them an image is."""
    coordinates: bool = False
    """Whether a cell knows its row and column."""
    embedding: PositiveInt = 256
    """Features of a word."""
    hidden: PositiveInt = 512
    """Units of the LSTM."""
    attention_dim: PositiveInt = 256
    """Units in which the state and the cells are compared."""
    dropout: Fraction = 0.0
    """Dropout of word features in training."""
    state_dropout: Fraction = 0.0
    """Dropout of the features of cells."""
    output_dropout: Fraction = 0.5
    """Dropout before the output layer."""

    def check(self) -> None:
        """Refuse sizes that do not fit together, and settings that would be ignored."""
        if self.image_size % self.stride:
            raise OptionError(
                f"image_size must be a multiple of stride; got image_size {self.image_size} and stride {self.stride}."
            )
        if self.coarse_stride and (self.is_learned or self.coarse_stride <= self.stride):
            raise OptionError(
                "coarse_stride is for frozen encoders, and larger than stride; got coarse_stride "
                f"{self.coarse_stride} with stride {self.stride} and encoder {self.encoder!r}."
            )
        if self.pca_dim > self.feature_dim:
            raise OptionError(f"pca_dim must be at most feature_dim, {self.feature_dim}; got {self.pca_dim}.")
        if self.is_learned and self.pca_dim:
            raise OptionError(f"pca_dim is for frozen encoders; the encoder {self.encoder!r} is trained. Remove it.")
        if self.is_learned and self.domain:
            raise OptionError(f"domain is for frozen encoders; the encoder {self.encoder!r} is trained. Remove it.")
        if self.encoder == LEARNED and self.stride not in (2, 4, 8):
            raise OptionError(f"The encoder {LEARNED!r} has strides 2, 4 and 8; got stride {self.stride}.")
        if self.architecture == "adaptive" and self.align != "soft":
            raise OptionError(f"The architecture 'adaptive' has soft attention; got align {self.align!r}.")
        if self.temperature and self.align != "hard":
            raise OptionError(
                f"temperature is for align 'hard'; got temperature {self.temperature} and {self.align!r}."
            )

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of cells."""
        return self.image_size // self.stride, self.image_size // self.stride

    def seen(self, boxes: Sequence[Box], size: tuple[int, int]) -> list[Box]:
        """Boxes in fractions of an image of this size, in fractions of the part of it that the model sees."""
        if self.resize == "stretch":
            return list(boxes)
        (width, height), side = size, min(size)
        left, top = (width - side) / 2, (height - side) / 2
        return [
            (
                (x1 * width - left) / side,
                (y1 * height - top) / side,
                (x2 * width - left) / side,
                (y2 * height - top) / side,
            )
            for x1, y1, x2, y2 in boxes
        ]

    @property
    def is_learned(self) -> bool:
        """Whether the encoder is trained with the decoder, and so a part of the model."""
        return self.encoder not in FROZEN and not self.encoder.startswith("timm:")

    def describe_features(self) -> str:
        """The features of images in words: a model takes only features with its own description."""
        if self.is_learned:
            raise OptionError(f"The encoder {self.encoder!r} is trained, so its features cannot be stored.")
        without = f" without the last {self.drop_last_layers}" if self.drop_last_layers else ""
        components = f", {self.pca_dim} components" if self.pca_dim else ""
        coarse = f" and {self.coarse_stride}" if self.coarse_stride else ""
        return f"{self.encoder}{without} at stride {self.stride}{coarse} of {self.resize} {self.image_size}{components}"


@dataclass(frozen=True)
class CaptionOptions(Options, Search):
    """Options of `caption`: those of the search."""

    max_length: PositiveInt | None = 30
    length_penalty: LengthPenalty = 0.6
    """Exponent of the length by which log-probabilities are divided; 1 would favour long captions."""


@dataclass(frozen=True)
class CaptionFiles(Checked):
    """Captions, and what their phrases name."""

    captions: str = ""
    """File with the captions: Flickr8k or Flickr30k tokens, COCO or Karpathy JSON, or a table; see read_captions."""
    regions: str = ""
    """File with boxes around what phrases of the captions name, or the folder of Flickr30k Entities; it needs the
    images."""
    regions_side: Count = 500
    """Longer side of the images, in the pixels of the table's boxes; 0 where boxes are in pixels of the images
    themselves."""
    world: Literal["", "scenes"] = ""
    """Instead of files, generated images: scenes, where it is known what each word should look at."""


@dataclass(frozen=True)
class CaptionData(CaptionFiles):
    """Which images and captions to learn from."""

    folder: str = "."
    """Folder that the other paths are relative to."""
    images: tuple[str, ...] = ()
    """Folders, tar or zip archives with the images (names may contain *); not needed where `store` exists."""
    store: str = ""
    """Folder for the features of the images under a frozen encoder; created if it does not exist."""
    views: Count = 0
    """Random views of each training image, that is parts of it, mirrored or not, in other colours, whose features are
    stored too; a batch takes one of them, or the image itself."""
    examples: PositiveInt = 20_000
    """Number of images of the world to generate."""
    held_out: PositiveInt = 1000
    """Number of images held out for validation, where the captions name no split."""
    held_out_test: Count = 0
    """Number of images held out for testing, where the captions name no split."""
    vocabulary: PositiveInt = 10_000
    """Maximum number of words in the vocabulary."""
    minimum_count: PositiveInt = 5
    """Rarer words are unknown."""
    max_length: PositiveInt = 40
    """Longest caption in words; longer ones are left out."""

    def check(self) -> None:
        """Refuse fields that contradict each other."""
        if self.world and self.captions:
            raise OptionError("Give captions or a world, not both.")
        if self.regions and self.world:
            raise OptionError("A world knows its regions: give regions for captions only.")
        if self.views and self.world:
            raise OptionError("views are stored features of photographs; a world has none. Remove views.")
        if self.regions and not self.images:
            raise OptionError("regions need the images, whose shapes the boxes refer to: set data.images.")


@dataclass(frozen=True)
class CaptionTrain(TrainSettings):
    """How to train a captioner."""

    max_tokens: Count = 0
    """Words in a batch, padding included; 0 chooses 2000, or fewer where an epoch would have fewer than 20 batches."""
    bucket_by_length: bool = True
    """Whether the captions of a batch have similar lengths, which saves padding. Where the length of a caption depends
    on what it describes, mixed batches learn much faster, because each is a fair sample of the data."""
    doubly_stochastic_weight: NonNegativeFloat = 1.0
    """Weight of the doubly stochastic penalty: the mean over captions and cells of (1 - sum_t alpha_ti)^2."""
    guidance: NonNegativeFloat = 0.0
    """Weight of the loss that pulls the attention of a word towards what it names (data.regions, or the regions of the
    world); 0 for none."""
    matching: NonNegativeFloat = 0.0
    """Weight of the loss by which words and cells learn to match, from captions without boxes, and which pulls the
    attention of a word towards the cells that match it; 0 for none."""
    reinforce_weight: NonNegativeFloat = 1.0
    """hard: weight of the REINFORCE term."""
    entropy_weight: NonNegativeFloat = 0.01
    """hard: weight of the entropy bonus."""
    soft_fraction: Probability = 0.3
    """hard: fraction of the training, at its beginning, in which attention is soft, so that the first choices are worth
    a reward."""
    soft_probability: Probability = 0.5
    """hard: probability that a caption is still read with soft attention after that."""
    attention_samples: PositiveInt = 1
    """hard: cells sampled for each word; from two on, the other samples are the baseline of each."""
    self_critical_fraction: Probability = 0.0
    """Fraction of the training, at its end, in which captions are sampled and rewarded by their CIDEr-D instead of
    learned word by word; 1 to continue from a trained captioner (--from). Hard attention then takes the most likely
    cell, and no longer learns where to look."""
    num_samples: PositiveInt = 5
    """Captions sampled of each image in that phase; the mean reward of the others is the baseline of each."""
    valid_beam: PositiveInt = 1
    """Beam size of the validations."""
    max_output_length: PositiveInt = 30
    """Longest caption in words when validating and testing."""

    def check(self) -> None:
        """Refuse fields that contradict each other."""
        super().check()
        if self.self_critical_fraction and self.num_samples < 2:
            raise OptionError(
                f"Captions are rewarded against each other: num_samples must be 2 or more; got {self.num_samples}."
            )


@dataclass(frozen=True)
class CaptionTest(CaptionOptions, CaptionFiles):
    """What a captioner is evaluated on."""

    images: str = ""
    """Folder or archive with the images, or a store of their features."""
    split: str = ""
    """Which split of the captions to use; by default test, or valid where there is no test."""
    count: PositiveInt = 1000
    """Number of images of the world."""
    meteor: bool = True
    """Whether to compute METEOR, which is slow."""

    def check(self) -> None:
        """Refuse fields that contradict each other."""
        super().check()
        if bool(self.captions) != bool(self.images):
            raise OptionError("captions and images belong together; give both, or the world scenes.")
        if self.regions and not self.captions:
            raise OptionError("regions belong to captions and images; give all three.")
        if bool(self.captions) == bool(self.world):
            raise OptionError("Give a test set: captions and images, or the world scenes.")
