"""Rendering: a background gradient, clutter in its shades, and the objects on top, with smooth edges."""

from collections.abc import Sequence
from functools import lru_cache
from math import cos, pi, sin
from random import Random

import numpy as np
from jaxtyping import Float, UInt8

from regard.worlds.scenes.meaning import Group
from regard.worlds.scenes.sampling import SceneObject
from regard.worlds.scenes.shapes import masks, window

RGB = {
    "red": (212, 38, 42),
    "orange": (242, 128, 28),
    "yellow": (250, 214, 44),
    "green": (48, 158, 72),
    "blue": (38, 98, 208),
    "purple": (124, 58, 168),
    "pink": (246, 138, 188),
    "black": (36, 36, 42),
}
TILTS = (-10, 0, 10)
Canvas = Float[np.ndarray, "side side 3"]


def render(
    groups: Sequence[Group], objects: Sequence[SceneObject], side: int, random: Random
) -> UInt8[np.ndarray, "side side 3"]:
    """Render an image of these objects, `side` pixels wide and high."""
    canvas, tone = _background(side, random)
    for _ in range(random.randint(3, 7)):
        _draw_clutter(canvas, tone, random)
    for each in objects:
        _draw_object(canvas, each, groups[each.group], random)
    return np.asarray(canvas + 0.5, dtype=np.uint8)


@lru_cache(maxsize=8)
def _ramps(side: int) -> Float[np.ndarray, "2 side side"]:
    """Return x and y of each pixel, from -1 to 1."""
    line = np.linspace(-1, 1, side, dtype=np.float32)
    return np.stack(np.meshgrid(line, line))


def _background(side: int, random: Random) -> tuple[Canvas, Float[np.ndarray, "3"]]:
    """Return a gradient between two pale shades, and the shade in the middle."""
    level = random.uniform(192, 226)
    tone = np.array([level + random.uniform(-14, 14) for _ in range(3)], dtype=np.float32)
    slope = np.array([random.uniform(4, 14) for _ in range(3)], dtype=np.float32)
    angle = random.uniform(0, 2 * pi)
    x, y = _ramps(side)
    ramp = (0.7 * cos(angle)) * x + (0.7 * sin(angle)) * y
    return tone + ramp[:, :, None] * slope, tone


def _draw_object(canvas: Canvas, scene_object: SceneObject, group: Group, random: Random) -> None:
    side = len(canvas)
    # Positions and sizes are rounded to half and quarter pixels, so that few masks serve all images.
    x, y = round(2 * scene_object.x * side) / 2, round(2 * scene_object.y * side) / 2
    radius = round(4 * scene_object.radius * side) / 4
    column, row, half = int(x), int(y), window(radius)
    whole, core = masks(group.shape, radius, x - column, y - row, random.choice(TILTS))
    top, left = max(0, row - half), max(0, column - half)
    part = canvas[top : row + half, left : column + half]
    cut = (
        slice(top - row + half, top - row + half + len(part)),
        slice(left - column + half, left - column + half + part.shape[1]),
    )
    whole, core = whole[cut][:, :, None], core[cut][:, :, None]
    colour = np.array([min(255, max(0, level + random.uniform(-9, 9))) for level in RGB[group.colour]], np.float32)
    # The edge is darker.
    part *= 1 - whole
    part += (0.62 * whole + 0.38 * core) * np.minimum(255, colour * _shading(len(part)))


@lru_cache(maxsize=256)
def _shading(rows: int) -> Float[np.ndarray, "rows 1 1"]:
    """Brightness of each row: an object is slightly lighter at its top."""
    return np.linspace(1.06, 0.92, rows, dtype=np.float32)[:, None, None]


def _draw_clutter(canvas: Canvas, tone: Float[np.ndarray, "3"], random: Random) -> None:
    """Draw a stroke, a dot or an arc in a darker shade of the background."""
    side = len(canvas)
    length = random.uniform(0.06, 0.2) * side
    x, y = random.uniform(0, side), random.uniform(0, side)
    half = int(length / 2 + 0.02 * side) + 2
    top, left = max(0, int(y) - half), max(0, int(x) - half)
    part = canvas[top : int(y) + half, left : int(x) + half]
    down = (np.arange(top, top + part.shape[0], dtype=np.float32) + 0.5 - y)[:, None]
    across = (np.arange(left, left + part.shape[1], dtype=np.float32) + 0.5 - x)[None, :]
    kind, angle = random.randrange(3), random.uniform(0, 2 * pi)
    along = across * cos(angle) + down * sin(angle)
    beside = across * -sin(angle) + down * cos(angle)
    if kind == 0:
        distance = np.hypot(np.maximum(abs(along) - length / 2, 0), beside)
    elif kind == 1:
        distance = np.hypot(across, down) - random.uniform(0, 0.012) * side
    else:
        distance = np.hypot(abs(np.hypot(across, down) - length / 2), np.maximum(-along, 0))
    cover = np.clip(random.uniform(0.4, 0.9) * side / 64 + 0.5 - distance, 0, 1)[:, :, None]
    part += cover * (tone * random.uniform(0.72, 0.86) - part)
