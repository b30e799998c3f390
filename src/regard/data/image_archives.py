"""Where pictures lie: the files of a folder, or parts of a tar or zip archive, which is never unpacked."""

import os
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from regard.errors import DataError

ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm", ".pgm")
TARS, ZIPS = (".tar",), (".zip",)
MAX_BYTES = 2**30
"""What a deflated picture may have: a zip of a few kilobytes can ask for gigabytes."""
_ZIP_HEADER = struct.Struct("<26xHH")


@dataclass(frozen=True)
class Member:
    """Where the bytes of a picture are: a whole file, or a part of an archive, as it stands there or deflated."""

    file: Path
    name: str
    """Its path within the folder or archive."""
    offset: int = -1
    size: int = 0
    inflated: int | None = None
    """Bytes that a deflated part has in truth."""

    def __str__(self) -> str:
        return str(self.file) if self.offset < 0 else f"{self.file}/{self.name}"

    def read(self) -> bytes:
        """The bytes of the picture; what is wrong with the archive is a DataError."""
        try:
            return self._read()
        except (OSError, EOFError, struct.error, zlib.error) as error:
            raise DataError(f"{self.name} cannot be read from {self}: {error}.") from error

    def _read(self) -> bytes:
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
        return content if self.inflated is None else _inflate(content, self.inflated)


def list_images(place: Path) -> Iterator[Member]:
    """The pictures in a folder or an archive, in the order of their names; hidden files and folders are left out."""
    if place.is_dir():
        files = sorted(path for path in place.rglob("*") if path.suffix.lower() in ENDINGS and path.is_file())
        found = (Member(file, file.relative_to(place).as_posix()) for file in files)
        yield from (member for member in found if _is_picture(member.name))
        return
    if not place.is_file():
        raise DataError(f"There is no folder or archive of pictures {place}.")
    if place.suffix.lower() not in TARS + ZIPS:
        raise DataError(
            f"{place} is no folder, .tar or .zip of pictures. A compressed tar cannot be read out of order: unpack it."
        )
    members = _zip_members if place.suffix.lower() in ZIPS else _tar_members
    yield from sorted(members(place), key=lambda member: member.name)


def _is_picture(name: str) -> bool:
    path = PurePosixPath(name)
    # macOS adds a folder __MACOSX, or files that begin with "._", with the names of pictures that they are not.
    hidden = any(part.startswith(".") or part == "__MACOSX" for part in path.parts)
    return path.suffix.lower() in ENDINGS and not hidden


def _tar_members(archive: Path) -> list[Member]:
    try:
        with tarfile.open(archive, "r:") as tar:
            files = [info for info in tar if info.isfile()]
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        raise _broken(archive, error) from error
    found = (Member(archive, info.name.removeprefix("./"), info.offset_data, info.size) for info in files)
    return [member for member in found if _is_picture(member.name)]


def _zip_members(archive: Path) -> list[Member]:
    """Members with their places, so that the directory, which for many pictures is slow to read, is read once."""
    try:
        with zipfile.ZipFile(archive) as directory:
            infos = [info for info in directory.infolist() if not info.is_dir() and _is_picture(info.filename)]
    except (zipfile.BadZipFile, OSError, EOFError, ValueError, NotImplementedError, struct.error) as error:
        raise _broken(archive, error) from error
    return [_zip_member(archive, info) for info in infos]


def _zip_member(archive: Path, info: zipfile.ZipInfo) -> Member:
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or info.flag_bits & 1:
        raise DataError(f"{archive}/{info.filename} is encrypted or compressed in a rare way: unpack the archive.")
    inflated = info.file_size if info.compress_type == zipfile.ZIP_DEFLATED else None
    return Member(archive, info.filename, info.header_offset, info.compress_size, inflated)


def _inflate(content: bytes, size: int) -> bytes:
    if size > MAX_BYTES:
        raise OSError(f"it would have {size:,} bytes, where {MAX_BYTES:,} are allowed")
    inflated = zlib.decompressobj(-zlib.MAX_WBITS).decompress(content, size + 1)
    if len(inflated) != size:
        raise EOFError(f"it does not have the {size:,} bytes that the archive promises")
    return inflated


def _broken(archive: Path, error: Exception) -> DataError:
    return DataError(f"{archive} cannot be read as an archive: {error}. Fetch it again.")
