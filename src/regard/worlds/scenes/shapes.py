"""Shapes as coverage masks: the fraction of each pixel that a shape fills, so that its edges are smooth."""

from collections.abc import Callable
from functools import lru_cache
from math import cos, pi, radians, sin

import numpy as np
from jaxtyping import Bool, Float

# Samples along each side of a pixel.
_SAMPLES = 4
EDGE = 0.13
"""Width of the darker edge of an object, as a fraction of its radius."""

Plane = Float[np.ndarray, "_ _"]


def _polygon(corners: list[tuple[float, float]]) -> Callable[[Plane, Plane], Bool[np.ndarray, "_ _"]]:
    """Return a test of whether points lie inside: a ray to the right crosses an odd number of sides."""

    def inside(x: Plane, y: Plane) -> Bool[np.ndarray, "_ _"]:
        odd = np.zeros(x.shape, bool)
        for (x0, y0), (x1, y1) in zip(corners, [*corners[1:], corners[0]], strict=True):
            if y0 != y1:
                odd ^= ((y0 > y) != (y1 > y)) & (x < (x1 - x0) * (y - y0) / (y1 - y0) + x0)
        return odd

    return inside


_STAR = [(r * sin(k * pi / 5), 0.06 - r * cos(k * pi / 5)) for k in range(10) for r in ((1.05, 0.45)[k % 2],)]
# Tests of whether a point (x, y) of the square from -1 to 1 belongs to a shape; y points down.
INSIDE: dict[str, Callable[[Plane, Plane], Bool[np.ndarray, "_ _"]]] = {
    "circle": lambda x, y: x * x + y * y < 0.96,
    "square": lambda x, y: np.maximum(abs(x), abs(y)) < 0.88,
    "triangle": _polygon([(0.0, -0.95), (1.0, 0.85), (-1.0, 0.85)]),
    "star": _polygon(_STAR),
    "cross": lambda x, y: (np.minimum(abs(x), abs(y)) < 0.32) & (np.maximum(abs(x), abs(y)) < 0.96),
    "heart": lambda x, y: _heart(1.15 * x, 0.22 - 1.15 * y),
    "ring": lambda x, y: abs(np.sqrt(x * x + y * y) - 0.74) < 0.24,
    "moon": lambda x, y: (x * x + y * y < 0.96) & ((x - 0.46) ** 2 + (y + 0.08) ** 2 > 0.6),
}


def _heart(x: Plane, y: Plane) -> Bool[np.ndarray, "_ _"]:
    round_part = x * x + y * y - 1
    return np.asarray(round_part * round_part * round_part < x * x * y * y * y)


@lru_cache(maxsize=8192)
def masks(shape: str, radius: float, shift_x: float, shift_y: float, tilt: int) -> Float[np.ndarray, "2 n n"]:
    """Return the coverage of a shape with its edge and without it, in a window of pixels around it.

    `radius` and the shifts of the centre from the middle of the window are in pixels, `tilt` is in degrees. The window
    is the same for all shifts up to a pixel.
    """
    half = window(radius)
    samples = (np.arange(2 * half * _SAMPLES) + 0.5) / _SAMPLES - half
    x, y = np.meshgrid(samples - shift_x, samples - shift_y)
    turn = radians(tilt)
    x, y = x * cos(turn) + y * sin(turn), y * cos(turn) - x * sin(turn)
    inside = INSIDE[shape]
    both = np.stack([inside(x / size, y / size) for size in (radius, (1 - EDGE) * radius)])
    # The core is never outside the shape, though scaling a shape with a hole could move it there.
    both[1] &= both[0]
    side = 2 * half
    return np.asarray(both.reshape(2, side, _SAMPLES, side, _SAMPLES).mean((2, 4), dtype=np.float32))


def window(radius: float) -> int:
    """Return half the side of the window of `masks`, in pixels."""
    return int(radius + 2)
