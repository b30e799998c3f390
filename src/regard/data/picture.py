"""One picture from a file, PIL or an array: turned upright, without transparency, in the colours and size wanted."""

import os
import warnings
from pathlib import Path
from typing import TypeAlias

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageOps, UnidentifiedImageError

from regard.errors import DataError, OptionError, ShapeError

Pixels = UInt8[np.ndarray, "c h w"]
Picture: TypeAlias = str | os.PathLike[str] | Image.Image | np.ndarray

SUFFIXES = {".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm"}
_MODES = {1: "L", 3: "RGB"}


def open_picture(picture: Picture, *, channels: int = 3) -> Image.Image:
    """The picture in grey (1 channel) or RGB (3), as its camera was held, on white where it is transparent.

    Whatever is wrong with a file (damaged, cut off, no picture, too large to be one) is told with its name.
    """
    if channels not in _MODES:
        raise OptionError(f"Pictures have 1 channel (grey) or 3 (RGB); got channels={channels}.")
    if isinstance(picture, Image.Image):
        return _plain(picture, channels)
    if isinstance(picture, np.ndarray):
        return _plain(_from_array(picture), channels)
    try:
        with warnings.catch_warnings():
            # From 89 million pixels on, PIL warns of a picture that may be made to fill the memory.
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(Path(picture)) as opened:
                return _plain(opened, channels)
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except UnidentifiedImageError:
        raise DataError(f"{picture} is not a picture that can be read.") from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise DataError(f"{picture} is too large: {error} Make it smaller first.") from error
    except (OSError, SyntaxError, ValueError, EOFError) as error:  # what PIL raises for damaged files
        raise DataError(f"{picture} is damaged: {error}.") from error


def fit_picture(picture: Picture, size: int, *, channels: int = 3) -> Pixels:
    """The middle of the picture as size x size pixels: its shorter side is scaled to the size, the rest cut off."""
    opened = open_picture(picture, channels=channels)
    if opened.size != (size, size):
        opened = ImageOps.fit(opened, (size, size), Image.Resampling.BICUBIC)
    return to_pixels(opened)


def fit_ink(picture: Picture, size: int) -> Pixels:
    """A drawn character in grey, as those of MNIST are: light on dark, 5/7 of the size, its mass in the middle.

    What is darker than its ground is turned round. A picture of the right size that is light on dark already is left
    as it is.
    """
    opened = open_picture(picture, channels=1)
    pixels = np.asarray(opened, dtype=np.float32)
    border = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    is_dark_on_light = float(np.median(border)) > 127
    if opened.size == (size, size) and not is_dark_on_light:
        return to_pixels(opened)
    ink = 255 - pixels if is_dark_on_light else pixels
    ink = np.clip(ink - np.median(255 - border if is_dark_on_light else border), 0, None)
    rows, columns = (np.flatnonzero(ink.max(axis) > ink.max() / 4) for axis in (1, 0))
    if not len(rows) or ink.max() < 16:
        return np.zeros((1, size, size), np.uint8)
    ink = ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] * (255 / ink.max())
    scale = size * 5 / 7 / max(ink.shape)
    width, height = (max(1, round(length * scale)) for length in (ink.shape[1], ink.shape[0]))
    small = np.asarray(Image.fromarray(ink.astype(np.uint8)).resize((width, height), Image.Resampling.BOX))
    mass = small.astype(np.float32) / max(1, int(small.sum()))
    top, left = (round(float((size - 1) / 2 - mass.sum(1 - axis) @ np.arange(small.shape[axis]))) for axis in (0, 1))
    top, left = min(max(0, top), size - height), min(max(0, left), size - width)
    out = np.zeros((1, size, size), np.uint8)
    out[0, top : top + height, left : left + width] = small
    return out


def to_pixels(picture: Image.Image) -> Pixels:
    """A picture in grey or RGB as an array, channels first."""
    array = np.asarray(picture)
    return array[None] if array.ndim == 2 else np.ascontiguousarray(array.transpose(2, 0, 1))


def _plain(picture: Image.Image, channels: int) -> Image.Image:
    picture = ImageOps.exif_transpose(picture)
    if picture.mode in ("I", "F") or picture.mode.startswith("I;16"):  # more than 8 bits: to the range from 0 to 255
        numbers = np.asarray(picture, dtype=np.float64)
        low, high = float(numbers.min()), float(numbers.max())
        picture = Image.fromarray(((numbers - low) * (255 / max(high - low, 1e-9))).astype(np.uint8))
    if picture.has_transparency_data:
        picture = picture.convert("RGBA")
        picture = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture)
    return picture.convert(_MODES[channels])


def _from_array(array: np.ndarray) -> Image.Image:
    if array.dtype.kind == "f" and array.size and array.min() >= 0 and array.max() <= 1:
        array = (array * 255).round()
    elif array.dtype.kind not in "ui" or (array.size and (array.min() < 0 or array.max() > 255)):
        raise ShapeError(f"An array holds pixels from 0 to 255, or from 0.0 to 1.0; got {array.dtype}.")
    array = array.astype(np.uint8)
    if array.ndim == 3 and (array.shape[0] == 1 or (array.shape[0] == 3 and array.shape[2] not in (1, 3, 4))):
        array = array.transpose(1, 2, 0)
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    if not (array.ndim == 2 or (array.ndim == 3 and array.shape[2] in (3, 4))) or not array.size:
        raise ShapeError(f"A picture is (h, w), (h, w, 3), (h, w, 4) or (3, h, w); got {array.shape}.")
    return Image.fromarray(array)
