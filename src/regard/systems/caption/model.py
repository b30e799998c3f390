"""Captioner: an image in, a sentence about it out, and which part of the image each word looked at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from regard.data.batches import pad
from regard.data.images import PREPARATIONS, ImageInput, open_image
from regard.data.tokenizer import END, PAD, START, UNKNOWN, Tokenizer
from regard.decoders.protocol import Unrolled
from regard.encoders.annotations import PCA, Annotations, Frozen
from regard.encoders.encoded import Encoded
from regard.encoders.novelty import Novelty
from regard.errors import ShapeError
from regard.search.hypothesis import Hypothesis
from regard.search.options import Search
from regard.search.search import search
from regard.systems.caption.assembly import build_decoder, build_encoder, frozen_encoder
from regard.systems.caption.config import CaptionConfig, CaptionOptions
from regard.systems.predictor import Result
from regard.systems.system import System
from regard.trace import Trace

MEAN, DEVIATION = 127.5, 64.0
"""By which an encoder that is trained too is given pixels."""


@dataclass(frozen=True)
class Caption(Result):
    """One caption."""

    text: str
    score: float
    """Log-probability divided by a power of the length, as the search ranked it."""
    finished: bool
    """False where the caption was cut at the length limit."""
    novelty: float | None = None
    """How unlike the training images the image is; above 1 it is foreign, as 5 % of held-out images are. None for a
    model that does not say."""
    caution: str = ""
    """What to know before believing the caption: that the image is foreign, and what the model knows."""
    alternatives: tuple["Caption", ...] = field(default=(), repr=False)
    """The next best captions, where `nbest` asked for them."""


class Captioner(System[ImageInput, Caption, CaptionOptions]):
    """The cells of an image, a decoder that attends to them, and its words.

    An input is an image: a path, a PIL image or an array. A batch comes as pixels, uint8 (b, 3, h, w), or for a frozen
    encoder as features, (b, cells, d), as a FeatureStore keeps them.
    """

    kind = "caption"
    Config = CaptionConfig
    takes_images = True
    parameter_uses = 100
    assets: ClassVar[Mapping[str, Any]] = {"tokenizer": Tokenizer}
    max_batch = 32
    config: CaptionConfig

    def __init__(self, config: CaptionConfig, tokenizer: Tokenizer) -> None:
        super().__init__(config)
        self.tokenizer = tokenizer
        features = config.pca_dim or config.feature_dim
        self.network: nn.Module | None = None
        self.reduction: PCA | None = None
        if config.is_learned:
            self.network = build_encoder(config)
            features = int(self.network.dim)  # type: ignore[arg-type]
        else:
            self._frozen = frozen_encoder(config)
            self.reduction = PCA(config.feature_dim, config.pca_dim) if config.pca_dim else None
        self.novelty = Novelty(config.feature_dim) if config.domain else None
        self.annotations = Annotations(
            features,
            config.grid,
            dim=config.annotation_dim,
            coordinates=config.coordinates,
            dropout=config.state_dropout,
        )
        self.decoder = build_decoder(config, self.annotations.dim, len(tokenizer))

    def encode(self, images: Shaped[Tensor, "b ..."]) -> Encoded:
        """The cells of images, from their pixels or from stored features."""
        encoded: Encoded = self.annotations(self.cells(images) if images.ndim == 4 else images)
        return encoded

    def cells(self, pixels: Shaped[Tensor, "b 3 h w"]) -> Float[Tensor, "b n d"]:
        """The features of each cell, from pixels from 0 to 255: what a store keeps."""
        features = self.features(pixels)
        return features if self.reduction is None else self.reduction(features)

    def features(self, pixels: Shaped[Tensor, "b 3 h w"]) -> Float[Tensor, "b n d"]:
        """The features of each cell as the encoder computes them."""
        if self.network is not None:
            images = self.encoder(pixels)[1].contiguous(memory_format=torch.channels_last)
            encoded: Encoded = self.network(images)
            return encoded.states
        features = self._frozen.cells(pixels)
        if features.shape[-1] != self.config.feature_dim:
            raise ShapeError(
                f"{self.config.encoder} gives {features.shape[-1]} features per cell; the model takes "
                f"{self.config.feature_dim}. Set model.feature_dim."
            )
        return features

    @property
    def frozen(self) -> Frozen | None:
        """The encoder with published parameters, which is no part of the model; None where the encoder is trained."""
        return self._frozen if self.network is None else None

    def encoder(self, pixels: Shaped[Tensor, "b 3 h w"]) -> tuple[nn.Module, Float[Tensor, "b 3 h w"]]:
        """The convolutional network, and pixels from 0 to 255 as it takes them."""
        if self.network is not None:
            return self.network, (pixels.float() - MEAN) / DEVIATION
        return self._frozen.prepared(pixels)

    def search(self, images: Tensor, options: Search) -> list[list[Hypothesis]]:
        """The best hypotheses for each image."""
        return self.search_encoded(self.encode(images), options)

    def search_encoded(self, encoded: Encoded, options: Search) -> list[list[Hypothesis]]:
        """The best hypotheses for images that are encoded already."""
        rows, device = encoded.states.shape[0], encoded.states.device
        prefixes = [self.tokenizer.encode(options.prefix)] * rows if options.prefix else None
        rules = options.rules(start=START, end=END, banned=(PAD, UNKNOWN), max_length=30, prefixes=prefixes)
        return search(self.decoder, self.decoder.start(encoded), rules, options, num_inputs=rows, device=device)

    caption = System.predict

    def predict_batch(self, inputs: Sequence[ImageInput], options: CaptionOptions) -> list[Caption]:
        """The captions of one batch of images."""
        seen = [self.seen(image) for image in inputs]
        features = self.features(self.prepare(seen).to(self.device))
        encoded = self.encode(features if self.reduction is None else self.reduction(features))
        captions = self.report(encoded, self.search_encoded(encoded, options), seen, options)
        if self.novelty is None:
            return captions
        return [
            replace(caption, novelty=distance, caution=self.caution(distance))
            for caption, distance in zip(captions, self.novelty(features.mean(1)).tolist(), strict=True)
        ]

    def caution(self, novelty: float) -> str:
        """What to say about an image of this novelty: nothing, unless it is foreign."""
        if novelty <= 1:
            return ""
        return f"This image is unlike those that the model knows ({self.config.domain}): expect a wrong caption."

    def report(
        self, encoded: Encoded, hypotheses: Sequence[Sequence[Hypothesis]], seen: Sequence[Any], options: CaptionOptions
    ) -> list[Caption]:
        """The captions of hypotheses, with what each word attended to in the images as they were `seen`."""
        found = [best[: options.nbest] for best in hypotheses]
        rows = [row for row, best in enumerate(found) for _ in best]
        flat = [hypothesis for best in found for hypothesis in best]
        traces: list[Trace | None] = [None] * len(flat)
        if options.traces != "none" and self.config.architecture != "show_and_tell":
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

    def seen(self, image: ImageInput) -> Any:
        """The part of an image that the network sees, and that overlays are drawn on: all of it, or its centre."""
        opened = open_image(image)
        if self.config.resize == "stretch":
            return opened
        side = min(opened.size)
        left, top = (opened.width - side) // 2, (opened.height - side) // 2
        return opened.crop((left, top, left + side, top + side))

    def prepare(self, images: Sequence[Any]) -> Tensor:
        """Opened images as the pixels that the network takes."""
        resize = PREPARATIONS[self.config.resize](self.config.image_size)
        return torch.from_numpy(np.stack([resize(image) for image in images])).permute(0, 3, 1, 2)

    def unroll(self, encoded: Encoded, captions: Sequence[Sequence[int]]) -> Unrolled:
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
        unrolled = self.unroll(selected, [hypothesis.tokens for hypothesis in found])
        if unrolled.weights is None or unrolled.gates is None:
            raise TypeError("Weights that were asked for are given.")
        maps = unrolled.weights if unrolled.distribution is None else unrolled.distribution
        traces: list[Trace | None] = []
        for index, (row, hypothesis) in enumerate(zip(rows, found, strict=True)):
            words = len(hypothesis.tokens)
            choices = None if unrolled.distribution is None else unrolled.weights[index, :words].argmax(-1).cpu()
            traces.append(
                Trace.from_image(
                    seen[row],
                    self.tokenizer.pieces(hypothesis.tokens),
                    maps[index, :words].float().cpu(),
                    grid=self.config.grid,
                    gates=unrolled.gates[index, :words].float().cpu(),
                    choices=choices,
                    log_probs=hypothesis.log_probs[:words],
                    text=self.tokenizer.decode(hypothesis.tokens),
                )
            )
        return traces
