"""Image encoders for captions: from images to annotation vectors, one for each cell of a grid."""

import numpy as np
import torch
from jaxtyping import Float, Shaped, UInt8
from torch import Tensor, nn

from regard.encoders.efficientnet import EFFICIENTNETS
from regard.encoders.encoded import Encoded
from regard.encoders.image import ConvNet, ImageEncoder
from regard.encoders.image_networks import TimmNet
from regard.errors import OptionError, ShapeError

Cells = Float[Tensor, "b n d"]


class Strided(ConvNet):
    """A small network without pooling that is trained together with the decoder; it has maps at strides 2, 4 and 8.

    Convolutions of stride 2 have 4 x 4 kernels, so that each cell lies in the centre of its receptive field. With
    3 x 3 kernels it would be off by half a pixel per layer, which adds up to several pixels.
    """

    def __init__(self, classes: int = 10, *, channels: int = 3, filters: tuple[int, int, int] = (16, 48, 96)) -> None:
        super().__init__()
        first, second, third = filters
        between = (second + third) // 2
        self.features = nn.Sequential(
            *_stride_2(channels, first),
            *_stride_2(first, second), *_stride_1(second, between),
            *_stride_2(between, third), *_stride_1(third, third),
        )  # fmt: skip
        self.classifier = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(third, classes))


def _stride_2(inputs: int, outputs: int) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, 4, 2, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]


def _stride_1(inputs: int, outputs: int) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]


class Frozen:
    """A pretrained network that is not trained further: it is not a part of a model, and is loaded on first use.

    The name is efficientnet_lite0 or efficientnet_lite2 (parameters of their packages) or `timm:NAME` (parameters that
    timm downloads). `drop_last_layers` removes layers at the end of an EfficientNet. `coarse_stride` is that of
    ImageEncoder.
    """

    def __init__(self, name: str, stride: int, *, coarse_stride: int = 0, drop_last_layers: int = 0) -> None:
        if name not in EFFICIENTNETS and not name.startswith("timm:"):
            raise OptionError(f"A pretrained network is {', '.join(EFFICIENTNETS)} or timm:NAME; got {name!r}.")
        self.name, self.stride, self.coarse_stride, self.drop_last_layers = (
            name,
            stride,
            coarse_stride,
            drop_last_layers,
        )
        # By device, so that threads on different devices do not move each other's network.
        self._loaded: dict[torch.device, tuple[ImageEncoder, Tensor, Tensor]] = {}

    @torch.no_grad()
    def cells(self, pixels: UInt8[Tensor, "b 3 h w"]) -> Cells:
        """Compute the features of each cell, from pixels from 0 to 255, on the device of the pixels."""
        encoder, images = self.prepared(pixels)
        encoded: Encoded = encoder(images.contiguous(memory_format=torch.channels_last))
        return encoded.states

    def prepared(self, pixels: UInt8[Tensor, "b 3 h w"]) -> tuple[ImageEncoder, Float[Tensor, "b 3 h w"]]:
        """Return the network on the device of the pixels, loaded on first use, and the pixels as it takes them."""
        encoder, mean, deviation = self.loaded(pixels.device)
        return encoder, (pixels.float() - mean) / deviation

    def loaded(self, device: torch.device) -> tuple[ImageEncoder, Float[Tensor, "3 1 1"], Float[Tensor, "3 1 1"]]:
        """Return the network, loaded on first use, and the mean and deviation of the pixels that it was trained on."""
        if device not in self._loaded:
            self._loaded[device] = self._load(device)
        return self._loaded[device]

    def __repr__(self) -> str:
        without = f" without its last {self.drop_last_layers}" if self.drop_last_layers else ""
        coarse = f" and {self.coarse_stride}" if self.coarse_stride else ""
        return f"{self.name} at stride {self.stride}{coarse}{without}"

    def _load(self, device: torch.device) -> tuple[ImageEncoder, Tensor, Tensor]:
        """Load the network, and the mean and standard deviation of the pixels that it was trained on."""
        if self.name in EFFICIENTNETS:
            net: ConvNet = EFFICIENTNETS[self.name].pretrained()
            # The last layer adds little: but for a ReLU6 it is linear in its input, and four times as wide.
            net.features = nn.Sequential(*list(net.features)[: len(net.features) - self.drop_last_layers])
            mean, deviation = torch.full((3, 1, 1), 127.0), torch.full((3, 1, 1), 128.0)
        else:
            net = timm_net = TimmNet(self.name.removeprefix("timm:"), pretrained=True)
            about = timm_net.model.pretrained_cfg
            mean, deviation = (255 * torch.tensor(about[part]).view(3, 1, 1) for part in ("mean", "std"))
        net = net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        encoder = ImageEncoder(net, self.stride, coarse_stride=self.coarse_stride).eval().requires_grad_(False)
        return encoder.to(device), mean.to(device), deviation.to(device)


class PCA(nn.Module):
    """Principal components of features: (x - mean) components, scaled to a mean variance of 1.

    The components are saved with a model, which is only valid for them, but they are not trained.
    """

    mean: Float[Tensor, "d"]
    components: Float[Tensor, "d k"]
    max_abs: Float[Tensor, "k"]
    """The largest absolute value of each component in the samples."""

    def __init__(self, num_features: int, num_components: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(num_features))
        self.register_buffer("components", torch.eye(num_features, num_components))
        self.register_buffer("max_abs", torch.ones(num_components))

    @classmethod
    def fit(cls, samples: Float[Tensor, "n d"], num_components: int) -> "PCA":
        """Compute the components with the largest variance in the samples."""
        if not 0 < num_components <= samples.shape[1] or len(samples) < num_components:
            raise OptionError(
                f"{len(samples)} samples of {samples.shape[1]} features have at most "
                f"{min(samples.shape)} principal components; got num_components={num_components}."
            )
        pca = cls(samples.shape[1], num_components)
        mean = samples.double().mean(0)
        centred = samples.double() - mean
        values, vectors = torch.linalg.eigh(centred.T @ centred / len(samples))
        # Eigenvalues are in ascending order. The sign of a vector is arbitrary; its largest entry is made positive.
        vectors, values = vectors[:, -num_components:].flip(1), values[-num_components:].flip(0)
        largest = vectors.gather(0, vectors.abs().argmax(0, keepdim=True))
        pca.mean.copy_(mean)
        pca.components.copy_(vectors * largest.sign() / values.mean().sqrt())
        pca.max_abs.copy_(pca(samples).abs().amax(0))
        return pca

    def steps(self) -> Float[np.ndarray, "k"]:
        """Return the quantization step of each component, for storage as whole numbers from -127 to 127."""
        # Other inputs may exceed the samples by a little; values beyond that are clipped.
        return np.asarray(self.max_abs.cpu().numpy() * (1.1 / 127), dtype=np.float32)

    def forward(self, cells: Float[Tensor, "*b d"]) -> Float[Tensor, "*b k"]:
        """Compute the components of each cell."""
        return (cells.float() - self.mean) @ self.components


class Annotations(nn.Module):
    """Annotation vectors from the features of cells, through a linear layer with ReLU if `dim` is given.

    With `coordinates`, the row and the column of each cell, as numbers from -1 to 1, are added to its features.
    """

    positions: Float[Tensor, "n p"]

    def __init__(
        self, features: int, grid: tuple[int, int], *, dim: int = 0, coordinates: bool = False, dropout: float = 0.0
    ) -> None:
        super().__init__()
        rows, columns = grid
        positions = torch.cartesian_prod(torch.linspace(-1, 1, rows), torch.linspace(-1, 1, columns))
        self.register_buffer("positions", positions if coordinates else positions[:, :0], persistent=False)
        features += self.positions.shape[1]
        self.layer = nn.Sequential(nn.Linear(features, dim), nn.ReLU()) if dim else nn.Identity()
        self.dim = dim or features
        self.dropout = nn.Dropout(dropout)

    def forward(self, cells: Shaped[Tensor, "b n d"]) -> Encoded:
        """Compute the annotations of each image, and their mean as its summary."""
        if cells.shape[1] != len(self.positions):
            raise ShapeError(f"These images have {cells.shape[1]} cells; the grid has {len(self.positions)}.")
        positions = self.positions.expand(len(cells), -1, -1)
        return Encoded.whole(self.dropout(self.layer(torch.cat([cells.float(), positions], dim=-1))))
