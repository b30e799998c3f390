"""What the layers of an image classifier make of an image."""

import torch
from jaxtyping import UInt8
from torch import Tensor

from regard.data.images import ImageInput
from regard.encoders.feature_maps import LayerMaps, feature_maps
from regard.encoders.image import ConvNet
from regard.errors import OptionError
from regard.systems.recognize.model import ImageClassifier


def layer_maps(
    model: ImageClassifier, image: ImageInput, *, max_maps: int = 16, max_side: int = 32
) -> tuple[UInt8[Tensor, "c h w"], list[LayerMaps]]:
    """The pixels that the network sees of an image, and the maps after each of its layers (see `feature_maps`)."""
    model.check_mode()
    net = model.net
    if not isinstance(net, ConvNet) or not hasattr(net, "features"):
        raise OptionError(
            f"The network {model.config.architecture} is no sequence of layers whose maps can be shown. Take one of "
            "regard's own, such as lenet5 or small_vgg."
        )
    pixels = torch.from_numpy(model.pixels(image))
    with torch.inference_mode():
        normalised = model.normalised(pixels.to(model.device).unsqueeze(0))[0]
    layers = [(f"features.{name}", layer) for name, layer in net.features.named_children()]
    layers += [(f"classifier.{name}", layer) for name, layer in net.classifier.named_children()]
    return pixels, feature_maps(layers, normalised, max_maps=max_maps, max_side=max_side)
