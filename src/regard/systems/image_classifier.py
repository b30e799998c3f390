"""ImageClassifier: a picture in, the names of what it may show out, by any convolutional network of the lectures."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Shaped, UInt8
from torch import Tensor, nn

from regard.data.images import ImageInput, Square, channels_first, open_image
from regard.data.mnist_style import to_mnist_style
from regard.encoders.encoded import Encoded
from regard.encoders.image import ImageEncoder
from regard.encoders.networks import make_net
from regard.errors import OptionError
from regard.systems.folder import read_config_and_weights, read_labels, write_model

SYSTEM = "image-classifier"


@dataclass(frozen=True)
class ImageClassifierConfig:
    """The parts of an image classifier."""

    architecture: str = "small_vgg"
    """lenet5, alexnet, convnetjs_mnist or _cifar, small_vgg, vgg11, vgg16, vgg19, efficientnet_lite0, or timm:NAME."""
    channels: int = 3
    """1 for pictures in grey, 3 for RGB."""
    size: int = 32
    """Height and width of a picture in pixels; others are scaled and cut to it."""
    fit: Literal["middle", "ink"] = "middle"
    """How other pictures are made to fit: their middle is taken, or what is drawn on them, as MNIST was made."""
    batch_norm: bool = True
    """vgg11, vgg16, vgg19: normalise each convolution over the batch."""
    dropout: float = 0.0
    """Share of features dropped before linear layers, in the networks that have dropout."""


@dataclass(frozen=True)
class Guess:
    """A class that a picture may show."""

    label: str
    probability: float


class ImageClassifier(nn.Module):
    """A convolutional network, what its pixels are normalised with, and the names of the classes."""

    mean: Float[Tensor, "c 1 1"]
    deviation: Float[Tensor, "c 1 1"]

    def __init__(self, config: ImageClassifierConfig, labels: Sequence[str]) -> None:
        super().__init__()
        if not labels:
            raise OptionError("An image classifier needs the names of its classes; got none.")
        self.config, self.labels = config, list(labels)
        self.net = make_net(
            config.architecture,
            len(labels),
            channels=config.channels,
            size=config.size,
            batch_norm=config.batch_norm,
            dropout=config.dropout,
        )
        self.register_buffer("mean", torch.full((config.channels, 1, 1), 127.5))
        self.register_buffer("deviation", torch.full((config.channels, 1, 1), 64.0))

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def forward(self, images: Shaped[Tensor, "b c h w"]) -> Float[Tensor, "b classes"]:
        """A logit for each class, from pixels from 0 to 255."""
        logits: Tensor = self.net(self.normalised(images))
        return logits

    def encode(self, images: Shaped[Tensor, "b c h w"], stride: int) -> Encoded:
        """The cells of each picture, to be attended to, from pixels from 0 to 255."""
        encoded: Encoded = ImageEncoder(self.net, stride)(self.normalised(images))
        return encoded

    def normalised(self, images: Shaped[Tensor, "b c h w"]) -> Float[Tensor, "b c h w"]:
        """Pixels from 0 to 255 as numbers around 0, by the mean and deviation of the training pictures."""
        return (images.float() - self.mean) / self.deviation

    def learn_normalisation(self, images: Shaped[Tensor, "n c h w"]) -> None:
        """Take the mean and deviation of each channel from these pictures."""
        pixels = images.transpose(0, 1).flatten(1)
        # In whole numbers and float64, a few pictures at a time: float32 would lose the last of many millions.
        sums = sum(part.double().sum(1) for part in pixels.split(1 << 22, dim=1)) / pixels.shape[1]
        squares = sum(part.double().square().sum(1) for part in pixels.split(1 << 22, dim=1)) / pixels.shape[1]
        deviation = (squares - sums**2).clamp_min(1.0).sqrt()
        self.mean.copy_(sums[:, None, None])
        self.deviation.copy_(deviation[:, None, None])

    def recognize(self, picture: ImageInput, *, top: int = 5) -> list[Guess]:
        """What a picture (see `open_image`) may show: the `top` most probable classes, best first."""
        return next(self.recognize_each([picture], top=top))

    def recognize_each(self, pictures: Iterable[ImageInput], *, top: int = 5, batch: int = 64) -> Iterator[list[Guess]]:
        """The same for many pictures, some at a time."""
        if top < 1:
            raise OptionError(f"Of the classes at least the most probable is told; got top={top}.")
        waiting = iter(pictures)
        while some := [self.pixels(picture) for picture in islice(waiting, batch)]:
            for row in self.probabilities(torch.from_numpy(np.stack(some))):
                values, places = row.topk(min(top, len(self.labels)))
                yield [
                    Guess(self.labels[place], value)
                    for place, value in zip(places.tolist(), values.tolist(), strict=True)
                ]

    def pixels(self, picture: ImageInput) -> UInt8[np.ndarray, "c h w"]:
        """A picture as this network takes it: its size, its channels."""
        opened = open_image(picture, channels=self.config.channels)
        if self.config.fit == "ink":
            return channels_first(to_mnist_style(opened, self.config.size))
        return channels_first(Square(self.config.size)(opened))

    @torch.no_grad()
    def probabilities(self, images: Shaped[Tensor, "n c h w"], *, batch: int = 1000) -> Float[Tensor, "n classes"]:
        """How probable each class is for each picture, from pixels from 0 to 255."""
        was_training = self.training
        self.eval()
        try:
            found = [self(some.to(self.device)).float().softmax(-1).cpu() for some in images.split(batch)]
        finally:
            self.train(was_training)
        return torch.cat(found)

    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        metrics: dict[str, Any] | None = None,
        card: str = "",
        store: Literal["float32", "float16", "int8"] = "float32",
    ) -> None:
        """Write the model as a folder: config.json, model.safetensors, labels.json, metrics.json, MODEL_CARD.md."""
        write_model(
            folder, SYSTEM, self.config, self, {}, metrics=metrics or {}, card=card, store=store, labels=self.labels
        )

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, device: str | torch.device | None = None) -> "ImageClassifier":
        """Read a model folder; on the GPU when there is one, unless told otherwise."""
        config, weights = read_config_and_weights(folder, SYSTEM, ImageClassifierConfig)
        model = cls(config, read_labels(folder))
        weights.into(model)
        return model.to(device or ("cuda" if torch.cuda.is_available() else "cpu")).eval()
