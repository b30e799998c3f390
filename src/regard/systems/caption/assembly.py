"""The parts of a captioner: its config, and the decoder that is built from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from torch import nn

from regard.attention import align, score
from regard.attention.attend import Attention
from regard.config import Checked, Count, Fraction, Names, NonNegativeFloat, PositiveInt
from regard.data.regions import Box
from regard.data.tokenizer import PAD
from regard.decoders.captions import Adaptive, ShowAndTell, ShowAttendTell
from regard.encoders.annotations import Frozen
from regard.errors import OptionError
from regard.parts import build_part

CaptionDecoder = ShowAttendTell | Adaptive | ShowAndTell
LEARNED = "strided"
"""The encoder that is trained with the decoder."""


@dataclass(frozen=True)
class CaptionerConfig(Checked):
    """The parts of a captioner."""

    architecture: Literal["show_attend_tell", "adaptive", "show_and_tell"] = "show_attend_tell"
    """Attention before each step; attention after each step, to the image or to what was said; reading it once."""
    score: Annotated[str, Names(("additive",))] = "additive"
    """How well a cell matches the decoder's state."""
    align: Annotated[str, Names(("soft", "hard"))] = "soft"
    """show_attend_tell: the weighted average of all cells, or one cell per word."""
    temperature: NonNegativeFloat = 0.0
    """hard: train by straight-through Gumbel-softmax at this temperature; 0 for REINFORCE."""
    encoder: Annotated[str, Names((LEARNED, "efficientnet_lite0"), prefixes=("timm:",), own=False)] = LEARNED
    """strided, a small network that is trained too; or a frozen one with published parameters."""
    stride: PositiveInt = 8
    """Pixels of the image between two cells."""
    coarse_stride: Count = 0
    """Frozen encoders: a larger stride, whose deeper features are joined to those of each cell; 0 for none."""
    drop_last_layers: Count = 0
    """efficientnet_lite0: how many of its last layers are left out."""
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
            raise OptionError(f"pca_dim is for frozen encoders; the encoder {LEARNED!r} is trained. Remove it.")
        if self.is_learned and self.stride not in (2, 4, 8):
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
        return self.encoder == LEARNED

    def frozen(self) -> Frozen:
        """The pretrained network that computes the features of cells."""
        return Frozen(
            self.encoder, self.stride, coarse_stride=self.coarse_stride, drop_last_layers=self.drop_last_layers
        )

    def describe_features(self) -> str:
        """The features of images in words: a model takes only features with its own description."""
        if self.is_learned:
            raise OptionError(f"The encoder {self.encoder!r} is trained, so its features cannot be stored.")
        without = f" without the last {self.drop_last_layers}" if self.drop_last_layers else ""
        components = f", {self.pca_dim} components" if self.pca_dim else ""
        coarse = f" and {self.coarse_stride}" if self.coarse_stride else ""
        return f"{self.encoder}{without} at stride {self.stride}{coarse} of {self.resize} {self.image_size}{components}"


def build_decoder(config: CaptionerConfig, memory_dim: int, vocabulary: int) -> CaptionDecoder:
    """Build the decoder of a config for cells of `memory_dim` features and a vocabulary of `vocabulary` words."""
    embedding = nn.Embedding(vocabulary, config.embedding, padding_idx=PAD)
    nn.init.normal_(embedding.weight, std=config.embedding**-0.5)
    with torch.no_grad():
        embedding.weight[PAD].zero_()
    has_attention = config.architecture != "show_and_tell"
    output = nn.Linear(config.embedding if has_attention else config.hidden, vocabulary)
    nn.init.normal_(output.weight, std=output.in_features**-0.5)
    nn.init.zeros_(output.bias)
    shared: dict[str, Any] = {
        "memory_dim": memory_dim,
        "hidden": config.hidden,
        "output": output,
        "dropout": config.dropout,
        "output_dropout": config.output_dropout,
    }
    if not has_attention:
        return ShowAndTell(embedding, **shared)
    decoder = ShowAttendTell if config.architecture == "show_attend_tell" else Adaptive
    return decoder(embedding, attention=_build_attention(config, memory_dim), **shared)


def _build_attention(config: CaptionerConfig, memory_dim: int) -> Attention:
    sizes = {"query_dim": config.hidden, "key_dim": memory_dim, "dim": config.attention_dim}
    matched: Any
    if config.score == "additive":
        matched = score.Additive(config.hidden, memory_dim, config.attention_dim)
    else:
        matched = build_part(config.score, sizes)
    aligned: Any
    match config.align:
        case "soft":
            aligned = align.Softmax()
        case "hard":
            aligned = align.Hard(temperature=config.temperature or None)
        case own:
            aligned = build_part(own, sizes)
    return Attention(matched, aligned)
