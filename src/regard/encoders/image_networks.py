"""Image networks by name, including those of timm."""

import re
from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

from jaxtyping import Float
from torch import Tensor

from regard.encoders.efficientnet import EFFICIENTNETS
from regard.encoders.image import VGG, AlexNet, ConvNet, ConvNetJS, Images, LeNet5, SmallVGG
from regard.errors import OptionError
from regard.extras import require


class TimmNet(ConvNet):
    """A network of timm, by its name there; with `pretrained`, timm downloads its parameters."""

    def __init__(self, name: str, classes: int = 1000, *, channels: int = 3, pretrained: bool = False) -> None:
        super().__init__()
        if not re.fullmatch(r"[\w.]+", name):
            # timm would fetch hf-hub:NAME from the network, and a model folder can name it.
            raise OptionError(f"The name of a network of timm has letters, digits, _ and dots; got {name!r:.80}.")
        timm = require(f"The network timm:{name}", "timm")
        try:
            self.model = timm.create_model(name, pretrained=pretrained, num_classes=classes, in_chans=channels)
        except RuntimeError as error:
            raise OptionError(f"timm cannot create a network {name!r}: {error}.") from error
        # The name, number of maps and stride of each stage, finest first.
        self._stages: list[dict[str, Any]] = [dict(stage) for stage in self.model.feature_info]

    def forward(self, images: Images) -> Float[Tensor, "b classes"]:
        """Compute a logit for each class."""
        logits: Tensor = self.model(images)
        return logits

    def maps(self, images: Images, stride: int) -> Float[Tensor, "b d gh gw"]:
        """Compute the deepest maps at a stride, where one cell stands for stride x stride pixels."""
        index = self._index(stride)
        if not hasattr(self.model, "forward_intermediates"):
            raise OptionError(
                f"timm does not return the maps of {type(self.model).__name__}, so it can only be used as a classifier."
            )
        maps: list[Tensor] = self.model.forward_intermediates(images, indices=[index], intermediates_only=True)
        return maps[0]

    def channels(self, stride: int) -> int:
        """Return the number of maps at a stride."""
        return int(self._stages[self._index(stride)]["num_chs"])

    def _strides(self) -> list[int]:
        return [int(stage["reduction"]) for stage in self._stages]

    def _index(self, stride: int) -> int:
        return self.layers_to(stride) - 1


NETWORKS: dict[str, Callable[..., ConvNet]] = {
    "lenet5": LeNet5,
    "alexnet": AlexNet,
    "convnetjs_mnist": partial(ConvNetJS, filters=(8, 16), pools=(2, 3)),
    "convnetjs_cifar": partial(ConvNetJS, filters=(16, 20, 20), pools=(2, 2, 2)),
    "small_vgg": SmallVGG,
    "vgg11": partial(VGG, 11),
    "vgg16": partial(VGG, 16),
    "vgg19": partial(VGG, 19),
    **EFFICIENTNETS,
}

MADE_FOR = {
    "lenet5": (1, 28, 10),
    "alexnet": (3, 227, 1000),
    "convnetjs_mnist": (1, 28, 10),
    "convnetjs_cifar": (3, 32, 10),
    "small_vgg": (3, 32, 10),
}
"""Channels and side of the images that a network was made for, and their classes; all others are for ImageNet."""


def make_net(
    name: str, classes: int, *, channels: int = 3, size: int = 32, batch_norm: bool = False, dropout: float = 0.0
) -> ConvNet:
    """Create a network by its name, or timm:NAME, for square images; options that it does not have are ignored."""
    if name.startswith("timm:"):
        return TimmNet(name.removeprefix("timm:"), classes, channels=channels)
    if name not in NETWORKS:
        raise OptionError(f"The network must be one of {', '.join(NETWORKS)}, or timm:NAME; got {name!r}.")
    options = {"channels": channels, "size": size, "batch_norm": batch_norm, "dropout": dropout}
    accepted = options.keys() & signature(NETWORKS[name]).parameters.keys()
    return NETWORKS[name](classes, **{option: options[option] for option in accepted})
