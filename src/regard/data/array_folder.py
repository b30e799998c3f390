"""Folders of memory-mapped arrays, which open instantly and are shared between processes."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import msgspec
import numpy as np

from regard.errors import DataError
from regard.files import write_text

T = TypeVar("T")
META = "meta.json"


class ArrayFolder:
    """Raw little-endian arrays in a folder, described by meta.json, which is written last: with it, they are complete.

    Pickling one, as loaders do for their workers, copies only its path.
    """

    kind: ClassVar[str]
    """What errors call it."""
    format: ClassVar[tuple[str, int]]
    """The field of meta.json with the version of the format, and the version that is read and written."""
    folder: Path

    @classmethod
    def open(cls, folder: Path, *, verify: bool = True) -> "ArrayFolder":
        """Open a folder; with `verify`, check that its arrays are those that were written."""
        raise TypeError(f"{cls.__name__} does not define open(folder, verify=...).")

    @classmethod
    def is_complete(cls, folder: Path) -> bool:
        """Whether there is a description, so that the arrays were all written."""
        return (folder / META).is_file()

    @classmethod
    def read_meta(cls, folder: Path, described: type[T]) -> T:
        """Read meta.json, a dataclass; the version in it must be that of this class."""
        if not cls.is_complete(folder):
            raise DataError(f"There is no complete {cls.kind} in {folder}: it has no {META}. Build it again.")
        meta, (field, version) = read_json(folder / META, dict[str, Any]), cls.format
        if (found := meta.pop(field, None)) != version:
            raise DataError(
                f"{folder} has {cls.kind} format {found!r:.50}; this version reads format {version}. Build it again."
            )
        try:
            return msgspec.convert(meta, described)
        except msgspec.ValidationError as error:
            raise DataError(f"{folder / META} does not describe a {cls.kind}: {error}. Build it again.") from error

    @classmethod
    def write_meta(cls, folder: Path, described: Any, *, indent: int | None = None) -> None:
        """Write a dataclass as meta.json: the folder is complete."""
        field, version = cls.format
        write_json(folder / META, {field: version, **asdict(described)}, indent=indent)

    @classmethod
    def begin(cls, folder: Path) -> None:
        """Make the folder, and let nothing open it before its new description is written."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / META).unlink(missing_ok=True)

    def __reduce__(self) -> tuple[Any, ...]:
        return _open_again, (type(self), self.folder)


def _open_again(kind: type[ArrayFolder], folder: Path) -> ArrayFolder:
    """Open a folder in a worker; it was verified when it was opened first."""
    return kind.open(folder, verify=False)


def damaged(path: Path, reason: str) -> DataError:
    """The error for a file of a folder that is not what was written."""
    return DataError(f"{path} is damaged: it {reason}. Build it again.")


def map_array(path: Path, dtype: Any, shape: tuple[int, ...], mode: Any = "r") -> "np.memmap[Any, Any]":
    """Map the array in a file, which must have the stated size."""
    stated = int(np.prod(shape)) * np.dtype(dtype).itemsize
    size = path.stat().st_size if path.is_file() else 0
    if size != stated or not path.is_file():
        raise damaged(path, f"has {size} bytes, but {META} states {stated}")
    return np.memmap(path, dtype=dtype, mode=mode, shape=shape)


def read_json(path: Path, kind: Any) -> Any:
    """Read a value of this type, such as list[str], from a JSON file of a folder."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise damaged(path, f"cannot be read ({error})") from error


def write_json(path: Path, content: Any, *, indent: int | None = None) -> None:
    """Write a JSON file of a folder, whole or not at all."""
    write_text(path, json.dumps(content, ensure_ascii=indent is not None, indent=indent) + ("\n" if indent else ""))
