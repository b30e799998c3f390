"""From weights to colours: the range of a map, readable ink on a cell, and large maps reduced."""

import math

import numpy as np
from jaxtyping import Float

Weights = Float[np.ndarray, "rows columns"]
Colour = tuple[int, int, int]


def largest_weight(weights: Weights) -> float:
    """The weight drawn darkest: 1, or the maximum if all weights are small or some are above 1."""
    highest = float(np.abs(weights).max(initial=0.0))
    return highest if highest > 1 or 0 < highest < 0.5 else 1.0


def is_signed(weights: Weights) -> bool:
    """Whether a map has negative numbers that matter, as the content of a memory has."""
    return bool(weights.min(initial=0.0) < -0.01 * np.abs(weights).max(initial=0.0))


def luminance(colour: Colour) -> float:
    """Relative luminance of an RGB colour, from 0 (black) to 1 (white), as WCAG 2 defines it."""
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (c / 255 for c in colour)
    ]
    return float(np.dot((0.2126, 0.7152, 0.0722), linear))


def contrast(one: Colour, other: Colour) -> float:
    """Contrast ratio of two colours, from 1 to 21, as WCAG 2 defines it; text needs 4.5."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def ink_on(background: Colour) -> Colour:
    """Black or white, whichever is easier to read on this background: their contrast is always 4.5 or more."""
    black, white = (0, 0, 0), (255, 255, 255)
    return black if contrast(black, background) >= contrast(white, background) else white


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
    """What a reduced map says about itself."""
    return f"{size[0]:,} x {size[1]:,} weights; each cell shows the largest of {steps[0]} x {steps[1]}"
