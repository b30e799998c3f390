"""Example images for classifiers of digits: digits of fonts, light on dark."""

from dataclasses import dataclass
from functools import cache

from PIL import Image

from regard.worlds.digits import DIGITS, font_glyphs


@dataclass(frozen=True, eq=False)
class RecognitionExample:
    """An image of one digit."""

    name: str
    image: Image.Image
    label: str
    caption: str
    """What the image shows."""
    model: str = "digits"
    """A shipped model for such images."""


@cache
def examples() -> tuple[RecognitionExample, ...]:
    """The digits 0 to 9 of one font."""
    glyphs = font_glyphs()[2]
    return tuple(
        RecognitionExample(f"digit-{label}", Image.fromarray(glyphs.images[index].numpy()), label, f"the digit {label}")
        for index, label in enumerate(DIGITS[int(each)] for each in glyphs.labels[: len(DIGITS)])
    )
