"""Example images for classifiers of digits: digits of fonts, light on dark."""

from dataclasses import dataclass
from functools import cache

from PIL import Image

from regard.worlds.digits import DIGITS, font_glyphs


@dataclass(frozen=True, eq=False)
class Example:
    """An image of one digit."""

    image: Image.Image
    label: str


@cache
def digit_glyphs() -> tuple[Example, ...]:
    """The digits 0 to 9 of one font."""
    glyphs = font_glyphs()[2]
    return tuple(
        Example(Image.fromarray(glyphs.images[place].numpy()), DIGITS[int(glyphs.labels[place])])
        for place in range(len(DIGITS))
    )
