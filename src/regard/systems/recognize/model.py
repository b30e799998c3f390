"""ImageClassifier: an image in, the names of what it may show out, by any convolutional network of the lectures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Shaped, UInt8
from torch import Tensor

from regard.config import custom_parts
from regard.data.images import ImageInput, Square, channels_first, open_image
from regard.encoders.encoded import Encoded
from regard.encoders.image import ImageEncoder
from regard.encoders.image_networks import make_net
from regard.encoders.layer_table import layer_table
from regard.errors import OptionError
from regard.parts import build_part
from regard.systems.folder import Labels
from regard.systems.predictor import Result
from regard.systems.recognize.config import RecognitionConfig, RecognitionOptions
from regard.systems.recognize.data import to_mnist_style
from regard.systems.system import System


@dataclass(frozen=True)
class Prediction:
    """A class that an image may show."""

    label: str
    probability: float

    def to_dict(self) -> dict[str, Any]:
        """The prediction as plain values."""
        return {"label": self.label, "probability": self.probability}


@dataclass(frozen=True)
class Recognition(Result):
    """What an image may show: the most probable classes, best first."""

    predictions: tuple[Prediction, ...]

    @property
    def label(self) -> str:
        """The most probable class."""
        return self.predictions[0].label

    @property
    def probability(self) -> float:
        """The probability of the most probable class."""
        return self.predictions[0].probability


class ImageClassifier(System[ImageInput, Recognition, RecognitionOptions]):
    """A convolutional network, the normalisation of its pixels, and the names of the classes.

    An input is an image: a path, a PIL image or an array (see `open_image`).
    """

    kind = "recognize"
    Config = RecognitionConfig
    takes_images = True
    parameter_uses = 100
    assets: ClassVar[Mapping[str, Any]] = {"labels": Labels}
    config: RecognitionConfig
    mean: Float[Tensor, "c 1 1"]
    deviation: Float[Tensor, "c 1 1"]

    def __init__(self, config: RecognitionConfig, labels: Sequence[str]) -> None:
        super().__init__(config)
        if not labels:
            raise OptionError("An image classifier needs the names of its classes; got none.")
        self.labels = Labels(labels)
        sizes: dict[str, Any] = {
            "channels": config.channels,
            "size": config.image_size,
            "batch_norm": config.batch_norm,
            "dropout": config.dropout,
        }
        if custom_parts(config):
            self.net = build_part(config.architecture, {"classes": len(labels), **sizes})
        else:
            self.net = make_net(config.architecture, len(labels), **sizes)
            # Some networks take only images of some sizes: say so here, not in the first batch.
            layer_table(self.net, (config.channels, config.image_size, config.image_size))
        self.register_buffer("mean", torch.full((config.channels, 1, 1), 127.5))
        self.register_buffer("deviation", torch.full((config.channels, 1, 1), 64.0))

    def forward(self, images: Shaped[Tensor, "b c h w"]) -> Float[Tensor, "b classes"]:
        """A logit for each class, from pixels from 0 to 255."""
        logits: Tensor = self.net(self.normalised(images))
        return logits

    def encode(self, images: Shaped[Tensor, "b c h w"], stride: int) -> Encoded:
        """The cells of each image, to be attended to, from pixels from 0 to 255."""
        encoded: Encoded = ImageEncoder(self.net, stride)(self.normalised(images))
        return encoded

    def normalised(self, images: Shaped[Tensor, "b c h w"]) -> Float[Tensor, "b c h w"]:
        """Pixels from 0 to 255, normalised by the mean and deviation of the training images."""
        return (images.float() - self.mean) / self.deviation

    def learn_normalisation(self, images: Shaped[Tensor, "n c h w"]) -> None:
        """Take the mean and deviation of each channel from these images."""
        pixels = images.transpose(0, 1).flatten(1)
        # In float64 and in parts: float32 would lose the last of many millions of pixels.
        sums = sum(part.double().sum(1) for part in pixels.split(1 << 22, dim=1)) / pixels.shape[1]
        squares = sum(part.double().square().sum(1) for part in pixels.split(1 << 22, dim=1)) / pixels.shape[1]
        deviation = (squares - sums**2).clamp_min(1.0).sqrt()
        self.mean.copy_(sums[:, None, None])
        self.deviation.copy_(deviation[:, None, None])

    recognize = System.predict

    def as_text(self, result: Recognition, options: RecognitionOptions) -> str:
        """The classes with their probabilities."""
        return ", ".join(f"{one.label} {one.probability:.3f}" for one in result.predictions)

    def predict_batch(self, inputs: Sequence[ImageInput], options: RecognitionOptions) -> list[Recognition]:
        """The most probable classes of one batch of images."""
        pixels = torch.from_numpy(np.stack([self.pixels(image) for image in inputs]))
        results = []
        for row in self.probabilities(pixels):
            values, indices = row.topk(min(options.top, len(self.labels)))
            best = zip(indices.tolist(), values.tolist(), strict=True)
            results.append(Recognition(tuple(Prediction(self.labels[index], value) for index, value in best)))
        return results

    def pixels(self, image: ImageInput) -> UInt8[np.ndarray, "c h w"]:
        """An image as this network takes it: its size, its channels."""
        opened = open_image(image, channels=self.config.channels)
        if self.config.resize == "mnist":
            return channels_first(to_mnist_style(opened, self.config.image_size))
        return channels_first(Square(self.config.image_size)(opened))

    @torch.inference_mode()
    def probabilities(self, images: Shaped[Tensor, "n c h w"], *, batch: int = 1000) -> Float[Tensor, "n classes"]:
        """The probability of each class for each image, from pixels from 0 to 255."""
        self.check_mode()
        return torch.cat([self(part.to(self.device)).float().softmax(-1).cpu() for part in images.split(batch)])
