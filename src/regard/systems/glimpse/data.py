"""What a glimpse model reads: images of any size as squares, and the digits that it learns from."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import UInt8
from PIL import Image

from regard.data.images import channels_first
from regard.data.splits import Splits
from regard.errors import DataError, OptionError
from regard.systems.glimpse.config import DrawnDigits, GlimpsesConfig, GlimpsesData, GlimpsesTest
from regard.worlds.digits import DIGITS, DigitImages, DigitWorld, Glyphs, font_glyphs, mnist_glyphs

if TYPE_CHECKING:
    from regard.systems.glimpse.model import Glimpser

_GREY_LEVEL = 127
_FONT_EXAMPLES = 2000
_VALID_SEED, _TEST_SEED = 11, 12
DigitSplits = Splits[Glyphs, DigitImages]


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


def digit_world(data: DrawnDigits, config: GlimpsesConfig, distortion: float) -> DigitWorld:
    """How digits are drawn into images of the size that the model takes."""
    return DigitWorld(config.image_size, data.pieces, data.piece_size, distortion)


def read_splits(data: GlimpsesData, config: GlimpsesConfig, device: torch.device) -> DigitSplits:
    """The digits to train with, and the images to validate and test with, which are always the same."""
    if config.channels != 1:
        raise OptionError(f"Digits are grey: set --model.channels 1; got {config.channels}.")
    if data.folder:
        train, valid, test = mnist_glyphs(data.folder, held_out=data.held_out)
        num_valid, num_test = len(valid), data.test_examples or len(test)
    else:
        train, valid, test = font_glyphs()
        num_valid, num_test = data.held_out, data.test_examples or _FONT_EXAMPLES
    tests = digit_world(data, config, data.distortion if data.distort_tests else 0.0)
    return Splits(
        train.to(device),
        # Drawn on the CPU, whose random numbers are the same everywhere.
        tests.fixed(valid, num_valid, seed=_VALID_SEED).to(device),
        tests.fixed(test, num_test, seed=_TEST_SEED).to(device),
    )


def draw_tests(model: "Glimpser", test_set: GlimpsesTest) -> DigitImages:
    """The test images, always the same for a seed."""
    if tuple(model.labels) != DIGITS:
        raise DataError(f"The model knows the classes {list(model.labels)}; the images show digits.")
    if model.config.channels != 1:
        raise OptionError("The model looks at colour images; the images of digits are grey.")
    world = digit_world(test_set, model.config, test_set.distortion)
    glyphs = mnist_glyphs(test_set.folder)[2] if test_set.folder else font_glyphs()[2]
    count = test_set.examples or (len(glyphs) if test_set.folder else _FONT_EXAMPLES)
    return world.fixed(glyphs, count, seed=test_set.seed)
