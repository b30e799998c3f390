"""Pictures opened so that none can stop an epoch: turned upright, in the colours wanted, or named with what is wrong.

A picture that cannot be used raises a DataError with its name; `Images.stream` collects these in a report and goes on.
"""

import io
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TypeAlias

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageOps, UnidentifiedImageError

from regard.data.image_archives import Member, list_images
from regard.errors import DataError, OptionError

Picture: TypeAlias = str | os.PathLike[str] | bytes | bytearray | Image.Image | np.ndarray

MAX_PIXELS = 2**26
"""Larger pictures are refused before they are decoded: a file of a few kilobytes can ask for gigabytes."""
_MODES = {1: "L", 3: "RGB"}


def open_image(picture: Picture, *, name: str = "", channels: int = 3, max_pixels: int = MAX_PIXELS) -> Image.Image:
    """A picture in RGB, or in grey (1 channel), from a path, from bytes, from a Pillow picture or from an array.

    It is turned as its EXIF note says; what is transparent becomes white; grey, palette, CMYK and 16-bit pictures are
    converted; of an animation the first frame is taken. An array is (h, w), (h, w, 1, 3 or 4) or (1 or 3, h, w), of
    whole numbers up to 255 or of fractions up to 1. Whatever is wrong with a picture is a DataError with its name.
    """
    if channels not in _MODES:
        raise OptionError(f"Pictures have 1 channel (grey) or 3 (RGB); got channels={channels}.")
    name = name or _called(picture)
    if isinstance(picture, np.ndarray):
        return _in_colours(_from_array(picture, name), channels)
    with _told(name):
        if isinstance(picture, Image.Image):
            return _decoded(picture, name, channels, max_pixels)
        source = io.BytesIO(picture) if isinstance(picture, bytes | bytearray) else _existing(Path(picture))
        with Image.open(source) as opened:
            return _decoded(opened, name, channels, max_pixels)


@dataclass(frozen=True)
class Square:
    """The middle of a picture as a square of `side` pixels: the shorter side is scaled to it, the longer one cut."""

    side: int = 224

    def __post_init__(self) -> None:
        if self.side < 1:
            raise OptionError(f"A picture has at least one pixel a side; got side={self.side}.")

    def __call__(self, image: Image.Image) -> UInt8[np.ndarray, "side side *channels"]:
        """The pixels of the square; those of a grey picture without an axis for its one channel."""
        fitted = ImageOps.fit(image, (self.side, self.side), Image.Resampling.BICUBIC)
        return np.array(fitted, dtype=np.uint8)


@dataclass(frozen=True)
class Whole:
    """The whole picture as a square of `side` pixels, squeezed along its longer side: nothing is cut off."""

    side: int = 224

    def __post_init__(self) -> None:
        if self.side < 1:
            raise OptionError(f"A picture has at least one pixel a side; got side={self.side}.")

    def __call__(self, image: Image.Image) -> UInt8[np.ndarray, "side side *channels"]:
        """The pixels of the square."""
        if image.size == (self.side, self.side):
            return np.array(image, dtype=np.uint8)
        return np.array(image.resize((self.side, self.side), Image.Resampling.BICUBIC), dtype=np.uint8)


PREPARATIONS: dict[str, type[Square] | type[Whole]] = {"middle": Square, "whole": Whole}
"""How pictures are made square."""


def channels_first(pixels: UInt8[np.ndarray, "h w *channels"]) -> UInt8[np.ndarray, "c h w"]:
    """Pixels as convolutions take them; grey ones have one channel."""
    return pixels[None] if pixels.ndim == 2 else np.ascontiguousarray(pixels.transpose(2, 0, 1))


@dataclass
class ImageReport:
    """How many pictures were read, and why others were left out."""

    read: int = 0
    bad: dict[str, str] = field(default_factory=dict)
    """Name and reason of each picture that could not be used."""

    def __str__(self) -> str:
        if not self.bad:
            return f"{self.read} pictures read"
        some = "; ".join(list(self.bad.values())[:5]) + (" ..." if len(self.bad) > 5 else "")
        return f"{self.read} pictures read, {len(self.bad)} left out: {some}"


class Images:
    """The pictures of one or more folders, tar or zip archives, by name; the archives are not unpacked.

    A name is a path within its folder or archive, or its last part, or that without the ending, as data sets write it.
    Can be used by several processes and threads at a time.
    """

    def __init__(self, *places: str | os.PathLike[str]) -> None:
        if not places:
            raise OptionError("Images are in one or more folders or archives; got none.")
        self.places = tuple(Path(place) for place in places)
        self._at: dict[str, Member] = {}
        for place in self.places:
            for member in list_images(place):
                self._at.setdefault(f"{place}/{member.name}", member)
        self._called: dict[str, list[Member]] = {}
        for member in self._at.values():
            path = PurePosixPath(member.name)
            for name in {member.name, path.name, path.stem}:
                self._called.setdefault(name, []).append(member)

    def __len__(self) -> int:
        return len(self._at)

    def __contains__(self, name: object) -> bool:
        return name in self._called

    def __repr__(self) -> str:
        return f"Images({', '.join(map(str, self.places))}: {len(self)} pictures)"

    def names(self) -> list[str]:
        """The path of each picture within its folder or archive."""
        return [member.name for member in self._at.values()]

    def read(self, name: str) -> bytes:
        """The bytes of a picture."""
        found = self._called.get(name, [])
        if len(found) > 1:
            exact = [member for member in found if member.name == name]
            found = exact if len(exact) == 1 else found
        if len(found) != 1:
            several = ", ".join(map(str, found[:3]))
            raise DataError(
                f"{name} could be any of {len(found)} pictures: {several}. Say its path."
                if found
                else f"There is no picture {name} in {', '.join(map(str, self.places))}."
            )
        return found[0].read()

    def open(self, name: str, *, channels: int = 3, max_pixels: int = MAX_PIXELS) -> Image.Image:
        """A picture in RGB or grey, upright: see `open_image`."""
        return open_image(self.read(name), name=name, channels=channels, max_pixels=max_pixels)

    def stream(self, names: Iterable[str], report: ImageReport | None = None) -> Iterator[tuple[str, Image.Image]]:
        """Each picture that can be used, with its name; the others are told in the report."""
        report = ImageReport() if report is None else report
        for name in names:
            try:
                image = self.open(name)
            except DataError as error:
                report.bad[name] = str(error)
            else:
                report.read += 1
                yield name, image


def _called(picture: Picture) -> str:
    match picture:
        case np.ndarray():
            return "The array"
        case Image.Image():
            return str(getattr(picture, "filename", "")) or "The picture"
        case bytes() | bytearray():
            return "The picture"
        case str() | os.PathLike():
            return os.fspath(picture)
    raise DataError(f"A picture is a path, bytes, a Pillow picture or an array; got {type(picture).__name__}.")


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise DataError(f"There is no picture {path}" + (": it is a folder." if path.is_dir() else "."))
    return path


@contextmanager
def _told(name: str) -> Iterator[None]:
    """What Pillow raises, as a DataError with the name of the picture."""
    try:
        yield
    except DataError:
        raise
    except UnidentifiedImageError:
        raise DataError(f"{name} is not an image that Pillow can read: it is damaged, or something else.") from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise DataError(f"{name} is too large: {error} Make it smaller first.") from error
    except PermissionError as error:
        raise DataError(f"{name} cannot be opened: {error}.") from error
    except Exception as error:  # decoders of broken files raise nearly anything
        why = str(error) or type(error).__name__
        raise DataError(f"{name} cannot be decoded: {why}. It may be truncated or damaged.") from error


def _decoded(image: Image.Image, name: str, channels: int, max_pixels: int) -> Image.Image:
    width, height = image.size
    if width * height > max_pixels:
        raise DataError(
            f"{name} is too large: {width} x {height} pixels, where {max_pixels:,} in all are allowed. "
            "Make it smaller first."
        )
    image.load()
    return _in_colours(_turned(image), channels)


def _turned(image: Image.Image) -> Image.Image:
    try:
        return ImageOps.exif_transpose(image)
    except Exception:  # a broken EXIF note is no reason to lose the picture
        return image.copy()


def _in_colours(image: Image.Image, channels: int) -> Image.Image:
    if image.mode.startswith("I") or image.mode == "F":
        image = _with_8_bits(image)
    if image.has_transparency_data:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    # Pillow can convert every mode to RGB, but not every one to grey.
    return image if image.mode == _MODES[channels] else image.convert("RGB").convert(_MODES[channels])


def _with_8_bits(image: Image.Image) -> Image.Image:
    levels = np.nan_to_num(np.asarray(image, dtype=np.float64), posinf=0, neginf=0)
    highest = float(levels.max(initial=0))
    # What white is, nothing says: it is told by what the picture holds.
    whites = (1.0, 255.0, 65535.0) if image.mode == "F" else (255.0, 65535.0)
    white = next((white for white in whites if highest <= white), highest)
    return Image.fromarray((levels * (255 / white)).clip(0, 255).round().astype(np.uint8))


def _from_array(array: np.ndarray, name: str) -> Image.Image:
    if array.dtype.kind == "f" and array.size and array.min() >= 0 and array.max() <= 1:
        array = (array * 255).round()
    elif array.dtype.kind not in "ui" or (array.size and (array.min() < 0 or array.max() > 255)):
        raise DataError(f"{name} is no picture: pixels are from 0 to 255, or from 0.0 to 1.0; got {array.dtype}.")
    pixels = array.astype(np.uint8)
    if array.ndim == 3 and (array.shape[0] == 1 or (array.shape[0] == 3 and array.shape[2] not in (1, 3, 4))):
        pixels = pixels.transpose(1, 2, 0)
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[:, :, 0]
    if not (pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] in (3, 4))) or not pixels.size:
        raise DataError(
            f"{name} is no picture: it must be (h, w), (h, w, 3), (h, w, 4) or (3, h, w); got {array.shape}."
        )
    return Image.fromarray(np.ascontiguousarray(pixels))
