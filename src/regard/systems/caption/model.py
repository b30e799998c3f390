"""Captioner: an image in, a sentence about it out, and which part of the image each word looked at."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from regard.data.batches import pad
from regard.data.images import ImageInput
from regard.data.tokenizer import START, Tokenizer
from regard.decoders.protocol import Unrolled
from regard.encoders.annotations import PCA, Annotations, Frozen
from regard.encoders.encoded import Encoded
from regard.encoders.novelty import Novelty
from regard.errors import ShapeError
from regard.search.hypothesis import Hypothesis
from regard.search.options import Search
from regard.search.search import search
from regard.systems.caption.assembly import build_decoder, build_encoder, frozen_encoder
from regard.systems.caption.captions import Caption, Captioning, Looks
from regard.systems.caption.config import CaptionConfig, CaptionOptions
from regard.systems.system import System
from regard.trace import Trace

MEAN, DEVIATION = 127.5, 64.0
"""By which an encoder that is trained too is given pixels."""


class Captioner(Captioning, System[ImageInput, Caption, CaptionOptions]):
    """The cells of an image, a decoder that attends to them, and its words.

    An input is an image: a path, a PIL image or an array. A batch comes as pixels, uint8 (b, 3, h, w), or for a frozen
    encoder as features, (b, cells, d), as a FeatureStore keeps them.
    """

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
        rules = self.rules(rows, options)
        return search(self.decoder, self.decoder.start(encoded), rules, options, num_inputs=rows, device=device)

    def predict_batch(self, inputs: Sequence[ImageInput], options: CaptionOptions) -> list[Caption]:
        """The captions of one batch of images."""
        seen = [self.seen(image) for image in inputs]
        features = self.features(self.prepare(seen).to(self.device))
        encoded = self.encode(features if self.reduction is None else self.reduction(features))
        captions = self.report(encoded, self.search_encoded(encoded, options), seen, options)
        if self.novelty is None:
            return captions
        return self.with_novelty(captions, self.novelty(features.mean(1)).tolist())

    def report(
        self, encoded: Encoded, hypotheses: Sequence[Sequence[Hypothesis]], seen: Sequence[Any], options: CaptionOptions
    ) -> list[Caption]:
        """The captions of hypotheses, with what each word attended to in the images as they were `seen`."""
        found = [best[: options.nbest] for best in hypotheses]
        rows = [row for row, best in enumerate(found) for _ in best]
        flat = [hypothesis for best in found for hypothesis in best]
        traces: list[Trace | None] = [None] * len(flat)
        if options.traces != "none" and self.has_attention:
            traces = self._traces(encoded, rows, flat, seen)
        return self.written(found, traces)

    def prepare(self, images: Sequence[Any]) -> Tensor:
        """Opened images as the pixels that the network takes."""
        return torch.from_numpy(self.pixels(images))

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
        chosen_cells = None if unrolled.distribution is None else unrolled.weights.argmax(-1).tolist()
        looks = [
            Looks(table, gates, None if chosen_cells is None else chosen_cells[index])
            for index, (table, gates) in enumerate(
                zip(maps.float().cpu().numpy(), unrolled.gates.float().cpu().numpy(), strict=True)
            )
        ]
        return [self.trace_of(seen[row], one, look) for row, one, look in zip(rows, found, looks, strict=True)]
