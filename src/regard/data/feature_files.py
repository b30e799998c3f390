"""The files of a feature store: its description, the state of its rows, and its names."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from regard.errors import DataError
from regard.files import write_text

FORMAT = 1
PENDING, DONE, FAILED = range(3)
_DTYPES = {"float16": "<f2", "int8": "i1"}
_SUFFIXES = {"float16": "f16", "int8": "i8"}


@dataclass(frozen=True)
class StorePlan:
    """The description of a store in meta.json."""

    encoder: str
    prepare: str
    names_hash: str
    count: int
    cells: int
    features: int
    kind: str = "float16"

    @property
    def shape(self) -> tuple[int, int, int]:
        """Images, cells and features."""
        return self.count, self.cells, self.features

    @property
    def file(self) -> str:
        """Name of the file with the features."""
        return f"features.{_SUFFIXES[self.kind]}"

    @property
    def dtype(self) -> "np.dtype[Any]":
        """Data type of the stored features."""
        return np.dtype(_DTYPES[self.kind])

    @property
    def size(self) -> int:
        """Number of bytes of all features."""
        return self.count * self.cells * self.features * self.dtype.itemsize


def read_plan(folder: Path) -> StorePlan:
    """Read the description of the store in a folder."""
    if not (folder / "meta.json").is_file():
        raise DataError(f"There is no feature store in {folder}: it has no meta.json. Build it first.")
    fields = read_json(folder / "meta.json")
    version = fields.pop("regard_features", None)
    if version != FORMAT:
        raise DataError(
            f"{folder} has feature format {version}; this version of regard reads format {FORMAT}. Build it again."
        )
    try:
        return StorePlan(**fields)
    except TypeError as error:
        raise DataError(f"{folder / 'meta.json'} does not describe a feature store: {error}.") from error


def map_state(folder: Path, plan: StorePlan, mode: Any) -> "np.memmap[Any, np.dtype[np.uint8]]":
    """Map the state of each row: PENDING, DONE or FAILED."""
    return np.memmap(folder / "state.u8", dtype=np.uint8, mode=mode, shape=(plan.count,))


def read_steps(folder: Path) -> Float[np.ndarray, "features"]:
    """Read the quantization step of each feature."""
    try:
        return np.asarray(np.load(folder / "steps.npy", allow_pickle=False), dtype=np.float32)
    except (OSError, ValueError) as error:
        raise DataError(f"{folder / 'steps.npy'} cannot be read: {error}. Build the store again.") from error


def hash_names(names: Sequence[str]) -> str:
    """Return a hash of the names of the images, in their order."""
    return blake2b("\n".join(names).encode(), digest_size=16).hexdigest()


def read_json(path: Path) -> Any:
    """Read a JSON file of a store."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}. Build the store again.") from error


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file of a store, whole or not at all."""
    write_text(path, json.dumps(content, ensure_ascii=False))
