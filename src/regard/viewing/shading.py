"""Attention laid over an image: as light, which dims what is not attended to, or as colour."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image, ImageFilter

from regard.data.images import open_image
from regard.errors import OptionError
from regard.trace import Trace
from regard.trace.data_uri import from_data_uri

MAX_WORDS = 100
"""Maximum number of words of a caption that is drawn word by word."""
# The spread of a cell in a smooth overlay, in cells.
_SPREAD = 0.55
# The brightness that is left where there is no attention.
_DIMMED = 0.25
# Where an image is darker than this on average, what is attended to is brightened to it, so that attention can be seen
# in dark photographs and in the dark parts of others. Brighter parts stay as they are.
_MIN_BRIGHTNESS = 0.45
# The size of such a part, as a share of the longer side.
_PART = 1 / 12
_BLANK = 205
# From weak to strong attention, over dark and over bright images.
_COLOUR_STOPS = np.array([(126, 3, 168), (225, 100, 98), (240, 249, 33)], dtype=np.float64)
_COLOUR_OPACITY = 0.75

Pixels = UInt8[np.ndarray, "h w 3"]
Field = Float[np.ndarray, "h w"]


def image_pixels(trace: Trace, longest: int) -> Pixels:
    """The image of a trace, resized so that its longer side has `longest` pixels; plain grey if it has none."""
    rows, columns = grid_of(trace)
    if trace.image is None:
        image = Image.new("RGB", (columns, rows), (_BLANK,) * 3)
    else:
        image = open_image(from_data_uri(trace.image), name="The image of this trace")
    scale = longest / max(image.size)
    size = max(1, round(image.width * scale)), max(1, round(image.height * scale))
    return np.array(image.resize(size, Image.Resampling.BICUBIC), dtype=np.uint8)


def grid_of(trace: Trace) -> tuple[int, int]:
    """Rows and columns of the cells that the main map attends to; other traces are refused."""
    axis = trace.axis(trace.main.columns)
    if axis.grid is None or not trace.target:
        raise OptionError(
            f"Only attention to the cells of an image can be laid over it; this trace of kind {trace.kind!r} has "
            f"{len(trace.target)} words that attend to {axis.kind}. Trace.from_image builds one."
        )
    if len(trace.target) > MAX_WORDS:
        raise OptionError(f"A caption is drawn word by word up to {MAX_WORDS} words; got {len(trace.target)}.")
    return axis.grid


def attention_field(trace: Trace, word: int, size: tuple[int, int], *, cells: bool = False) -> Field:
    """How much each pixel of (height, width) is attended to for a word, from 0 to 1 at its strongest cell.

    With `cells` each cell is even, as the weights are. Otherwise the overlay is smooth: a Gaussian around the centre
    of each cell, which is easier to look at and holds no more information.
    """
    rows, columns = grid_of(trace)
    weights = trace.weights[word].astype(np.float64).reshape(rows, columns).clip(0)
    down, across = (_spread(count, length, cells) for count, length in zip((rows, columns), size, strict=True))
    field = down @ weights @ across.T
    return np.asarray(field / max(float(field.max()), 1e-12))


def overlaid(pixels: Pixels, field: Field, overlay: str = "light") -> Pixels:
    """The image under an attention field.

    "light" keeps what is attended to, brightened where it is dark, and dims the rest. "colour" lays colours from purple
    (weak) to yellow (strong) over the image in grey.
    """
    return OVERLAYS[check_overlay(overlay)](pixels, field[:, :, None])


def check_overlay(overlay: str) -> str:
    """The name of an overlay, if there is such a one."""
    if overlay not in OVERLAYS:
        raise OptionError(f"There is no overlay {overlay!r}; choose from {', '.join(OVERLAYS)}.")
    return overlay


def attended_cell(trace: Trace, word: int, size: tuple[int, int]) -> tuple[float, float, float, float]:
    """Left, top, width and height of the cell that hard attention chose; of soft attention, the strongest."""
    rows, columns = grid_of(trace)
    choices = trace.values("choice")
    cell = int(np.argmax(trace.weights[word]) if choices is None else choices[word])
    high, wide = size[0] / rows, size[1] / columns
    return cell % columns * wide, cell // columns * high, wide, high


def _light(pixels: Pixels, field: Float[np.ndarray, "h w 1"]) -> Pixels:
    grey = pixels.mean(-1, keepdims=True)
    blended = field * _brightened(pixels) + (1 - field) * _DIMMED * (0.7 * grey + 0.3 * pixels)
    return np.asarray(blended.round(), dtype=np.uint8)


def _brightened(pixels: Pixels) -> Float[np.ndarray, "h w 3"]:
    """The image with its dark parts brightened: by gamma, and what is black by a veil."""
    # A stronger gamma would show little but the noise of a black part.
    darkness = _blurred(pixels).clip(0.05, _MIN_BRIGHTNESS)
    brighter = (pixels / 255) ** (np.log(_MIN_BRIGHTNESS) / np.log(darkness))
    veil = (_MIN_BRIGHTNESS - _blurred(255 * brighter)).clip(0) * (darkness < _MIN_BRIGHTNESS)
    return np.asarray(255 * (brighter * (1 - veil) + veil))


def _blurred(pixels: np.ndarray) -> Float[np.ndarray, "h w 1"]:
    """The brightness around each pixel, from 0 to 1."""
    grey = Image.fromarray(pixels.mean(-1).round().astype(np.uint8))
    blurred = grey.filter(ImageFilter.GaussianBlur(max(1.0, _PART * max(grey.size))))
    return np.asarray(blurred, dtype=np.float64)[:, :, None] / 255


def _coloured(pixels: Pixels, field: Float[np.ndarray, "h w 1"]) -> Pixels:
    grey = 0.75 * pixels.mean(-1, keepdims=True)
    stops = np.linspace(0, 1, len(_COLOUR_STOPS))
    colours = np.stack([np.interp(field[:, :, 0], stops, channel) for channel in _COLOUR_STOPS.T], axis=-1)
    opacity = _COLOUR_OPACITY * field
    return np.asarray(((1 - opacity) * grey + opacity * colours).round(), dtype=np.uint8)


OVERLAYS: dict[str, Callable[[Pixels, Float[np.ndarray, "h w 1"]], Pixels]] = {"light": _light, "colour": _coloured}
"""How attention is laid over an image."""


def _spread(cells: int, length: int, sharp: bool) -> Float[np.ndarray, "length cells"]:
    """How much of each cell falls on each pixel, along one side."""
    places = (np.arange(length) + 0.5) * cells / length
    if sharp:
        return np.asarray(places.astype(int)[:, None] == np.arange(cells), dtype=np.float64)
    distance = places[:, None] - (np.arange(cells) + 0.5)
    return np.asarray(np.exp(-(distance**2) / (2 * _SPREAD**2)))
