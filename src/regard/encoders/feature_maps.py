"""What the layers of a convolutional network compute from one image: its feature maps, and the filters behind them."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn
from torch.nn import functional

from regard.errors import OptionError

_SILENT = (nn.BatchNorm2d, nn.Dropout, nn.Dropout2d, nn.Identity)
"""Layers that only rescale, which are shown with the layer after them."""


@dataclass(frozen=True, eq=False)
class LayerMaps:
    """The maps of one layer for one image."""

    name: str
    """Name of the layer in its network."""
    kind: str
    """Class of the layer."""
    shape: tuple[int, int, int]
    """Number of maps, their height and their width, before anything was left out or made smaller."""
    maps: Float[Tensor, "n h w"]
    """The first maps; large ones are averaged down."""
    filters: Float[Tensor, "n c kh kw"] | None = field(default=None)
    """The filters of a convolution that compute these maps, for the first input maps."""


@dataclass(frozen=True, eq=False)
class NetworkMaps:
    """An image as a network sees it, and the maps after each of its layers."""

    image: UInt8[Tensor, "c h w"]
    """The pixels that the network reads."""
    size: tuple[int, ...]
    """Channels, height and width of these."""
    layers: list[LayerMaps]


def feature_maps(
    layers: Iterable[tuple[str, nn.Module]],
    image: Float[Tensor, "c h w"],
    *,
    max_maps: int = 16,
    max_side: int = 32,
    max_inputs: int = 4,
) -> list[LayerMaps]:
    """Compute the maps of an image after each of these layers, which follow each other.

    Normalisation and dropout are applied but not reported. The layers end where maps do: at the first one whose output
    has no height and width. At most `max_maps` maps of a layer are kept, of at most `max_side` pixels, and filters for
    at most `max_inputs` input maps.
    """
    if min(max_maps, max_side, max_inputs) < 1:
        raise OptionError(
            f"max_maps, max_side and max_inputs must be 1 or more; got {max_maps}, {max_side} and {max_inputs}."
        )
    found = []
    with torch.inference_mode():
        current = image.unsqueeze(0)
        for name, layer in layers:
            # A copy, since some layers work in place.
            current = layer(current.clone())
            if current.ndim != 4:
                break
            if isinstance(layer, _SILENT):
                continue
            filters = (
                layer.weight.detach()[:max_maps, :max_inputs].float().cpu() if isinstance(layer, nn.Conv2d) else None
            )
            maps = _smaller(current[0, :max_maps].float().cpu(), max_side)
            shape = (current.shape[1], current.shape[2], current.shape[3])
            found.append(LayerMaps(name, type(layer).__name__, shape, maps, filters))
    return found


def _smaller(maps: Float[Tensor, "n h w"], side: int) -> Float[Tensor, "n _ _"]:
    """Maps averaged down until neither side is longer than `side`."""
    height, width = maps.shape[1:]
    scale = max(height, width) / side
    if scale <= 1:
        return maps
    size = (max(1, round(height / scale)), max(1, round(width / scale)))
    return functional.adaptive_avg_pool2d(maps, size)
