"""Opening images of any format, and collections of images by name in folders and in archives, which are never unpacked.

An image that cannot be used raises a DataError with its name. `Images.stream` collects such errors in a report and
continues, so that no damaged file stops an epoch.
"""

import io
import os
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TypeAlias

import numpy as np
from jaxtyping import UInt8
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

from regard.data.text import reading
from regard.errors import DataError, OptionError, counted

ImageInput: TypeAlias = str | os.PathLike[str] | bytes | bytearray | Image.Image | np.ndarray
"""An image as a path, the bytes of a file, a Pillow image or an array."""

MAX_PIXELS = 2**26
"""Larger images are refused before they are decoded: a file of a few kilobytes can decode to gigabytes."""
MAX_SIDE = 2**15
"""Pixels of the longest side of an image: resizing takes time and memory for each row and column."""
MAX_DECODED_BYTES = 2**28
"""Bytes that the pixels of an image may take when decoded: channels and depth count beside the pixels."""
_BAND = 512
"""Rows of an image that are laid on white at a time, so that memory holds the image once."""
_PIXEL_BYTES = {"1": 1, "L": 1, "P": 1, "LA": 2, "I;16": 2, "I;16B": 2, "I;16L": 2}
"""Bytes of a pixel of each mode in memory; 4 for all others."""
_MODES = {1: "L", 3: "RGB"}
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm", ".pgm")
TAR_SUFFIXES, ZIP_SUFFIXES = (".tar",), (".zip",)
MAX_BYTES = 2**30
"""Largest size of a decompressed image file: a zip of a few kilobytes can expand to gigabytes."""
_ZIP_HEADER = struct.Struct("<26xHH")


def open_image(
    image: ImageInput, *, name: str = "", channels: int = 3, max_pixels: int = MAX_PIXELS, limited_by: str = ""
) -> Image.Image:
    """Open an image from a path, bytes, a Pillow image or an array, and convert it to RGB or grey (channels=1).

    EXIF orientation is applied, transparency becomes white, palette, CMYK and 16-bit images are converted, and of an
    animation the first frame is used. An array is (h, w), (h, w, c) with c = 1, 3 or 4, or otherwise (c, h, w) with
    c = 1 or 3, with integers from 0 to 255 or floats from 0 to 1. Any fault raises a DataError with `name`, which is
    the path by default.
    """
    if channels not in _MODES:
        raise OptionError(f"Images have 1 channel (grey) or 3 (RGB); got channels={channels}.")
    name = name or _default_name(image)
    if isinstance(image, np.ndarray):
        return _convert(_from_array(image, name), channels)
    with _as_data_error(name):
        if isinstance(image, Image.Image):
            return _decode(image, name, channels, max_pixels, limited_by)
        source = io.BytesIO(image) if isinstance(image, bytes | bytearray) else _existing(Path(image))
        with Image.open(source) as opened:
            return _decode(opened, name, channels, max_pixels, limited_by)


@dataclass(frozen=True)
class Square:
    """Resize the shorter side of an image to `side` pixels and crop the longer one to the central square."""

    side: int = 224

    def __post_init__(self) -> None:
        if self.side < 1:
            raise OptionError(f"The side of an image must be at least one pixel; got side={self.side}.")

    def __call__(self, image: Image.Image) -> UInt8[np.ndarray, "side side *channels"]:
        """Return the pixels of the square; those of a grey image have no channel axis."""
        return np.array(self._resized(image), dtype=np.uint8)

    def _resized(self, image: Image.Image) -> Image.Image:
        return ImageOps.fit(image, (self.side, self.side), Image.Resampling.BICUBIC)


class Whole(Square):
    """Resize a whole image to a square of `side` pixels, changing its aspect ratio; nothing is cropped."""

    def _resized(self, image: Image.Image) -> Image.Image:
        # Pillow returns an image that has this size already as it is.
        return image.resize((self.side, self.side), Image.Resampling.BICUBIC)


PREPARATIONS: dict[str, type[Square]] = {"center_crop": Square, "stretch": Whole}
"""Ways to make images square."""


def channels_first(pixels: UInt8[np.ndarray, "h w *channels"]) -> UInt8[np.ndarray, "c h w"]:
    """Move the channel axis to the front, as convolutions expect it; grey pixels get one channel."""
    return pixels[None] if pixels.ndim == 2 else np.ascontiguousarray(pixels.transpose(2, 0, 1))


@dataclass
class ImageReport:
    """How many images were read, and why others were left out."""

    read: int = 0
    bad: dict[str, str] = field(default_factory=dict)
    """Name and reason of each image that could not be used."""

    def __str__(self) -> str:
        if not self.bad:
            return f"{counted(self.read, 'image')} read"
        reasons = "; ".join(list(self.bad.values())[:5]) + (" ..." if len(self.bad) > 5 else "")
        return f"{counted(self.read, 'image')} read, {len(self.bad)} left out: {reasons}"


class Images:
    """The images of one or more folders, tar or zip archives, by name; archives are not unpacked.

    A name is the path within the folder or archive, the file name, or the file name without its suffix, since data sets
    use all three. An object can be shared among processes and threads.
    """

    def __init__(self, *locations: str | os.PathLike[str]) -> None:
        if not locations:
            raise OptionError("Images needs one or more folders or archives; got none.")
        self.locations = tuple(Path(location) for location in locations)
        self._members: dict[str, Member] = {}
        for location in self.locations:
            for member in list_images(location):
                self._members.setdefault(f"{location}/{member.name}", member)
        self._by_name: dict[str, list[Member]] = {}
        for member in self._members.values():
            path = PurePosixPath(member.name)
            for name in {member.name, path.name, path.stem}:
                self._by_name.setdefault(name, []).append(member)

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __repr__(self) -> str:
        return f"Images({', '.join(map(str, self.locations))}: {len(self)} images)"

    def names(self) -> list[str]:
        """Return the path of each image within its folder or archive."""
        return [member.name for member in self._members.values()]

    def read(self, name: str) -> bytes:
        """Read the file of an image."""
        members = self._by_name.get(name, [])
        if len(members) > 1:
            exact = [member for member in members if member.name == name]
            members = exact if len(exact) == 1 else members
        if not members:
            raise DataError(f"There is no image {name} in {', '.join(map(str, self.locations))}.")
        if len(members) > 1:
            raise DataError(
                f"{name} is ambiguous: it matches {len(members)} images, {', '.join(map(str, members[:3]))}. Give the "
                "path within the folder or archive."
            )
        return members[0].read()

    def open(self, name: str, *, channels: int = 3, max_pixels: int = MAX_PIXELS) -> Image.Image:
        """Open an image by name (see `open_image`)."""
        return open_image(self.read(name), name=name, channels=channels, max_pixels=max_pixels)

    def size(self, name: str) -> tuple[int, int]:
        """Return the width and height of an upright image, without decoding it."""
        data = self.read(name)
        with _as_data_error(name), Image.open(io.BytesIO(data)) as opened:
            width, height = opened.size
            is_turned = _orientation(opened) in (5, 6, 7, 8)
        return (height, width) if is_turned else (width, height)

    def stream(self, names: Iterable[str], report: ImageReport | None = None) -> Iterator[tuple[str, Image.Image]]:
        """Yield the name and image of each one that can be used; `report` collects the others."""
        report = ImageReport() if report is None else report
        for name in names:
            try:
                image = self.open(name)
            except DataError as error:
                report.bad[name] = str(error)
            else:
                report.read += 1
                yield name, image


def _default_name(image: ImageInput) -> str:
    match image:
        case np.ndarray():
            return "The array"
        case Image.Image():
            return str(getattr(image, "filename", "")) or "The image"
        case bytes() | bytearray():
            return "The image"
        case str() | os.PathLike():
            return os.fspath(image)
    raise DataError(f"An image must be a path, bytes, a Pillow image or an array; got {type(image).__name__}.")


def _existing(path: Path) -> Path:
    if not os.path.isfile(path):  # noqa: PTH113 - unlike Path.is_file, false of a name that no file can have
        raise DataError(f"There is no image {path}" + (": it is a folder." if os.path.isdir(path) else "."))  # noqa: PTH112
    return path


@contextmanager
def _as_data_error(name: str) -> Iterator[None]:
    """Turn whatever Pillow raises into a DataError with the name of the image."""
    try:
        yield
    except DataError:
        raise
    except UnidentifiedImageError:
        raise DataError(f"{name} is not an image that Pillow can read: it is damaged or something else.") from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise DataError(f"{name} is too large: {error} Make it smaller first.") from error
    except PermissionError as error:
        raise DataError(f"{name} cannot be opened: {error}.") from error
    except Exception as error:  # decoders of broken files raise nearly anything
        why = str(error) or type(error).__name__
        raise DataError(f"{name} cannot be decoded: {why}. It may be truncated or damaged.") from error


def _decode(image: Image.Image, name: str, channels: int, max_pixels: int, limited_by: str) -> Image.Image:
    width, height = image.size
    if width * height > max_pixels:
        raise DataError(
            f"{name} is too large: {width} x {height} pixels, and at most {max_pixels:,} pixels are allowed. "
            f"Make it smaller first{limited_by}."
        )
    if max(width, height) > MAX_SIDE:
        raise DataError(
            f"{name} is too large: {width} x {height} pixels, and at most {MAX_SIDE:,} on a side are allowed. "
            "Make it smaller first."
        )
    if (decoded := width * height * _PIXEL_BYTES.get(image.mode, 4)) > MAX_DECODED_BYTES:
        raise DataError(
            f"{name} is too large: its {width} x {height} pixels ({image.mode}) take {decoded:,} bytes when decoded, "
            f"and at most {MAX_DECODED_BYTES:,} are allowed. Make it smaller first."
        )
    image.load()
    converted = _convert(_upright(image), channels)
    return image.copy() if converted is image else converted


def _orientation(image: Image.Image) -> int:
    try:
        return int(image.getexif().get(ExifTags.Base.Orientation, 1))
    except Exception:  # as below
        return 1


def _upright(image: Image.Image) -> Image.Image:
    if _orientation(image) == 1:
        return image
    try:
        return ImageOps.exif_transpose(image)
    except Exception:  # broken EXIF data is no reason to lose the image
        return image


def _convert(image: Image.Image, channels: int) -> Image.Image:
    if image.mode.startswith("I") or image.mode == "F":
        image = _to_8_bits(image)
    if image.has_transparency_data:
        image = _on_white(image)
    # Pillow can convert every mode to RGB, but not every one to grey.
    return image if image.mode == _MODES[channels] else image.convert("RGB").convert(_MODES[channels])


def _on_white(image: Image.Image) -> Image.Image:
    """A transparent image laid on white."""
    width, height = image.size
    laid = Image.new("RGB", image.size, "white")
    for top in range(0, height, _BAND):
        band = image.crop((0, top, width, min(top + _BAND, height))).convert("RGBA")
        laid.paste(Image.alpha_composite(Image.new("RGBA", band.size, "white"), band).convert("RGB"), (0, top))
    return laid


def _to_8_bits(image: Image.Image) -> Image.Image:
    levels, bands = np.asarray(image), [slice(top, top + _BAND) for top in range(0, image.height, _BAND)]
    highest = max(float(_finite(levels[band]).max(initial=0)) for band in bands)
    # Nothing states which level is white: it is inferred from the highest one.
    whites = (1.0, 255.0, 65535.0) if image.mode == "F" else (255.0, 65535.0)
    white = next((white for white in whites if highest <= white), highest)
    found = np.empty(levels.shape, dtype=np.uint8)
    for band in bands:
        found[band] = (_finite(levels[band]) * (255 / white)).clip(0, 255).round()
    return Image.fromarray(found)


def _finite(levels: np.ndarray) -> np.ndarray:
    """Levels as float64, with 0 for what is not finite."""
    return np.nan_to_num(levels.astype(np.float64), posinf=0, neginf=0)


def _from_array(array: np.ndarray, name: str) -> Image.Image:
    if array.dtype.kind == "f" and array.size and array.min() >= 0 and array.max() <= 1:
        array = (array * 255).round()
    elif array.dtype.kind not in "ui" or (array.size and (array.min() < 0 or array.max() > 255)):
        raise DataError(f"{name} is not an image: pixels must be from 0 to 255, or from 0.0 to 1.0; got {array.dtype}.")
    pixels = array.astype(np.uint8)
    if array.ndim == 3 and array.shape[0] in (1, 3) and array.shape[2] not in (1, 3, 4):
        pixels = pixels.transpose(1, 2, 0)
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[:, :, 0]
    if not (pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] in (3, 4))) or not pixels.size:
        raise DataError(
            f"{name} is not an image: its shape must be (h, w), (h, w, 3), (h, w, 4) or (3, h, w); got {array.shape}."
        )
    return Image.fromarray(np.ascontiguousarray(pixels))


@dataclass(frozen=True)
class Member:
    """Location of an image file: a whole file, or a stored or deflated part of an archive."""

    file: Path
    name: str
    """Path within the folder or archive."""
    offset: int = -1
    size: int = 0
    inflated: int | None = None
    """Number of bytes after decompression; None if the part is not compressed."""

    def __str__(self) -> str:
        return str(self.file) if self.offset < 0 else f"{self.file}/{self.name}"

    def read(self) -> bytes:
        """Read the image file; a damaged archive raises a DataError."""
        with reading(self.name, f"cannot be read from {self}"), self.file.open("rb") as stream:
            if self.offset < 0:
                return stream.read()
            stream.seek(self.offset)
            if self.file.suffix.lower() in ZIP_SUFFIXES:
                # A local header precedes the bytes; it holds the lengths of the name and of the extra field after it.
                header = stream.read(_ZIP_HEADER.size)
                stream.seek(sum(_ZIP_HEADER.unpack(header)), os.SEEK_CUR)
            content = stream.read(self.size)
            if len(content) != self.size:
                raise EOFError("the archive is truncated")
            return content if self.inflated is None else _inflate(content, self.inflated)


def list_images(location: Path) -> Iterator[Member]:
    """List the image files in a folder or archive, sorted by name, without hidden files and folders."""
    if location.is_dir():
        files = sorted(path for path in location.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
        members = (Member(file, file.relative_to(location).as_posix()) for file in files)
        yield from (member for member in members if _is_image(member.name))
        return
    if not location.is_file():
        raise DataError(f"There is no folder or archive {location}.")
    if location.suffix.lower() not in TAR_SUFFIXES + ZIP_SUFFIXES:
        raise DataError(
            f"{location} is not a folder, .tar or .zip. A compressed tar cannot be read out of order: unpack it."
        )
    list_members = _zip_members if location.suffix.lower() in ZIP_SUFFIXES else _tar_members
    yield from sorted(list_members(location), key=lambda member: member.name)


def _is_image(name: str) -> bool:
    path = PurePosixPath(name)
    # macOS adds a __MACOSX folder and files that begin with "._", which have names of images but are not images.
    hidden = any(part.startswith(".") or part == "__MACOSX" for part in path.parts)
    return path.suffix.lower() in SUFFIXES and not hidden


def _tar_members(archive: Path) -> list[Member]:
    with reading(archive, "cannot be read as an archive"), tarfile.open(archive, "r:") as tar:
        files = [info for info in tar if info.isfile()]
    members = (Member(archive, info.name.removeprefix("./"), info.offset_data, info.size) for info in files)
    return [member for member in members if _is_image(member.name)]


def _zip_members(archive: Path) -> list[Member]:
    """List the images with their offsets, so that the directory, which is slow to read, is read only once."""
    with reading(archive, "cannot be read as an archive"), zipfile.ZipFile(archive) as directory:
        infos = [info for info in directory.infolist() if not info.is_dir() and _is_image(info.filename)]
    return [_zip_member(archive, info) for info in infos]


def _zip_member(archive: Path, info: zipfile.ZipInfo) -> Member:
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or info.flag_bits & 1:
        raise DataError(
            f"{archive}/{info.filename} is encrypted or uses an unsupported compression: unpack the archive."
        )
    inflated = info.file_size if info.compress_type == zipfile.ZIP_DEFLATED else None
    return Member(archive, info.filename, info.header_offset, info.compress_size, inflated)


def _inflate(content: bytes, size: int) -> bytes:
    if size > MAX_BYTES:
        raise OSError(f"it expands to {size:,} bytes, and at most {MAX_BYTES:,} are allowed")
    inflated = zlib.decompressobj(-zlib.MAX_WBITS).decompress(content, size + 1)
    if len(inflated) != size:
        raise EOFError(f"it does not expand to the {size:,} bytes that the archive states")
    return inflated
