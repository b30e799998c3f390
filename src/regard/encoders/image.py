"""Convolutional networks from LeNet to VGG, and their use as encoders whose cells are attended to."""

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from regard.encoders.encoded import Encoded
from regard.errors import OptionError

Images = Float[Tensor, "b c h w"]


class ConvNet(nn.Module):
    """A convolutional network: `features` compute maps of an image, `classifier` its class from the last maps."""

    features: nn.Sequential
    classifier: nn.Module

    def forward(self, images: Images) -> Float[Tensor, "b classes"]:
        """Compute a logit for each class."""
        logits: Tensor = self.classifier(self.features(images))
        return logits

    def maps(self, images: Images, stride: int) -> Float[Tensor, "b d gh gw"]:
        """Compute the deepest maps at a stride, where one cell stands for stride x stride pixels."""
        return self.all_maps(images, (stride,))[0]

    def all_maps(self, images: Images, strides: Sequence[int]) -> list[Float[Tensor, "b d _ _"]]:
        """Compute the deepest maps at each of several strides, in one pass."""
        depths = [self.layers_to(stride) for stride in strides]
        found = {}
        for number, layer in enumerate(list(self.features)[: max(depths)], 1):
            images = layer(images)
            if number in depths:
                found[number] = images
        return [found[depth] for depth in depths]

    def channels(self, stride: int) -> int:
        """Return the number of maps at a stride."""
        counts = [int(getattr(layer, "out_channels", 0)) for layer in list(self.features)[: self.layers_to(stride)]]
        return next(count for count in reversed(counts) if count)

    @property
    def strides(self) -> list[int]:
        """The strides at which there are maps, finest first."""
        return sorted(set(self._strides()))

    def _strides(self) -> list[int]:
        """Return the stride after each layer: the distance in pixels between two neighbouring cells."""
        strides = [1]
        for layer in self.features:
            stride = getattr(layer, "stride", 1)
            strides.append(strides[-1] * (stride if isinstance(stride, int) else stride[0]))
        return strides[1:]

    def layers_to(self, stride: int) -> int:
        """Return the number of layers after which the deepest maps at a stride are complete."""
        strides = self._strides()
        if stride not in strides:
            raise OptionError(f"{type(self).__name__} has maps at the strides {self.strides}; got stride={stride}.")
        return len(strides) - strides[::-1].index(stride)


class ImageEncoder(nn.Module):
    """A network as an encoder: each cell of its map is a state, row by row; the mean state is the summary.

    With VGG at stride 16, an image of 224 x 224 has 196 states of 512 features (Xu et al. 2015, section 3.1.1).
    `coarse_stride` adds to each cell what deeper maps, at a larger stride, have at its position: fine cells then know
    what they are a part of.
    """

    def __init__(self, net: ConvNet, stride: int, *, coarse_stride: int = 0) -> None:
        super().__init__()
        self.net, self.strides = net, (stride, coarse_stride) if coarse_stride else (stride,)
        self.dim = sum(net.channels(one) for one in self.strides)

    def forward(self, images: Images) -> Encoded:
        """Encode images; all cells exist."""
        fine, *coarse = self.net.all_maps(images, self.strides)
        spread = [functional.interpolate(maps, size=fine.shape[2:], mode="bilinear") for maps in coarse]
        return Encoded.whole(torch.cat([fine, *spread], dim=1).flatten(2).mT)


class LeNet5(ConvNet):
    """LeNet-5 (LeCun et al. 1998, section II.B): C1 6 maps, S2, C3 16 maps, S4, C5 120 units, F6 84 units, classes.

    The paper pads 28 x 28 digits to 32 x 32; here the first convolution does. Each map of C3 is connected to all maps
    of S2, and the classes are linear units instead of distances to stylised characters. `activation="tanh"` uses tanh
    and average pooling, as in the paper (without the learned factor and bias of each average); "relu" uses ReLU and
    maximum pooling, as is common today.
    """

    def __init__(self, classes: int = 10, *, channels: int = 1, activation: Literal["tanh", "relu"] = "relu") -> None:
        super().__init__()
        squash: Callable[[], nn.Module] = nn.Tanh if activation == "tanh" else nn.ReLU
        pool: Callable[[int], nn.Module] = nn.AvgPool2d if activation == "tanh" else nn.MaxPool2d
        self.features = nn.Sequential(
            nn.Conv2d(channels, 6, 5, padding=2), squash(), pool(2),
            nn.Conv2d(6, 16, 5), squash(), pool(2),
        )  # fmt: skip
        # C5 is a convolution in the paper too, although its output on digits is a single cell.
        self.classifier = nn.Sequential(
            nn.Conv2d(16, 120, 5), squash(), nn.Flatten(),
            nn.Linear(120, 84), squash(),
            nn.Linear(84, classes),
        )  # fmt: skip


class AlexNet(ConvNet):
    """AlexNet (Krizhevsky et al. 2012, section 3.5), in two groups that the third convolution joins.

    The paper states 224 x 224 pixels, which 11 x 11 windows at stride 4 do not cover exactly; 227 x 227 pixels work,
    with 6 x 6 cells in the last maps. The last maps of other images are averaged to that size.
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
    """The small networks of Karpathy's ConvNetJS: padded 5 x 5 convolutions, each followed by a pooling.

    `filters` is the number of filters of each convolution and `pools` the size of each pooling window: 8, 16 and 2, 3
    for MNIST; 16, 20, 20 and 2, 2, 2 for CIFAR-10. A linear layer predicts the class.
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
"""Marks a pooling layer among the filter counts of VGG."""
VGG_FILTERS: dict[int, tuple[int, ...]] = {
    11: (64, POOL, 128, POOL, 256, 256, POOL, 512, 512, POOL, 512, 512, POOL),
    16: (64, 64, POOL, 128, 128, POOL, *[256] * 3, POOL, *[512] * 3, POOL, *[512] * 3, POOL),
    19: (64, 64, POOL, 128, 128, POOL, *[256] * 4, POOL, *[512] * 4, POOL, *[512] * 4, POOL),
}
SMALL_VGG_FILTERS = (64, 128, POOL, 256, 256, POOL, 512, 512, POOL, 512, 512, POOL)


def vgg_features(filters: Sequence[int], channels: int, *, batch_norm: bool) -> nn.Sequential:
    """Create padded 3 x 3 convolutions and 2 x 2 maximum poolings (Simonyan and Zisserman 2015, table 1)."""
    layers: list[nn.Module] = []
    for count in filters:
        if count == POOL:
            layers.append(nn.MaxPool2d(2))
            continue
        # Batch normalisation makes the bias redundant, but published parameters have both.
        layers.append(nn.Conv2d(channels, count, 3, padding=1))
        layers += [nn.BatchNorm2d(count), nn.ReLU(inplace=True)] if batch_norm else [nn.ReLU(inplace=True)]
        channels = count
    for layer in layers:
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
            nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
    return nn.Sequential(*layers)


class VGG(ConvNet):
    """VGG with 11, 16 or 19 layers, whose parameters have the names of the common checkpoints.

    `features.0.weight` is the first convolution, `classifier.6.weight` the last layer. Images may have any size from
    32 x 32 on: the last maps are averaged to 7 x 7 cells before the classifier.
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
            raise OptionError(f"The depth of VGG is one of {', '.join(map(str, VGG_FILTERS))}; got depth={depth}.")
        self.features = vgg_features(VGG_FILTERS[depth], channels, batch_norm=batch_norm)
        self.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, hidden), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(hidden, hidden), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(hidden, classes),
        )  # fmt: skip
        self.average = nn.AdaptiveAvgPool2d((7, 7))

    def forward(self, images: Images) -> Float[Tensor, "b classes"]:
        """Compute a logit for each class."""
        logits: Tensor = self.classifier(self.average(self.features(images)).flatten(1))
        return logits


class SmallVGG(ConvNet):
    """VGG for images of 32 x 32: with batch normalisation, and one linear layer on the maximum of each map."""

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
