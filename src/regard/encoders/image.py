"""Convolutional networks from LeNet to VGG, and any of them as an encoder whose map is attended to cell by cell."""

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.encoders.encoded import Encoded
from regard.errors import OptionError

Images = Float[Tensor, "b c h w"]


class ConvNet(nn.Module):
    """Layers that make maps of a picture, then layers that tell its class from the last maps."""

    features: nn.Sequential
    classifier: nn.Module

    def forward(self, images: Images) -> Float[Tensor, "b classes"]:
        """A logit for each class."""
        logits: Tensor = self.classifier(self.features(images))
        return logits

    def maps(self, images: Images, stride: int) -> Float[Tensor, "b d gh gw"]:
        """The deepest maps of which one cell stands for stride x stride pixels."""
        for layer in list(self.features)[: self._depth(stride)]:
            images = layer(images)
        return images

    def channels(self, stride: int) -> int:
        """How many maps there are at a stride."""
        made = [int(getattr(layer, "out_channels", 0)) for layer in list(self.features)[: self._depth(stride)]]
        return next(count for count in reversed(made) if count)

    @property
    def strides(self) -> list[int]:
        """The strides that maps can be had at, the finest first."""
        return sorted(set(self._strides()))

    def _strides(self) -> list[int]:
        """After each layer, how many pixels of the picture lie between two cells."""
        strides = [1]
        for layer in self.features:
            stride = getattr(layer, "stride", 1)
            strides.append(strides[-1] * (stride if isinstance(stride, int) else stride[0]))
        return strides[1:]

    def _depth(self, stride: int) -> int:
        strides = self._strides()
        if stride not in strides:
            raise OptionError(f"{type(self).__name__} has maps at the strides {self.strides}; got {stride}.")
        return len(strides) - strides[::-1].index(stride)


class ImageEncoder(nn.Module):
    """The maps of a network as a memory: each cell of the grid is a state, in reading order; their mean is the summary.

    With VGG at stride 16, a picture of 224 x 224 gives 196 states of 512 features (Xu et al. 2015, section 3.1.1).
    """

    def __init__(self, net: ConvNet, stride: int) -> None:
        super().__init__()
        self.net, self.stride, self.dim = net, stride, net.channels(stride)

    def forward(self, images: Images) -> Encoded:
        """The cells of each picture; all of them exist."""
        states = self.net.maps(images, self.stride).flatten(2).mT
        mask = torch.ones(len(states), 1, states.shape[1], dtype=torch.bool, device=states.device)
        return Encoded(states, mask, states.mean(1))


class LeNet5(ConvNet):
    """LeNet-5 (LeCun et al. 1998, section II.B): C1 6 maps, S2, C3 16 maps, S4, C5 120 units, F6 84 units, classes.

    The paper pads 28 x 28 digits to 32 x 32; here the first convolution does. Maps of C3 see all maps of S2, and the
    classes are linear units instead of distances to drawn characters. "tanh" squashes and averages as the paper does
    (without the factor and bias that it learns for each average); "relu" is today's form, with maxima.
    """

    def __init__(self, classes: int = 10, *, channels: int = 1, activation: Literal["tanh", "relu"] = "relu") -> None:
        super().__init__()
        squash: Callable[[], nn.Module] = nn.Tanh if activation == "tanh" else nn.ReLU
        pool: Callable[[int], nn.Module] = nn.AvgPool2d if activation == "tanh" else nn.MaxPool2d
        self.features = nn.Sequential(
            nn.Conv2d(channels, 6, 5, padding=2), squash(), pool(2),
            nn.Conv2d(6, 16, 5), squash(), pool(2),
        )  # fmt: skip
        # C5 is a convolution in the paper too, though on digits one window is all there is.
        self.classifier = nn.Sequential(
            nn.Conv2d(16, 120, 5), squash(), nn.Flatten(),
            nn.Linear(120, 84), squash(),
            nn.Linear(84, classes),
        )  # fmt: skip


class AlexNet(ConvNet):
    """AlexNet (Krizhevsky et al. 2012, section 3.5), in two halves that meet in the third convolution.

    The paper says 224 x 224 pixels, with which 11 x 11 windows at stride 4 do not come out even; 227 x 227 do, and give
    6 x 6 cells in the end. Those of other pictures are averaged to as many.
    """

    def __init__(self, classes: int = 1000, *, channels: int = 3, dropout: float = 0.5) -> None:
        super().__init__()

        def normalised() -> list[nn.Module]:
            return [nn.ReLU(), nn.LocalResponseNorm(5, alpha=5e-4, beta=0.75, k=2), nn.MaxPool2d(3, 2)]

        self.features = nn.Sequential(
            nn.Conv2d(channels, 96, 11, stride=4), *normalised(),
            nn.Conv2d(96, 256, 5, padding=2, groups=2), *normalised(),
            nn.Conv2d(256, 384, 3, padding=1), nn.ReLU(),
            nn.Conv2d(384, 384, 3, padding=1, groups=2), nn.ReLU(),
            nn.Conv2d(384, 256, 3, padding=1, groups=2), nn.ReLU(), nn.MaxPool2d(3, 2),
        )  # fmt: skip
        self.classifier = nn.Sequential(
            nn.AdaptiveAvgPool2d(6), nn.Flatten(),
            nn.Dropout(dropout), nn.Linear(256 * 6 * 6, 4096), nn.ReLU(),
            nn.Dropout(dropout), nn.Linear(4096, 4096), nn.ReLU(),
            nn.Linear(4096, classes),
        )  # fmt: skip


class ConvNetJS(ConvNet):
    """The small networks of Karpathy's ConvNetJS pages: 5 x 5 convolutions that keep the size, each with a pooling.

    `filters` says how many each has and `pools` over how many pixels: the one for MNIST has 8 and 16 over 2 and 3,
    the one for CIFAR-10 has 16, 20 and 20 over 2, 2 and 2. A linear layer tells the class.
    """

    def __init__(
        self, classes: int = 10, *, channels: int, size: int, filters: Sequence[int], pools: Sequence[int]
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for count, pool in zip(filters, pools, strict=True):
            layers += [nn.Conv2d(channels, count, 5, padding=2), nn.ReLU(), nn.MaxPool2d(pool)]
            channels, size = count, size // pool
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Flatten(), nn.Linear(channels * size * size, classes))


POOL = 0
"""Stands for a pooling among the filter counts of VGG."""
VGG_FILTERS: dict[int, tuple[int, ...]] = {
    11: (64, POOL, 128, POOL, 256, 256, POOL, 512, 512, POOL, 512, 512, POOL),
    16: (64, 64, POOL, 128, 128, POOL, *[256] * 3, POOL, *[512] * 3, POOL, *[512] * 3, POOL),
    19: (64, 64, POOL, 128, 128, POOL, *[256] * 4, POOL, *[512] * 4, POOL, *[512] * 4, POOL),
}
SMALL_VGG_FILTERS = (64, 128, POOL, 256, 256, POOL, 512, 512, POOL, 512, 512, POOL)


def vgg_features(filters: Sequence[int], channels: int, *, batch_norm: bool) -> nn.Sequential:
    """3 x 3 convolutions that keep the size, and 2 x 2 maxima that halve it (Simonyan and Zisserman 2015, table 1)."""
    layers: list[nn.Module] = []
    for count in filters:
        if count == POOL:
            layers.append(nn.MaxPool2d(2))
            continue
        # Batch normalisation brings a shift of its own, but published weights have both.
        layers.append(nn.Conv2d(channels, count, 3, padding=1))
        layers += [nn.BatchNorm2d(count), nn.ReLU(inplace=True)] if batch_norm else [nn.ReLU(inplace=True)]
        channels = count
    for layer in layers:
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
            nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
    return nn.Sequential(*layers)


class VGG(ConvNet):
    """VGG of 11, 16 or 19 layers with weights; they are named as in the checkpoints that everybody uses.

    `features.0.weight` is the first convolution, `classifier.6.weight` the last layer. Pictures of any size from
    32 x 32 on are averaged to 7 x 7 cells before the classifier.
    """

    def __init__(
        self,
        depth: int = 16,
        classes: int = 1000,
        *,
        channels: int = 3,
        batch_norm: bool = False,
        dropout: float = 0.5,
        hidden: int = 4096,
    ) -> None:
        super().__init__()
        if depth not in VGG_FILTERS:
            raise OptionError(f"VGG has {', '.join(map(str, VGG_FILTERS))} layers; got depth={depth}.")
        self.features = vgg_features(VGG_FILTERS[depth], channels, batch_norm=batch_norm)
        self.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, hidden), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(hidden, hidden), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(hidden, classes),
        )  # fmt: skip
        self.average = nn.AdaptiveAvgPool2d((7, 7))

    def forward(self, images: Images) -> Float[Tensor, "b classes"]:
        """A logit for each class."""
        logits: Tensor = self.classifier(self.average(self.features(images)).flatten(1))
        return logits


class SmallVGG(ConvNet):
    """VGG for pictures of 32 x 32: batch normalisation, and one linear layer on the largest of each map."""

    def __init__(
        self,
        classes: int = 10,
        *,
        channels: int = 3,
        filters: Sequence[int] = SMALL_VGG_FILTERS,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.features = vgg_features(filters, channels, batch_norm=True)
        last = next(count for count in reversed(filters) if count != POOL)
        self.classifier = nn.Sequential(
            nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Dropout(dropout), nn.Linear(last, classes)
        )
