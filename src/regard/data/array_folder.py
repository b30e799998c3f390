"""Folders of memory-mapped arrays, which open instantly and are shared between processes."""

import json
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from regard.errors import DataError
from regard.files import write_text

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
    def read_meta(cls, folder: Path) -> dict[str, Any]:
        """What meta.json says, without the version, which must be that of this class."""
        if not (folder / META).is_file():
            raise DataError(f"There is no complete {cls.kind} in {folder}: it has no meta.json. Build it again.")
        meta, (field, version) = read_json(folder / META), cls.format
        if not isinstance(meta, dict) or field not in meta:
            raise DataError(f"{folder / META} does not describe a {cls.kind}: it has no {field!r}.")
        if (found := meta.pop(field)) != version:
            raise DataError(
                f"{folder} has {cls.kind} format {found!r:.50}; this version reads format {version}. Build it again."
            )
        return meta

    @classmethod
    def write_meta(cls, folder: Path, meta: dict[str, Any], *, indent: int | None = None) -> None:
        """Write meta.json: the folder is complete."""
        field, version = cls.format
        write_json(folder / META, {field: version, **meta}, indent=indent)

    def __reduce__(self) -> tuple[Any, ...]:
        return _open_again, (type(self), self.folder)


def _open_again(kind: type[ArrayFolder], folder: Path) -> ArrayFolder:
    """Open a folder in a worker; it was verified when it was opened first."""
    return kind.open(folder, verify=False)


def size_complaint(path: Path, stated: int) -> str:
    """What is wrong with the size of a file, or ""."""
    size = path.stat().st_size if path.is_file() else 0
    return "" if size == stated else f"{path} has {size} bytes, but meta.json states {stated}"


def map_array(path: Path, dtype: Any, shape: tuple[int, ...], mode: Any = "r") -> "np.memmap[Any, Any]":
    """Map the array in a file, which must have the stated size."""
    if complaint := size_complaint(path, int(np.prod(shape)) * np.dtype(dtype).itemsize):
        raise DataError(f"{complaint}: it is damaged. Build it again.")
    return np.memmap(path, dtype=dtype, mode=mode, shape=shape)


def read_json(path: Path) -> Any:
    """Read a JSON file of a folder."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path} cannot be read: {error}. Build it again.") from error


def write_json(path: Path, content: Any, *, indent: int | None = None) -> None:
    """Write a JSON file of a folder, whole or not at all."""
    write_text(path, json.dumps(content, ensure_ascii=indent is not None, indent=indent) + ("\n" if indent else ""))
