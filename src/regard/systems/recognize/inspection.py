"""What the layers of an image classifier make of an image, and lists of layers before there is a network."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Literal

import torch
from msgspec import Meta
from torch import nn

from regard.config import Checked, PositiveInt
from regard.data.images import ImageInput
from regard.encoders.feature_maps import NetworkMaps, feature_maps
from regard.encoders.image import POOL, VGG_FILTERS, ConvNet
from regard.encoders.image_networks import MADE_FOR, make_net
from regard.encoders.layer_table import LayerRow, LayerTable, layer_table, output_size
from regard.errors import OptionError, ShapeError
from regard.systems.endpoint import endpoint
from regard.systems.recognize.model import ImageClassifier, Prediction

Side = Annotated[int, Meta(ge=1, le=1024)]
MAX_FILTERS = 4096
MAX_LAYERS = 40


@dataclass(frozen=True, eq=False)
class ClassifierMaps(NetworkMaps):
    """The maps of a classifier, and what it says."""

    predictions: tuple[Prediction, ...]
    """The ten most probable classes."""


@endpoint("maps", input="image")
def layer_maps(
    model: ImageClassifier, image: ImageInput, *, max_maps: PositiveInt = 16, max_side: PositiveInt = 32
) -> ClassifierMaps:
    """The pixels that the network sees of an image, and the maps after each of its layers (see `feature_maps`).

    Parameters
    ----------
    max_maps
        How many maps of a layer to report.
    max_side
        Height and width above which maps are averaged down.
    """
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
    maps = feature_maps(layers, normalised, max_maps=max_maps, max_side=max_side)
    return ClassifierMaps(pixels, tuple(pixels.shape), maps, model.recognize(image, top=10).predictions)


@dataclass(frozen=True)
class LayerSpec(Checked):
    """One layer of a list."""

    kind: Literal["conv", "max_pool", "average_pool"] = "conv"
    """A convolution, or the maximum or the mean of each window."""
    kernel: Side = 3
    """Height and width of the window."""
    stride: Side = 1
    """Distance between two windows."""
    padding: Annotated[int, Meta(ge=0, le=1024)] = 0
    """Border of zeros around the maps; a maximum ignores it."""
    filters: Annotated[int, Meta(ge=1, le=MAX_FILTERS)] = 8
    """conv: number of filters, which is the number of maps of the output; poolings keep the number of maps."""
    groups: Annotated[int, Meta(ge=1, le=MAX_FILTERS)] = 1
    """conv: in how many groups the maps are convolved, each apart from the others."""

    def build(self, channels: int) -> nn.Module:
        """Create the layer for so many input maps."""
        if self.kind == "conv":
            return nn.Conv2d(channels, self.filters, self.kernel, self.stride, self.padding, groups=self.groups)
        pool = nn.MaxPool2d if self.kind == "max_pool" else nn.AvgPool2d
        return pool(self.kernel, self.stride, self.padding)

    def check_input(self, size: tuple[int, int, int]) -> tuple[int, int, int]:
        """The size of the output for maps of (channels, height, width); an error where the layer is impossible."""
        channels, height, width = size
        if self.kind == "conv" and (channels % self.groups or self.filters % self.groups):
            raise ShapeError(
                f"{self.groups} groups need numbers of maps that are multiples of it; got {channels} input maps and "
                f"{self.filters} filters."
            )
        if self.kind != "conv" and 2 * self.padding > self.kernel:
            raise ShapeError(
                f"The padding of a pooling is at most half its kernel, so that no window lies outside of the maps; got "
                f"padding {self.padding} and kernel {self.kernel}."
            )
        sides = [output_size(side, self.kernel, stride=self.stride, padding=self.padding) for side in (height, width)]
        return (self.filters if self.kind == "conv" else channels, sides[0], sides[1])


@dataclass(frozen=True)
class Problem:
    """Why a list of layers is impossible."""

    layer: int
    """The first impossible layer, counted from 0."""
    message: str


@dataclass(frozen=True)
class Tabulated:
    """A row for each layer up to the first impossible one."""

    rows: tuple[LayerRow, ...]
    parameters: int
    """Number of parameters of all layers."""
    multiply_adds: int
    """Number of multiply-adds of all layers for one image."""
    problem: Problem | None


@endpoint("table", example={"layers": [{"kernel": 5, "filters": 6}, {"kind": "max_pool", "kernel": 2, "stride": 2}]})
def tabulate(layers: Sequence[LayerSpec], *, channels: Side = 3, height: Side = 32, width: Side = 32) -> Tabulated:
    """Tabulate a list of layers as `layer_table` does: output sizes, receptive fields, parameters, multiply-adds.

    A layer that does not fit on what the layers before it leave is reported with the reason; the table then ends before
    it. Nothing is computed but sizes, so that large layers take no memory.
    """
    size = channels, height, width
    if min(size) < 1:
        raise OptionError(f"An image has 1 or more channels, rows and columns; got {size}.")
    if len(layers) > MAX_LAYERS:
        raise OptionError(f"A list has at most {MAX_LAYERS} layers; got {len(layers)}.")
    problem, here = None, size
    possible: list[nn.Module] = []
    for number, layer in enumerate(layers):
        try:
            after = layer.check_input(here)
        except ShapeError as error:
            problem = Problem(number, str(error))
            break
        with torch.device("meta"):
            possible.append(layer.build(here[0]))
        here = after
    table = layer_table(nn.Sequential(*possible), size) if possible else LayerTable([], size)
    return Tabulated(tuple(table.rows), table.parameters, table.multiply_adds, problem)


@dataclass(frozen=True)
class KnownNetwork:
    """The convolutions and poolings of a network by its name, with the images that it was made for."""

    name: str
    title: str
    channels: int
    height: int
    width: int
    layers: tuple[LayerSpec, ...]


_KNOWN = {
    "lenet5": "LeNet-5 (1998)",
    "alexnet": "AlexNet (2012)",
    "convnetjs_mnist": "ConvNetJS for MNIST",
    "convnetjs_cifar": "ConvNetJS for CIFAR-10",
}


@endpoint("networks", answer="networks")
@cache
def known_networks() -> tuple[KnownNetwork, ...]:
    """Networks of the literature as lists of layers, to start from."""
    found = []
    for name, title in _KNOWN.items():
        channels, side, classes = MADE_FOR[name]
        with torch.device("meta"):
            net = make_net(name, classes, channels=channels, size=side)
        specs = [_spec(layer) for layer in [*net.features, *net.classifier.children()]]
        found.append(KnownNetwork(name, title, channels, side, side, tuple(spec for spec in specs if spec is not None)))
    # Written out, since to create the network takes long even without memory for its parameters.
    vgg16 = [
        LayerSpec("max_pool", 2, 2) if count == POOL else LayerSpec("conv", 3, 1, 1, count) for count in VGG_FILTERS[16]
    ]
    return (*found, KnownNetwork("vgg16", "VGG-16 (2014)", 3, 224, 224, tuple(vgg16)))


def _spec(layer: nn.Module) -> LayerSpec | None:
    if isinstance(layer, nn.Conv2d):
        kernel, stride, padding = (_one(each) for each in (layer.kernel_size, layer.stride, layer.padding))
        return LayerSpec("conv", kernel, stride, padding, layer.out_channels, layer.groups)
    if isinstance(layer, nn.MaxPool2d | nn.AvgPool2d):
        kernel, stride, padding = (_one(each) for each in (layer.kernel_size, layer.stride, layer.padding))
        return LayerSpec("max_pool" if isinstance(layer, nn.MaxPool2d) else "average_pool", kernel, stride, padding)
    return None


def _one(value: object) -> int:
    """The number that stands for height and width."""
    number = value[0] if isinstance(value, tuple) else value
    if not isinstance(number, int):
        raise OptionError(f"A layer of a list has one number for height and width; got {value!r}.")
    return number
