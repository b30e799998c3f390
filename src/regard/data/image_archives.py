"""Finding and reading image files in folders and in tar or zip archives, which are never unpacked."""

import os
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from regard.errors import DataError

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm", ".pgm")
TAR_SUFFIXES, ZIP_SUFFIXES = (".tar",), (".zip",)
MAX_BYTES = 2**30
"""Largest size of a decompressed image file: a zip of a few kilobytes can expand to gigabytes."""
_ZIP_HEADER = struct.Struct("<26xHH")


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
        try:
            return self._read()
        except (OSError, EOFError, struct.error, zlib.error) as error:
            raise DataError(f"{self.name} cannot be read from {self}: {error}.") from error

    def _read(self) -> bytes:
        with self.file.open("rb") as stream:
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
    try:
        with tarfile.open(archive, "r:") as tar:
            files = [info for info in tar if info.isfile()]
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        raise _broken(archive, error) from error
    members = (Member(archive, info.name.removeprefix("./"), info.offset_data, info.size) for info in files)
    return [member for member in members if _is_image(member.name)]


def _zip_members(archive: Path) -> list[Member]:
    """List the images with their offsets, so that the directory, which is slow to read, is read only once."""
    try:
        with zipfile.ZipFile(archive) as directory:
            infos = [info for info in directory.infolist() if not info.is_dir() and _is_image(info.filename)]
    except (zipfile.BadZipFile, OSError, EOFError, ValueError, NotImplementedError, struct.error) as error:
        raise _broken(archive, error) from error
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


def _broken(archive: Path, error: Exception) -> DataError:
    return DataError(f"{archive} cannot be read as an archive: {error}. Download it again.")
