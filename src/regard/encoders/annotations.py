"""From pictures to annotation vectors, one for each cell of a grid: the networks, and what is made of their maps."""

import numpy as np
import torch
from jaxtyping import Float, Shaped, UInt8
from torch import Tensor, nn

from regard.encoders.efficientnet import EfficientNetLite0
from regard.encoders.encoded import Encoded
from regard.encoders.image import ConvNet, ImageEncoder
from regard.encoders.image_networks import TimmNet
from regard.errors import OptionError, ShapeError

Cells = Float[Tensor, "b n d"]


class Strided(ConvNet):
    """A small network without pooling, to be learned together with what reads it; maps at strides 2, 4 and 8.

    A convolution that halves its map looks at 4 x 4 pixels, so that each cell lies in the middle of what it sees; with
    3 x 3 it would be off by half a pixel, and in the end by several.
    """

    def __init__(self, classes: int = 10, *, channels: int = 3, filters: tuple[int, int, int] = (16, 48, 96)) -> None:
        super().__init__()
        first, second, third = filters
        between = (second + third) // 2
        self.features = nn.Sequential(
            *_halving(channels, first),
            *_halving(first, second), *_keeping(second, between),
            *_halving(between, third), *_keeping(third, third),
        )  # fmt: skip
        self.classifier = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(third, classes))


def _halving(inputs: int, outputs: int) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, 4, 2, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]


def _keeping(inputs: int, outputs: int) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]


class Frozen:
    """A network with published weights in which nothing is learned: no part of a model, and loaded when it is needed.

    efficientnet_lite0 has the weights of its package, and `timm:NAME` those that timm downloads.
    """

    def __init__(self, name: str, stride: int, *, leave_out: int = 0) -> None:
        if name != "efficientnet_lite0" and not name.startswith("timm:"):
            raise OptionError(f"A network with published weights is efficientnet_lite0 or timm:NAME; got {name!r}.")
        self.name, self.stride, self.leave_out = name, stride, leave_out
        self._loaded: tuple[ImageEncoder, Tensor, Tensor] | None = None

    @torch.no_grad()
    def cells(self, pixels: UInt8[Tensor, "b 3 h w"]) -> Cells:
        """The features of each cell, from pixels from 0 to 255; computed where the pixels are."""
        if self._loaded is None:
            self._loaded = self._load()
        encoder, mean, deviation = self._loaded
        encoder.to(pixels.device)
        images = (pixels.float() - mean.to(pixels.device)) / deviation.to(pixels.device)
        encoded: Encoded = encoder(images.contiguous(memory_format=torch.channels_last))
        return encoded.states

    def __repr__(self) -> str:
        without = f" without its last {self.leave_out}" if self.leave_out else ""
        return f"{self.name} at stride {self.stride}{without}"

    def _load(self) -> tuple[ImageEncoder, Tensor, Tensor]:
        if self.name == "efficientnet_lite0":
            net: ConvNet = EfficientNetLite0.pretrained()
            # Its last layer is linear in what comes before it but for a ReLU6, and four times as wide.
            net.features = nn.Sequential(*list(net.features)[: len(net.features) - self.leave_out])
            mean, deviation = torch.full((3, 1, 1), 127.0), torch.full((3, 1, 1), 128.0)
        else:
            net = timm_net = TimmNet(self.name.removeprefix("timm:"), pretrained=True)
            about = timm_net.model.pretrained_cfg
            mean, deviation = (255 * torch.tensor(about[part]).view(3, 1, 1) for part in ("mean", "std"))
        net = net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return ImageEncoder(net, self.stride).eval().requires_grad_(False), mean, deviation


class Reduction(nn.Module):
    """The principal components of features: (x - mean) components, scaled so that they have variance 1 on average.

    They belong to a model, since what it learns holds for them alone, but are not learned with it.
    """

    mean: Float[Tensor, "d"]
    components: Float[Tensor, "d k"]
    reach: Float[Tensor, "k"]
    """How far from 0 each component was seen."""

    def __init__(self, features: int, kept: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("components", torch.eye(features, kept))
        self.register_buffer("reach", torch.ones(kept))

    @classmethod
    def fit(cls, samples: Float[Tensor, "n d"], kept: int) -> "Reduction":
        """The `kept` directions in which the samples differ most."""
        if not 0 < kept <= samples.shape[1] or len(samples) < kept:
            raise OptionError(
                f"{len(samples)} samples of {samples.shape[1]} features have no {kept} components: ask for fewer."
            )
        reduction = cls(samples.shape[1], kept)
        mean = samples.double().mean(0)
        centred = samples.double() - mean
        values, vectors = torch.linalg.eigh(centred.T @ centred / len(samples))
        # Eigenvalues come smallest first; the sign of a vector is free, and fixed here by its largest entry.
        vectors, values = vectors[:, -kept:].flip(1), values[-kept:].flip(0)
        largest = vectors.gather(0, vectors.abs().argmax(0, keepdim=True))
        reduction.mean.copy_(mean)
        reduction.components.copy_(vectors * largest.sign() / values.mean().sqrt())
        reduction.reach.copy_(reduction(samples).abs().amax(0))
        return reduction

    def steps(self) -> Float[np.ndarray, "k"]:
        """For a store in whole numbers from -127 to 127: what 1 stands for in each component."""
        # Others reach a little farther than the sample; what lies beyond is cut.
        return np.asarray(self.reach.cpu().numpy() * (1.1 / 127), dtype=np.float32)

    def forward(self, cells: Float[Tensor, "*b d"]) -> Float[Tensor, "*b k"]:
        """The components of each cell."""
        return (cells.float() - self.mean) @ self.components


class Annotations(nn.Module):
    """Annotation vectors of the features of cells: a learned layer with ReLU where `dim` is given, and their places.

    With `coordinates`, each cell also knows its row and column, as numbers from -1 to 1.
    """

    places: Float[Tensor, "n p"]

    def __init__(
        self, features: int, grid: tuple[int, int], *, dim: int = 0, coordinates: bool = False, dropout: float = 0.0
    ) -> None:
        super().__init__()
        rows, columns = grid
        place = torch.cartesian_prod(torch.linspace(-1, 1, rows), torch.linspace(-1, 1, columns))
        self.register_buffer("places", place if coordinates else place[:, :0], persistent=False)
        features += self.places.shape[1]
        self.layer = nn.Sequential(nn.Linear(features, dim), nn.ReLU()) if dim else nn.Identity()
        self.dim = dim or features
        self.dropout = nn.Dropout(dropout)

    def forward(self, cells: Shaped[Tensor, "b n d"]) -> Encoded:
        """The annotations of each picture, and their mean as its summary."""
        if cells.shape[1] != len(self.places):
            raise ShapeError(f"These pictures have {cells.shape[1]} cells; the grid has {len(self.places)}.")
        places = self.places.expand(len(cells), -1, -1)
        states: Tensor = self.dropout(self.layer(torch.cat([cells.float(), places], dim=-1)))
        mask = torch.ones(len(states), 1, states.shape[1], dtype=torch.bool, device=states.device)
        return Encoded(states, mask, states.mean(1))
