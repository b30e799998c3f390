"""How an image of any size becomes the square that a glimpse model looks at, and how its pixels are found again."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from regard.data.images import channels_first

_GREY_LEVEL = 127


@dataclass(frozen=True, eq=False)
class SquareView:
    """An image in the middle of a square: larger ones are made smaller, smaller ones keep their size."""

    pixels: UInt8[np.ndarray, "c side side"]
    """The square; 0 around the image."""
    size: tuple[int, int]
    """Width and height of the image itself."""
    offset: tuple[int, int]
    """Where the image begins in the square: left, top."""
    scale: float
    """Pixels of the square for each pixel of the image, at most 1."""

    @classmethod
    def from_image(cls, image: Image.Image, side: int, *, light_on_dark: bool) -> "SquareView":
        """Put an image into a square; with `light_on_dark`, an image with a bright border is inverted."""
        scale = min(1.0, side / max(image.size))
        width, height = (max(1, round(length * scale)) for length in image.size)
        small = image if scale == 1 else image.resize((width, height), Image.Resampling.BOX)
        pixels = channels_first(np.array(small, dtype=np.uint8))
        if light_on_dark and _border_level(pixels) > _GREY_LEVEL:
            pixels = 255 - pixels
        left, top = (side - width) // 2, (side - height) // 2
        square = np.zeros((len(pixels), side, side), np.uint8)
        square[:, top : top + height, left : left + width] = pixels
        return cls(square, image.size, (left, top), scale)

    def to_image(self, x: float | int, y: float | int) -> tuple[float, float]:
        """The point of the image itself, in pixels, that is shown at a point of the square; never outside of it."""
        points = zip((x, y), self.offset, self.size, strict=True)
        across, down = (min(max((each - start) / self.scale, 0.0), float(length)) for each, start, length in points)
        return across, down


def _border_level(pixels: UInt8[np.ndarray, "c h w"]) -> float:
    grey = pixels.mean(0)
    return float(np.median(np.concatenate([grey[0], grey[-1], grey[:, 0], grey[:, -1]])))
