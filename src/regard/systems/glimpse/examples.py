"""Example images for glimpse models: digits of fonts that none was trained on, among pieces of other digits."""

from dataclasses import dataclass
from functools import cache

from PIL import Image

from regard.data.regions import Box
from regard.worlds.digits import DIGITS, DigitWorld, font_glyphs

PIECES, DISTORTION = 4, 0.2
"""How the images are cluttered and distorted."""


@dataclass(frozen=True, eq=False)
class GlimpseExample:
    """An image with one digit."""

    name: str
    image: Image.Image
    label: str
    box: Box
    """Where the digit is, in fractions of the image."""
    caption: str
    """What the image shows."""
    model: str = "glimpse-digits"
    """A shipped model for such images."""


def examples() -> tuple[GlimpseExample, ...]:
    """Generated images to try: a digit among pieces of others."""
    return digit_examples()


@cache
def digit_examples(count: int = 10, *, size: int = 60, seed: int = 1) -> tuple[GlimpseExample, ...]:
    """Images with the digits 0, 1, 2, ... in turn, each at a random location among clutter."""
    drawn = DigitWorld(image_size=size, pieces=PIECES, distortion=DISTORTION).fixed(font_glyphs()[2], count, seed=seed)
    return tuple(
        GlimpseExample(
            f"digit-{number}",
            Image.fromarray(drawn.images[number, 0].numpy()),
            DIGITS[int(drawn.labels[number])],
            tuple(edge / size for edge in drawn.boxes[number].tolist()),
            f"the digit {DIGITS[int(drawn.labels[number])]}",
        )
        for number in range(count)
    )
