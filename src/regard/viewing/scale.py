"""From weights to colours: the range of a map, shades with readable ink on them, and large maps reduced."""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

Weights = Float[np.ndarray, "rows columns"]
Colour = tuple[int, int, int]

WHITE, BLACK = (255, 255, 255), (0, 0, 0)
LIGHT, DARK = (247, 251, 255), (8, 69, 148)
"""The colours of no weight and of the largest, outside of figures."""
_SHADES = " ░▒▓█"
# What each value of a channel adds to the luminance, as WCAG 2 defines it.
_LINEAR = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in np.arange(256) / 255]
# The luminance at which black and white have the same contrast, 4.58.
_MIDDLE = math.sqrt(1.05 * 0.05) - 0.05


def largest_weight(weights: Weights) -> float:
    """The weight that is drawn darkest: 1, or the maximum if that is small or above 1."""
    highest = float(np.abs(weights).max(initial=0.0))
    return highest if highest > 1 or 0 < highest < 0.5 else 1.0


def is_signed(weights: Weights) -> bool:
    """Whether a map has negative numbers that matter, as the content of a memory has."""
    return bool(weights.min(initial=0.0) < -0.01 * np.abs(weights).max(initial=0.0))


def blend(low: Colour, high: Colour, share: float) -> Colour:
    """The colour at a share from 0 (low) to 1 (high); other shares are taken as the nearest of these."""
    share = min(1.0, max(0.0, share))
    red, green, blue = (round(start + (end - start) * share) for start, end in zip(low, high, strict=True))
    return red, green, blue


def luminance(colour: Colour) -> float:
    """Relative luminance of an RGB colour, from 0 (black) to 1 (white), as WCAG 2 defines it."""
    red, green, blue = colour
    return float(0.2126 * _LINEAR[red] + 0.7152 * _LINEAR[green] + 0.0722 * _LINEAR[blue])


def ink_on(background: Colour) -> Colour:
    """Black or white, whichever is easier to read on this background: their contrast is always 4.5 or more."""
    return BLACK if luminance(background) >= _MIDDLE else WHITE


def fractions(colour: Colour) -> tuple[float, float, float]:
    """A colour as matplotlib takes it, with parts from 0 to 1."""
    red, green, blue = colour
    return red / 255, green / 255, blue / 255


def rgb(colour: Sequence[int]) -> str:
    """A colour as rich takes it."""
    return "rgb({},{},{})".format(*colour)


def inked(background: Colour) -> str:
    """A style of rich: readable ink on this background."""
    return f"{rgb(ink_on(background))} on {rgb(background)}"


def filled(colour: Colour) -> str:
    """A style of rich for a character whose form does not show, because its colour fills the cell."""
    return f"{rgb(colour)} on {rgb(colour)}"


def shade_of(share: float) -> str:
    """A character that is the fuller the larger a share from 0 to 1 is, where there are no colours."""
    return _SHADES[round(4 * min(1.0, max(0.0, share)))]


def reduced(weights: Weights, max_rows: int, max_columns: int) -> tuple[Float[np.ndarray, "_ _"], tuple[int, int]]:
    """A map of at most this size, and how many rows and columns each of its cells stands for.

    A cell shows the number of largest magnitude of its block, so that a sharp peak is not averaged away.
    """
    rows, columns = weights.shape
    steps = math.ceil(rows / max_rows), math.ceil(columns / max_columns)
    if max(steps) <= 1:
        return weights, (1, 1)
    padding = [(0, -size % step) for size, step in zip(weights.shape, steps, strict=True)]
    blocks = np.pad(weights, padding).reshape(-(-rows // steps[0]), steps[0], -(-columns // steps[1]), steps[1])
    high, low = blocks.max((1, 3)), blocks.min((1, 3))
    return np.where(high >= -low, high, low), steps


def reduction_note(size: tuple[int, int], steps: tuple[int, int]) -> str:
    """The note below a reduced map."""
    return f"{size[0]:,} x {size[1]:,} weights; each cell shows the largest of {steps[0]} x {steps[1]}"
