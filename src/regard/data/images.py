"""Pictures from folders and archives, opened so that none can stop an epoch: turned upright, made RGB, or named.

A picture that cannot be used raises a DataError with its name; `Images.stream` collects these in a report and goes on.
"""

import io
import os
import struct
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageOps, UnidentifiedImageError

from regard.errors import DataError, OptionError

MAX_PIXELS = 2**26
"""Larger pictures are refused before they are decoded: a file of a few kilobytes can ask for gigabytes."""
ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm", ".pgm")
TARS, ZIPS = (".tar",), (".zip",)
_ZIP_HEADER = struct.Struct("<26xHH")


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


@dataclass(frozen=True)
class Square:
    """The middle of a picture as a square of `side` pixels: the shorter side is scaled to it, the longer one cut."""

    side: int = 224

    def __post_init__(self) -> None:
        if self.side < 1:
            raise OptionError(f"A picture has at least one pixel a side; got side={self.side}.")

    def __call__(self, image: Image.Image) -> UInt8[np.ndarray, "side side 3"]:
        """The pixels of the square."""
        fitted = ImageOps.fit(image, (self.side, self.side), Image.Resampling.BICUBIC)
        return np.array(fitted, dtype=np.uint8)


@dataclass(frozen=True)
class Whole:
    """The whole picture as a square of `side` pixels, squeezed along its longer side: nothing is cut off."""

    side: int = 224

    def __post_init__(self) -> None:
        if self.side < 1:
            raise OptionError(f"A picture has at least one pixel a side; got side={self.side}.")

    def __call__(self, image: Image.Image) -> UInt8[np.ndarray, "side side 3"]:
        """The pixels of the square."""
        if image.size == (self.side, self.side):
            return np.array(image, dtype=np.uint8)
        return np.array(image.resize((self.side, self.side), Image.Resampling.BICUBIC), dtype=np.uint8)


PREPARATIONS: dict[str, type[Square] | type[Whole]] = {"middle": Square, "whole": Whole}
"""How pictures are made square."""


def open_image(picture: Any, *, name: str = "", max_pixels: int = MAX_PIXELS) -> Image.Image:
    """An RGB picture, upright, from a path, from bytes, from a Pillow picture or from a uint8 (h, w, 3) array.

    It is turned as its EXIF note says; what is transparent becomes white; grey, palette, CMYK and 16-bit pictures are
    converted; of an animation the first frame is taken. Whatever else is wrong with it is a DataError with its name.
    """
    if isinstance(picture, np.ndarray):
        return _from_array(picture, name or "The array")
    if isinstance(picture, Image.Image):
        return _upright(picture, name or getattr(picture, "filename", "") or "The picture", max_pixels)
    if isinstance(picture, bytes | bytearray):
        stream: Any = io.BytesIO(picture)
    else:
        name, stream = name or str(picture), Path(picture)
        if not stream.is_file():
            raise DataError(f"There is no picture {picture}.")
    name = name or "The picture"
    try:
        # Pillow warns of what `_upright` refuses.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            opened = Image.open(stream)
    except UnidentifiedImageError:
        raise DataError(f"{name} is no picture that Pillow can read: it is damaged, or something else.") from None
    except Image.DecompressionBombError as error:
        raise DataError(f"{name} is too large: {error}") from None
    except Exception as error:  # decoders of broken files raise nearly anything
        raise DataError(f"{name} cannot be opened: {error!r}.") from error
    with opened:
        return _upright(opened, name, max_pixels)


class Images:
    """The pictures of one or more folders, tar or zip archives, by name; the archives are not unpacked.

    A name is a path within its folder or archive, or its last part, or that without the ending, as data sets write it.
    Can be used by several processes and threads at a time.
    """

    def __init__(self, *places: str | os.PathLike[str]) -> None:
        if not places:
            raise OptionError("Images are in one or more folders or archives; got none.")
        self.places = tuple(Path(place) for place in places)
        self._at: dict[str, _Place] = {}
        for place in self.places:
            for found in _contents(place):
                self._at.setdefault(f"{place}/{found.member}", found)
        self._called: dict[str, list[_Place]] = {}
        for found in self._at.values():
            path = PurePosixPath(found.member)
            for name in {found.member, path.name, path.stem}:
                self._called.setdefault(name, []).append(found)

    def __len__(self) -> int:
        return len(self._at)

    def __contains__(self, name: object) -> bool:
        return name in self._called

    def __repr__(self) -> str:
        return f"Images({', '.join(map(str, self.places))}: {len(self)} pictures)"

    def names(self) -> list[str]:
        """The path of each picture within its folder or archive."""
        return [found.member for found in self._at.values()]

    def read(self, name: str) -> bytes:
        """The bytes of a picture."""
        found = self._called.get(name, [])
        if len(found) > 1:
            exact = [place for place in found if place.member == name]
            found = exact if len(exact) == 1 else found
        if len(found) != 1:
            several = ", ".join(map(str, found[:3]))
            raise DataError(
                f"{name} could be any of {len(found)} pictures: {several}. Say its path."
                if found
                else f"There is no picture {name} in {', '.join(map(str, self.places))}."
            )
        try:
            return found[0].read()
        except (OSError, EOFError, struct.error, zlib.error) as error:
            raise DataError(f"{name} cannot be read from {found[0]}: {error}.") from error

    def open(self, name: str, *, max_pixels: int = MAX_PIXELS) -> Image.Image:
        """A picture in RGB, upright: see `open_image`."""
        return open_image(self.read(name), name=name, max_pixels=max_pixels)

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


@dataclass(frozen=True)
class _Place:
    """Where the bytes of a picture are: a whole file, or a part of an archive, as it stands there or deflated."""

    file: Path
    member: str
    offset: int = -1
    size: int = 0
    deflated: bool = False

    def __str__(self) -> str:
        return str(self.file) if self.offset < 0 else f"{self.file}/{self.member}"

    def read(self) -> bytes:
        with self.file.open("rb") as stream:
            if self.offset < 0:
                return stream.read()
            stream.seek(self.offset)
            if self.file.suffix.lower() in ZIPS:
                # Before the bytes stands a header, with the lengths of the name and of the notes that follow it.
                header = stream.read(_ZIP_HEADER.size)
                stream.seek(sum(_ZIP_HEADER.unpack(header)), os.SEEK_CUR)
            content = stream.read(self.size)
        if len(content) != self.size:
            raise EOFError("the archive ends within it")
        return zlib.decompress(content, -zlib.MAX_WBITS) if self.deflated else content


def _contents(place: Path) -> Iterator[_Place]:
    """The pictures in a folder or an archive, in the order of their names."""
    if place.is_dir():
        files = sorted(path for path in place.rglob("*") if path.suffix.lower() in ENDINGS and path.is_file())
        yield from (_Place(file, file.relative_to(place).as_posix()) for file in files)
        return
    if not place.is_file():
        raise DataError(f"There is no folder or archive of pictures {place}.")
    if place.suffix.lower() not in TARS + ZIPS:
        raise DataError(
            f"{place} is no folder, .tar or .zip of pictures. A compressed tar cannot be read out of order: unpack it."
        )
    try:
        if place.suffix.lower() in ZIPS:
            found = [_zipped(place, info) for info in zipfile.ZipFile(place).infolist() if not info.is_dir()]
        else:
            with tarfile.open(place, "r:") as tar:
                members = [member for member in tar if member.isfile()]
            found = [
                _Place(place, member.name.removeprefix("./"), member.offset_data, member.size) for member in members
            ]
    except (tarfile.TarError, zipfile.BadZipFile, OSError) as error:
        raise DataError(f"{place} cannot be read as an archive: {error}. Fetch it again.") from error
    wanted = (each for each in found if PurePosixPath(each.member).suffix.lower() in ENDINGS)
    # macOS adds a __MACOSX folder with files of the same names that are no pictures.
    yield from sorted((each for each in wanted if not each.member.startswith("__MACOSX")), key=lambda each: each.member)


def _zipped(archive: Path, info: zipfile.ZipInfo) -> _Place:
    """A member of a zip archive, found without its directory, which for many pictures is slow to read again."""
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or info.flag_bits & 1:
        raise DataError(f"{archive}/{info.filename} is encrypted or compressed in a rare way: unpack the archive.")
    deflated = info.compress_type == zipfile.ZIP_DEFLATED
    return _Place(archive, info.filename, info.header_offset, info.compress_size, deflated)


def _upright(image: Image.Image, name: str, max_pixels: int) -> Image.Image:
    width, height = image.size
    if width * height > max_pixels:
        raise DataError(f"{name} is too large: {width} x {height} pixels, where {max_pixels:,} in all are allowed.")
    try:
        image.load()
        return _rgb(_turned(image))
    except Exception as error:  # decoders of broken files raise nearly anything
        raise DataError(f"{name} cannot be decoded: {error}. It may be truncated or damaged.") from error


def _turned(image: Image.Image) -> Image.Image:
    try:
        return ImageOps.exif_transpose(image)
    except Exception:  # a broken EXIF note is no reason to lose the picture
        return image


def _rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I") or image.mode == "F":
        levels = np.asarray(image, dtype=np.float64)
        # 16-bit pictures are told from 8-bit ones in a wide mode by what they hold.
        levels = levels / 257 if levels.max(initial=0) > 255 else levels
        image = Image.fromarray(levels.clip(0, 255).round().astype(np.uint8))
    if "transparency" in image.info or image.mode in ("RGBA", "LA", "PA", "La", "RGBa"):
        image = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    return image.convert("RGB")


def _from_array(picture: np.ndarray, name: str) -> Image.Image:
    if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[-1] != 3 or not picture.size:
        raise DataError(f"{name} is no picture: it must be uint8 (h, w, 3), but is {picture.dtype} {picture.shape}.")
    return Image.fromarray(np.ascontiguousarray(picture))
