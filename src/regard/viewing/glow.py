"""A picture lit by attention: what was looked at keeps its light and colours, the rest is dimmed."""

import base64
import binascii

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image

from regard.data.images import open_image
from regard.errors import OptionError, RegardError
from regard.trace import Trace

# How far the light of a cell reaches, as a share of a cell, and what is left of the light where there is none.
_REACH, _DARK = 0.55, 0.3
_PAPER = 205

Pixels = UInt8[np.ndarray, "h w 3"]
Light = Float[np.ndarray, "h w"]


def pixels_of(trace: Trace, longest: int) -> Pixels:
    """The picture of a trace, enlarged or reduced so that its longer side has `longest` pixels; grey without one."""
    rows, columns = grid_of(trace)
    if trace.picture is None:
        image = Image.new("RGB", (columns, rows), (_PAPER,) * 3)
    else:
        try:
            image = open_image(base64.b64decode(trace.picture.partition(",")[2], validate=True), name="The picture")
        except binascii.Error as error:
            raise RegardError(f"The picture of this trace is no data URI: {error}.") from error
    scale = longest / max(image.size)
    size = max(1, round(image.width * scale)), max(1, round(image.height * scale))
    return np.array(image.resize(size, Image.Resampling.BICUBIC), dtype=np.uint8)


def grid_of(trace: Trace) -> tuple[int, int]:
    """The rows and columns of the cells; a trace of words has none, and is explained."""
    if trace.grid is None or not trace.target:
        raise OptionError(
            f"Only attention to a picture can be laid over it; this trace is of {trace.kind}, with grid={trace.grid} "
            f"and {len(trace.target)} words. Trace.of_picture makes one."
        )
    return trace.grid


def light(trace: Trace, word: int, size: tuple[int, int], *, cells: bool = False) -> Light:
    """From 0 to 1, how much each pixel of (height, width) was looked at for a word, next to its strongest cell.

    With `cells` each cell is lit evenly, as the weights are; otherwise their light spreads softly (a Gaussian around
    the middle of each cell), which is easier to look at and says no more.
    """
    rows, columns = grid_of(trace)
    weights = np.asarray(trace.weights[word], dtype=np.float64).reshape(rows, columns).clip(0)
    down, across = (_spread(count, length, cells) for count, length in zip((rows, columns), size, strict=True))
    field = down @ weights @ across.T
    return np.asarray(field / max(float(field.max()), 1e-12))


def lit(pixels: Pixels, light: Light) -> Pixels:
    """The picture in this light."""
    share = light[:, :, None]
    grey = pixels.mean(-1, keepdims=True)
    made = share * pixels + (1 - share) * _DARK * (0.7 * grey + 0.3 * pixels)
    return np.asarray(made.round(), dtype=np.uint8)


def chosen(trace: Trace, word: int, size: tuple[int, int]) -> tuple[float, float, float, float]:
    """Left, top, width and height of the cell that hard attention chose; of soft attention, the strongest."""
    rows, columns = grid_of(trace)
    cell = trace.choices[word] if trace.choices is not None else int(np.argmax(trace.weights[word]))
    high, wide = size[0] / rows, size[1] / columns
    return cell % columns * wide, cell // columns * high, wide, high


def _spread(cells: int, length: int, sharp: bool) -> Float[np.ndarray, "length cells"]:
    """How much of the light of each cell falls on each pixel, along one side."""
    places = (np.arange(length) + 0.5) * cells / length
    if sharp:
        return np.asarray(places.astype(int)[:, None] == np.arange(cells), dtype=np.float64)
    distance = places[:, None] - (np.arange(cells) + 0.5)
    return np.asarray(np.exp(-(distance**2) / (2 * _REACH**2)))
