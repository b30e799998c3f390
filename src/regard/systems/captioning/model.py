"""Captioner: an image in, a sentence about it out, and which part of the image each word looked at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal, overload

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from regard.attention import align, score
from regard.attention.attend import Attention
from regard.config import Checked, Count, Fraction, Names, NonNegativeFloat, PositiveInt
from regard.data.images import PREPARATIONS, ImageInput, open_image
from regard.data.padding import pad
from regard.data.tokenizer import END, PAD, START, UNKNOWN, Tokenizer
from regard.decoders.captions import ShowAndTell, ShowAttendTell
from regard.decoders.protocol import Unrolled
from regard.encoders.annotations import PCA, Annotations, Frozen, Strided
from regard.encoders.encoded import Encoded
from regard.encoders.image import ImageEncoder
from regard.errors import OptionError, ShapeError
from regard.parts import build_part
from regard.search.hypothesis import Hypothesis
from regard.search.options import Search
from regard.search.search import search
from regard.systems.captioning import CaptionOptions
from regard.systems.system import Result, System
from regard.trace import Trace

LEARNED = "strided"
"""The encoder that is trained with the decoder."""


@dataclass(frozen=True)
class CaptionerConfig(Checked):
    """The parts of a captioner."""

    architecture: Literal["show_attend_tell", "show_and_tell"] = "show_attend_tell"
    """With attention before each word, or reading the image once."""
    score: Annotated[str, Names(("additive",))] = "additive"
    """show_attend_tell: how well a cell matches the decoder's state."""
    align: Annotated[str, Names(("soft", "hard"))] = "soft"
    """show_attend_tell: the weighted average of all cells, or one cell per word."""
    temperature: NonNegativeFloat = 0.0
    """hard: train by straight-through Gumbel-softmax at this temperature; 0 for REINFORCE."""
    encoder: Annotated[str, Names((LEARNED, "efficientnet_lite0"), prefixes=("timm:",), own=False)] = LEARNED
    """strided, a small network that is trained too; or a frozen one with published parameters."""
    stride: PositiveInt = 8
    """Pixels of the image between two cells."""
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
        if self.pca_dim > self.feature_dim:
            raise OptionError(f"pca_dim must be at most feature_dim, {self.feature_dim}; got {self.pca_dim}.")
        if self.is_learned and self.pca_dim:
            raise OptionError(f"pca_dim is for frozen encoders; the encoder {LEARNED!r} is trained. Remove it.")
        if self.is_learned and self.stride not in (2, 4, 8):
            raise OptionError(f"The encoder {LEARNED!r} has strides 2, 4 and 8; got stride {self.stride}.")
        if self.temperature and self.align != "hard":
            raise OptionError(
                f"temperature is for align 'hard'; got temperature {self.temperature} and {self.align!r}."
            )

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of cells."""
        return self.image_size // self.stride, self.image_size // self.stride

    @property
    def is_learned(self) -> bool:
        """Whether the encoder is trained with the decoder, and so a part of the model."""
        return self.encoder == LEARNED

    def describe_features(self) -> str:
        """The features of images in words: a model takes only features with its own description."""
        if self.is_learned:
            raise OptionError(f"The encoder {self.encoder!r} is trained, so its features cannot be stored.")
        without = f" without the last {self.drop_last_layers}" if self.drop_last_layers else ""
        components = f", {self.pca_dim} components" if self.pca_dim else ""
        return f"{self.encoder}{without} at stride {self.stride} of {self.resize} {self.image_size}{components}"


@dataclass(frozen=True)
class Caption(Result):
    """One caption."""

    text: str
    score: float
    """Log-probability divided by a power of the length, as the search ranked it."""
    finished: bool
    """False where the caption was cut at the length limit."""
    alternatives: tuple["Caption", ...] = field(default=(), repr=False)
    """The next best captions, where `nbest` asked for them."""


class Captioner(System):
    """The cells of an image, a decoder that attends to them, and its words.

    Images come as pixels, uint8 (b, 3, h, w), or for a frozen encoder as features, (b, cells, d), as a FeatureStore
    keeps them.
    """

    kind = "captioner"
    Config = CaptionerConfig
    Options = CaptionOptions
    takes_images = True
    assets: ClassVar[Mapping[str, Any]] = {"tokenizer": Tokenizer}
    max_batch = 32
    config: CaptionerConfig

    def __init__(self, config: CaptionerConfig, tokenizer: Tokenizer) -> None:
        super().__init__(config)
        self.tokenizer = tokenizer
        features = config.pca_dim or config.feature_dim
        self.network: ImageEncoder | None = None
        self.reduction: PCA | None = None
        if config.is_learned:
            self.network = ImageEncoder(Strided(filters=config.filters), config.stride)
            features = self.network.dim
        else:
            self._frozen = Frozen(config.encoder, config.stride, drop_last_layers=config.drop_last_layers)
            self.reduction = PCA(config.feature_dim, config.pca_dim) if config.pca_dim else None
        self.annotations = Annotations(
            features,
            config.grid,
            dim=config.annotation_dim,
            coordinates=config.coordinates,
            dropout=config.state_dropout,
        )
        self.decoder = _build_decoder(config, self.annotations.dim, len(tokenizer))

    def encode(self, images: Shaped[Tensor, "b ..."]) -> Encoded:
        """The cells of images, from their pixels or from stored features."""
        encoded: Encoded = self.annotations(self.cells(images) if images.ndim == 4 else images)
        return encoded

    def cells(self, pixels: Shaped[Tensor, "b 3 h w"]) -> Float[Tensor, "b n d"]:
        """The features of each cell, from pixels from 0 to 255."""
        if self.network is not None:
            images = ((pixels.float() - 127.5) / 64).contiguous(memory_format=torch.channels_last)
            encoded: Encoded = self.network(images)
            return encoded.states
        features = self._frozen.cells(pixels)
        if features.shape[-1] != self.config.feature_dim:
            raise ShapeError(
                f"{self.config.encoder} gives {features.shape[-1]} features per cell; the model takes "
                f"{self.config.feature_dim}. Set model.feature_dim."
            )
        return features if self.reduction is None else self.reduction(features)

    def search(self, images: Tensor, options: Search) -> list[list[Hypothesis]]:
        """The best hypotheses for each image."""
        return self.search_encoded(self.encode(images), options)

    def search_encoded(self, encoded: Encoded, options: Search) -> list[list[Hypothesis]]:
        """The best hypotheses for images that are encoded already."""
        rules = options.rules(start=START, end=END, banned=(PAD, UNKNOWN), max_length=30)
        rows, device = encoded.states.shape[0], encoded.states.device
        prefixes = [self.tokenizer.encode(options.prefix)] * rows if options.prefix else None
        state = self.decoder.start(encoded)
        return search(self.decoder, state, rows=rows, device=device, rules=rules, options=options, prefixes=prefixes)

    @overload
    def caption(self, images: ImageInput, **options: Any) -> Caption: ...

    @overload
    def caption(self, images: Sequence[ImageInput], **options: Any) -> list[Caption]: ...

    def caption(self, images: Any, **options: Any) -> Caption | list[Caption]:
        """Caption an image (a path, a PIL image or an array), or each image of a list.

        Options are the fields of `CaptionOptions`: beam, nbest, sample, max_length, ... `stream` does the same for an
        iterable of any length.
        """
        checked = self.options(options)
        if isinstance(images, list | tuple):
            return self.answer(images, checked)
        only: Caption = self.answer([images], checked)[0]
        return only

    def predict(self, inputs: Sequence[ImageInput], options: CaptionOptions) -> list[Caption]:
        """The captions of one batch of images."""
        opened = [open_image(image) for image in inputs]
        encoded = self.encode(self.prepare(opened).to(self.device))
        found = [best[: options.nbest] for best in self.search_encoded(encoded, options)]
        rows = [row for row, best in enumerate(found) for _ in best]
        flat = [hypothesis for best in found for hypothesis in best]
        traces: list[Trace | None] = [None] * len(flat)
        if options.traces != "none" and self.config.architecture != "show_and_tell":
            # Overlays are drawn on what the network saw: the whole image, or its centre.
            seen = opened if self.config.resize == "stretch" else [_center(image) for image in opened]
            traces = self._traces(encoded, rows, flat, seen)
        captions = iter(
            Caption(self.tokenizer.decode(one.tokens), one.score, one.finished, trace=trace)
            for one, trace in zip(flat, traces, strict=True)
        )
        results = []
        for best in found:
            first, *others = [next(captions) for _ in best]
            results.append(replace(first, alternatives=tuple(others)))
        return results

    def prepare(self, images: Sequence[Any]) -> Tensor:
        """Opened images as the pixels that the network takes."""
        resize = PREPARATIONS[self.config.resize](self.config.image_size)
        return torch.from_numpy(np.stack([resize(image) for image in images])).permute(0, 3, 1, 2)

    def look(self, encoded: Encoded, captions: Sequence[Sequence[int]]) -> Unrolled:
        """What each word of a given caption, and its end, attends to; one caption per image."""
        target, _ = pad(captions, before=(START,))
        unrolled: Unrolled = self.decoder(encoded, target.to(encoded.states.device), weights=True)
        return unrolled

    def _traces(
        self, encoded: Encoded, rows: Sequence[int], found: Sequence[Hypothesis], seen: Sequence[Any]
    ) -> list[Trace | None]:
        """What was attended to for each word, from one pass in which the words are given."""
        chosen = torch.tensor(rows, device=encoded.states.device)
        selected = Encoded(encoded.states[chosen], encoded.mask[chosen], encoded.summary[chosen])
        unrolled = self.look(selected, [hypothesis.tokens for hypothesis in found])
        if unrolled.weights is None or unrolled.gates is None:
            raise TypeError("Weights that were asked for are given.")
        maps = unrolled.weights if unrolled.chances is None else unrolled.chances
        traces: list[Trace | None] = []
        for place, (row, hypothesis) in enumerate(zip(rows, found, strict=True)):
            words = len(hypothesis.tokens)
            choices = None if unrolled.chances is None else unrolled.weights[place, :words].argmax(-1).cpu()
            traces.append(
                Trace.from_image(
                    seen[row],
                    self.tokenizer.pieces(hypothesis.tokens),
                    maps[place, :words].float().cpu(),
                    grid=self.config.grid,
                    gates=unrolled.gates[place, :words].float().cpu(),
                    choices=choices,
                    log_probs=hypothesis.log_probs[:words],
                    text=self.tokenizer.decode(hypothesis.tokens),
                )
            )
        return traces


def _build_decoder(config: CaptionerConfig, memory_dim: int, vocabulary: int) -> ShowAttendTell | ShowAndTell:
    embedding = nn.Embedding(vocabulary, config.embedding, padding_idx=PAD)
    nn.init.normal_(embedding.weight, std=config.embedding**-0.5)
    with torch.no_grad():
        embedding.weight[PAD].zero_()
    has_attention = config.architecture == "show_attend_tell"
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
    return ShowAttendTell(embedding, attention=_build_attention(config, memory_dim), **shared)


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


def _center(image: Any) -> Any:
    side = min(image.size)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    return image.crop((left, top, left + side, top + side))
