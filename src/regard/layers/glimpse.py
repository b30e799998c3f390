"""Glimpses: a retina that sees sharply where it looks, and the network that reads it (Mnih et al. 2014, section 3.1).

A location is (x, y), each from -1 to 1: (-1, -1) is the upper left corner of the image, (0, 0) its centre. Scale k of
the retina is a window of size * 2^k pixels around the location, averaged down to size x size, so that each further
scale sees twice as far and half as sharply. Outside of the image all pixels are 0.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from torch.nn import functional

from regard.errors import OptionError

What = Literal["linear", "convolution"]


def window_offsets(
    locations: Float[Tensor, "b 2"], *, image: tuple[int, int], size: int, scale: int = 0
) -> Int[Tensor, "b 2"]:
    """The left and top pixel of the window of a scale around each location; both may be negative.

    The finest window is the one whose centre is nearest to the location; it always shares a pixel with the image, also
    for locations beyond its edges. The other windows have the same centre, or for an odd size half a pixel beside it.
    """
    height, width = image
    edges = [
        (((each + 1) / 2 * extent - size / 2 + 0.5).floor().clamp(1 - size, extent - 1))
        for each, extent in zip(locations.float().unbind(-1), (width, height), strict=True)
    ]
    offsets: Tensor = torch.stack(edges, -1).long() - (size * 2**scale - size) // 2
    return offsets


def crop(
    images: Shaped[Tensor, "b c h w"], offsets: Int[Tensor, "b 2"], size: tuple[int, int]
) -> Shaped[Tensor, "b c height width"]:
    """Cut a window of (height, width) pixels from each image at its own (left, top); 0 outside of the image."""
    height, width = images.shape[2:]
    columns = offsets[:, :1] + torch.arange(size[1], device=images.device)
    rows = offsets[:, 1:] + torch.arange(size[0], device=images.device)
    inside = ((rows >= 0) & (rows < height))[:, :, None] & ((columns >= 0) & (columns < width))[:, None, :]
    indices = rows.clamp(0, height - 1)[:, :, None] * width + columns.clamp(0, width - 1)[:, None, :]
    indices = indices.flatten(1)[:, None].expand(-1, images.shape[1], -1)
    cut: Tensor = images.flatten(2).gather(2, indices).unflatten(2, size)
    return cut * inside[:, None].to(cut.dtype)


@dataclass(frozen=True, eq=False)
class Scene:
    """Images with a border of zeros that is as wide as a retina can see, so that many glimpses share it."""

    pixels: Float[Tensor, "b c p"]
    """The pixels with their border, row by row."""
    image: tuple[int, int]
    """Height and width without the border."""
    margin: int
    """Width of the border."""

    @classmethod
    def from_images(cls, images: Float[Tensor, "b c h w"], *, size: int, num_scales: int) -> "Scene":
        """Surround images for a retina of this size and number of scales."""
        if size < 1 or num_scales < 1:
            raise OptionError(f"A retina needs a size and a number of scales of 1 or more; got {size=}, {num_scales=}.")
        # A window of the finest scale shares a pixel with the image; the widest reaches further on both sides.
        margin = size + (size * 2 ** (num_scales - 1) - size) // 2 + 1
        pixels = functional.pad(images, (margin,) * 4).flatten(2)
        return cls(pixels, (images.shape[2], images.shape[3]), margin)

    def window(self, locations: Float[Tensor, "b 2"], *, size: int, num_scales: int) -> Float[Tensor, "b c n n"]:
        """The widest window of a retina around each location."""
        widest, width = size * 2 ** (num_scales - 1), self.image[1] + 2 * self.margin
        left, top = window_offsets(locations, image=self.image, size=size, scale=num_scales - 1).unbind(1)
        steps = torch.arange(widest, device=self.pixels.device)
        within = (steps[:, None] * width + steps).flatten()
        indices = ((top + self.margin) * width + left + self.margin)[:, None] + within
        cut: Tensor = self.pixels.gather(2, indices[:, None].expand(-1, self.pixels.shape[1], -1))
        window: Tensor = cut.unflatten(2, (widest, widest))
        return window


def retina(
    images: Float[Tensor, "b c h w"] | Scene, locations: Float[Tensor, "b 2"], *, size: int, num_scales: int = 1
) -> Float[Tensor, "b scales c size size"]:
    """What is seen at each location: windows of size * 2^k pixels, k = 0, 1, ..., each averaged to size x size.

    For many glimpses of the same images, prepare a `Scene` once. The result does not depend on the location in a
    differentiable way; a policy learns from rewards.
    """
    if not isinstance(images, Scene):
        images = Scene.from_images(images, size=size, num_scales=num_scales)
    # One window of the widest scale is cut from the image; the finer ones are its middle.
    window = images.window(locations, size=size, num_scales=num_scales)
    widest = window.shape[-1]
    scales = []
    for scale in range(num_scales):
        side = size * 2**scale
        start = (widest - size) // 2 - (side - size) // 2
        part = window[:, :, start : start + side, start : start + side]
        scales.append(functional.avg_pool2d(part, 2**scale) if scale else part)
    return torch.stack(scales, 1)


class GlimpseNetwork(nn.Module):
    """Reads a glimpse: g = relu(W_1 what + W_2 where), what = relu(f(retina)), where = relu(W_l l).

    f is a linear layer (the paper's), or two convolutions and a linear layer. `what` may also be a module that takes
    the place of relu(f): from (b, channels * num_scales, size, size) to (b, dim).
    """

    def __init__(
        self, *, channels: int, size: int, num_scales: int, dim: int, out_dim: int, what: What | nn.Module = "linear"
    ) -> None:
        super().__init__()
        self.size, self.num_scales = size, num_scales
        planes = channels * num_scales
        if isinstance(what, nn.Module):
            self.what = what
        elif what == "convolution":
            pooled = max(1, size // 2)
            self.what = nn.Sequential(
                nn.Conv2d(planes, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 48, 3, padding=1), nn.ReLU(),
                nn.AdaptiveMaxPool2d(pooled) if size % 2 else nn.MaxPool2d(2), nn.Flatten(),
                nn.Linear(48 * pooled * pooled, dim), nn.ReLU(),
            )  # fmt: skip
        else:
            self.what = nn.Sequential(nn.Flatten(), nn.Linear(planes * size * size, dim), nn.ReLU())
        self.where = nn.Sequential(nn.Linear(2, dim), nn.ReLU())
        self.from_what = nn.Linear(dim, out_dim)
        self.from_where = nn.Linear(dim, out_dim)

    def scene(self, images: Float[Tensor, "b c h w"]) -> Scene:
        """Prepare images for many glimpses."""
        return Scene.from_images(images, size=self.size, num_scales=self.num_scales)

    def forward(
        self, images: Float[Tensor, "b c h w"] | Scene, locations: Float[Tensor, "b 2"]
    ) -> Float[Tensor, "b g"]:
        """The features of a glimpse at each location."""
        seen = retina(images, locations, size=self.size, num_scales=self.num_scales)
        what = self.from_what(self.what(seen.flatten(1, 2)))
        return functional.relu(what + self.from_where(self.where(locations)))
