"""The files of a feature store: its description, the state of its rows, and its names."""

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8, UInt32

from regard.errors import DataError
from regard.files import write_text

FORMAT = 2
SUMS = "sums.u4"
"""The file with the CRC-32 of each row of features."""
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
    steps_hash: str = ""
    """Of the quantization steps, where there are any."""

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


def map_sums(folder: Path, plan: StorePlan, mode: Any) -> "np.memmap[Any, np.dtype[np.uint32]]":
    """Map the CRC-32 of each row."""
    return np.memmap(folder / SUMS, dtype="<u4", mode=mode, shape=(plan.count,))


def damaged_rows(
    features: "np.memmap[Any, Any]", state: UInt8[np.ndarray, "n"], sums: UInt32[np.ndarray, "n"]
) -> list[int]:
    """The rows that are done, but whose features are not those that were written."""
    done = np.flatnonzero(state == DONE)
    return [int(row) for row in done if zlib.crc32(features[row].data) != sums[row]]


def read_steps(folder: Path) -> Float[np.ndarray, "features"]:
    """Read the quantization step of each feature."""
    try:
        return np.asarray(np.load(folder / "steps.npy", allow_pickle=False), dtype=np.float32)
    except (OSError, ValueError) as error:
        raise DataError(f"{folder / 'steps.npy'} cannot be read: {error}. Build the store again.") from error


def hash_names(names: Sequence[str]) -> str:
    """Return a hash of the names of the images, in their order."""
    return blake2b("\n".join(names).encode(), digest_size=16).hexdigest()


def torn(folder: Path, plan: StorePlan) -> str:
    """What is wrong with the files of a store that was started with this plan, or "" if it can be continued."""
    sizes = {plan.file: plan.size, "state.u8": plan.count, SUMS: 4 * plan.count}
    for name, size in sizes.items():
        found = (folder / name).stat().st_size if (folder / name).is_file() else 0
        if found != size:
            return f"{folder / name} has {found} bytes, but meta.json states {size}"
    try:
        names = read_json(folder / "names.json")
        if not isinstance(names, list) or hash_names(list(map(str, names))) != plan.names_hash:
            return f"{folder / 'names.json'} has changed since the store was built"
        if plan.steps_hash and hash_steps(read_steps(folder)) != plan.steps_hash:
            return f"{folder / 'steps.npy'} has changed since the store was built"
    except DataError as error:
        return str(error).removesuffix(". Build the store again.")
    return ""


def hash_steps(steps: Float[np.ndarray, "features"]) -> str:
    """Return a hash of the quantization steps."""
    return blake2b(np.ascontiguousarray(steps, dtype="<f4").tobytes(), digest_size=16).hexdigest()


def read_json(path: Path) -> Any:
    """Read a JSON file of a store."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}. Build the store again.") from error


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file of a store, whole or not at all."""
    write_text(path, json.dumps(content, ensure_ascii=False))
