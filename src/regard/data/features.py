"""Image features, computed once by an encoder and stored on disk in a memory-mapped array."""

import math
import os
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Float16, UInt8
from PIL import Image

from regard.data.array_folder import ArrayFolder, damaged, map_array, read_json, write_json
from regard.data.captioned_images import ImageTensors
from regard.data.images import ImageReport, Images, Square
from regard.data.progress import progress_bar
from regard.data.text import reading
from regard.errors import DataError, NonFiniteError, OptionError, RegardWarning, ShapeError, counted
from regard.files import building

SUMS = "sums.u4"
"""The file with the CRC-32 of each row of features."""
PENDING, DONE, FAILED = range(3)
_DTYPES = {"float16": "<f2", "int8": "i1"}
_SUFFIXES = {"float16": "f16", "int8": "i8"}
# Relative tolerance for the features of the probe image: devices round differently.
_TOLERANCE = 0.02

Pixels = UInt8[np.ndarray, "b h w 3"]
Prepare = Callable[[Image.Image], UInt8[np.ndarray, "h w 3"]]


@dataclass(frozen=True)
class StorePlan:
    """The description of a store in meta.json."""

    encoder: str
    prepare: str
    names_hash: str
    count: int
    cells: int
    features: int
    kind: Literal["float16", "int8"] = "float16"
    steps_hash: str = ""
    """Of the quantization steps, where there are any."""

    @property
    def file(self) -> str:
        """Name of the file with the features."""
        return f"features.{_SUFFIXES[self.kind]}"

    @property
    def arrays(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """The type and shape of each array, by the name of its file."""
        features = _DTYPES[self.kind], (self.count, self.cells, self.features)
        return {self.file: features, "state.u8": ("u1", (self.count,)), SUMS: ("<u4", (self.count,))}


@dataclass(frozen=True, eq=False)
class _Rows:
    """The arrays of a store, memory-mapped: a row for each image."""

    names: list[str]
    features: "np.memmap[Any, Any]"
    state: "np.memmap[Any, np.dtype[np.uint8]]"
    """PENDING, DONE or FAILED."""
    sums: "np.memmap[Any, np.dtype[np.uint32]]"
    """The CRC-32 of the features."""
    steps: Float[np.ndarray, "features"] | None
    """The quantization step of each feature, where features are quantized."""

    @classmethod
    def open(cls, folder: Path, plan: StorePlan, mode: str) -> "_Rows":
        """Map the arrays of a store, which must be as its plan describes them."""
        features, state, sums = (map_array(folder / name, *array, mode) for name, array in plan.arrays.items())
        names = read_json(folder / "names.json", list[str])
        if hash_names(names) != plan.names_hash:
            raise damaged(folder / "names.json", "has changed since the store was built")
        steps = None
        if plan.kind == "int8":
            with reading(folder / "steps.npy", advice="Build it again."):
                steps = np.asarray(np.load(folder / "steps.npy", allow_pickle=False), dtype=np.float32)
            if hash_steps(steps) != plan.steps_hash:
                raise damaged(folder / "steps.npy", "has changed since the store was built")
        return cls(names, features, state, sums, steps)

    def damaged(self) -> list[int]:
        """The rows that are done, but whose features are not those that were written."""
        done = np.flatnonzero(self.state == DONE)
        return [int(row) for row in done if zlib.crc32(self.features[row].data) != self.sums[row]]

    def write(self, good: Sequence[int], encoded: Float16[np.ndarray, "..."], failed: Sequence[int]) -> None:
        """Store the features of some rows, and that others have none.

        A row is marked as done only when it is on disk, so that a kill never leaves a marked but empty row.
        """
        if good:
            steps = self.steps
            self.features[good] = encoded if steps is None else np.clip(np.rint(encoded / steps), -127, 127)
        self.features.flush()
        self.sums[good] = [zlib.crc32(self.features[row].data) for row in good]
        self.sums.flush()
        self.state[good], self.state[failed] = DONE, FAILED
        self.state.flush()


class FeatureStore(ArrayFolder):
    """Features of images by name, float16 (cells, features) each: `store["a.jpg"]`, `store.batch(names)`.

    Beside features.f16 there are state.u8 (which rows are done), sums.u4 (the CRC-32 of each row), names.json,
    failed.json and probe.npy. Quantized to half the size, features.i8 holds integers from -127 to 127, and steps.npy
    the quantization step of each feature.
    """

    kind, format = "feature store", ("regard_features", 2)

    def __init__(self, folder: Path, encoder: str, rows: _Rows) -> None:
        self.folder, self.encoder = folder, encoder
        self.failed: dict[str, str] = read_json(folder / "failed.json", dict[str, str])
        """Names of the images without features, and why they have none."""
        self._rows = {name: row for row, name in enumerate(rows.names) if rows.state[row] == DONE}
        self._features, self._steps = rows.features, rows.steps

    @classmethod
    def build(
        cls,
        folder: str | os.PathLike[str],
        images: Images,
        names: Sequence[str],
        encode: Callable[[Pixels], Any],
        *,
        encoder: str,
        prepare: Prepare = Square(224),  # noqa: B008 - it never changes
        steps: Float[np.ndarray, "features"] | None = None,
        batch: int = 32,
        workers: int = 2,
        progress: bool = True,
    ) -> "FeatureStore":
        """Encode the images with these names, `batch` at a time, and continue an interrupted build where it stopped.

        Where another process is building the same store, wait for it. Rows whose features were damaged are encoded
        again, and a store whose files are torn is built anew.

        `prepare` turns an image into uint8 pixels of a fixed shape, `encode` turns a batch of these into an array or
        tensor (b, cells, features), and `encoder` describes the encoder in words. With `steps`, features are quantized
        to one byte each, a multiple from -127 to 127 of the step. A folder that was started with another encoder, other
        parameters or another preparation is refused: besides the description, the features of a probe image must be
        the same. Images that cannot be read are left out, listed in `failed`, and tried again by the next build.
        """
        if batch < 1 or workers < 1 or not names:
            raise OptionError(
                f"A store needs at least one image, batch >= 1 and workers >= 1; got {len(names)} images, "
                f"batch={batch}, workers={workers}."
            )
        names, folder = list(dict.fromkeys(names)), Path(folder)
        probe = _encode(encode, np.stack([prepare(_probe(tall)) for tall in (False, True)]), "The probe image")
        kind: Literal["float16", "int8"] = "float16" if steps is None else "int8"
        cells, features = probe.shape[1:]
        steps_hash = "" if steps is None else hash_steps(steps)
        plan = StorePlan(encoder, repr(prepare), hash_names(names), len(names), cells, features, kind, steps_hash)
        if steps is not None and (np.shape(steps) != (features,) or not (np.asarray(steps) > 0).all()):
            given = f"{np.shape(steps)}, the smallest {np.min(steps)}"
            raise OptionError(f"steps must be above 0, one for each of {features} features; got {given}.")
        with building(folder):
            if not _continues(folder, plan, probe):
                _start(folder, plan, names, probe, steps)
            _fill(folder, plan, names, _Encoding(images, encode, prepare, batch, workers), progress)
        return cls.open(folder, verify=False)

    @classmethod
    def open(cls, folder: str | os.PathLike[str], *, verify: bool = True) -> "FeatureStore":
        """Open the store in a folder; it must be complete, and with `verify` its features those that were written."""
        folder = Path(folder)
        plan = cls.read_meta(folder, StorePlan)
        # Copy-on-write, though nothing writes: torch does not accept read-only arrays.
        rows = _Rows.open(folder, plan, "c")
        if missing := int((rows.state == PENDING).sum()):
            raise DataError(
                f"{folder} has the features of {plan.count - missing} of {plan.count} images. Build it again: it "
                "continues where it stopped."
            )
        if verify and (wrong := rows.damaged()):
            some = f"{counted(len(wrong), 'image')}, such as {rows.names[wrong[0]]}"
            raise damaged(folder / plan.file, f"has features of {some}, that are not those that were written")
        return cls(folder, plan.encoder, rows)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of cells and of features of an image."""
        return self._features.shape[1], self._features.shape[2]

    @property
    def names(self) -> list[str]:
        """Names of the images that have features."""
        return list(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def __getitem__(self, name: str) -> Float16[np.ndarray, "cells features"]:
        return np.asarray(self.batch([name])[0])

    def batch(self, names: Sequence[str]) -> Float16[np.ndarray, "b cells features"]:
        """Return the features of several images."""
        rows = self._features[[self._row(name) for name in names]]
        return np.array(rows if self._steps is None else rows * self._steps, dtype=np.float16)

    def tensors(self, names: Sequence[str]) -> ImageTensors:
        """Return the features of these images as one tensor.

        It stays memory-mapped if `names` are all images in the order of the store, and is loaded into memory otherwise.
        """
        rows = [self._row(name) for name in names]
        values = self._features if rows == list(range(len(self._features))) else self._features[rows]
        return ImageTensors(torch.from_numpy(values), None if self._steps is None else torch.from_numpy(self._steps))

    def __repr__(self) -> str:
        cells, features = self.shape
        failed = f", {len(self.failed)} failed" if self.failed else ""
        return f"FeatureStore({len(self)} images of {cells} x {features} by {self.encoder}{failed}; in {self.folder})"

    def _row(self, name: str) -> int:
        if name not in self._rows:
            reason = self.failed.get(name, f"it is not one of the {len(self)} images.")
            raise DataError(f"{self.folder} has no features of {name}: {reason}")
        return self._rows[name]


@dataclass(frozen=True)
class _Encoding:
    """Encodes images by name in batches; those that cannot be read are collected in a report."""

    images: Images
    encode: Callable[[Pixels], Any]
    prepare: Prepare
    batch: int
    workers: int

    def batches(
        self, names: Sequence[str], report: ImageReport
    ) -> Iterator[tuple[Sequence[str], Float16[np.ndarray, "..."]]]:
        def pixels(name: str) -> UInt8[np.ndarray, "h w 3"] | str:
            try:
                return self.prepare(self.images.open(name))
            except DataError as error:
                return str(error)

        with ThreadPoolExecutor(self.workers) as pool:
            for start in range(0, len(names), self.batch):
                batch = names[start : start + self.batch]
                read = dict(zip(batch, pool.map(pixels, batch), strict=True))
                report.bad |= {name: reason for name, reason in read.items() if isinstance(reason, str)}
                good = {name: array for name, array in read.items() if not isinstance(array, str)}
                report.read += len(good)
                label = f"{batch[0]}, ..., {batch[-1]}"
                yield batch, _encode(self.encode, np.stack([*good.values()]), label) if good else np.zeros(0, "<f2")


def _fill(folder: Path, plan: StorePlan, names: Sequence[str], encoding: _Encoding, progress: bool) -> None:
    rows = _Rows.open(folder, plan, "r+")
    rows.state[rows.damaged()] = PENDING
    row_of = {name: row for row, name in enumerate(names)}
    pending = [name for name in names if rows.state[row_of[name]] != DONE]
    report = ImageReport()
    done = plan.count - len(pending)
    with progress_bar("encoding", plan.count, "images", completed=done, enabled=progress and bool(pending)) as advance:
        for batch, encoded in encoding.batches(pending, report):
            good = [row_of[name] for name in batch if name not in report.bad]
            if good and encoded.shape[1:] != (size := rows.features.shape[1:]):
                raise ShapeError(f"The encoder returned {encoded.shape[1:]} for {batch[0]}, but {size} before.")
            rows.write(good, encoded, [row_of[name] for name in batch if name in report.bad])
            advance(len(batch))
    write_json(folder / "failed.json", report.bad)


def _start(
    folder: Path,
    plan: StorePlan,
    names: Sequence[str],
    probe: Float16[np.ndarray, "2 cells features"],
    steps: Float[np.ndarray, "features"] | None,
) -> None:
    FeatureStore.begin(folder)
    if steps is not None:
        np.save(folder / "steps.npy", np.asarray(steps, dtype=np.float32))
    for name, (dtype, shape) in plan.arrays.items():
        length = math.prod(shape) * np.dtype(dtype).itemsize
        try:
            with (folder / name).open("wb") as stream:
                # Reserved now, since a write to mapped memory that finds the disk full would kill the process.
                os.posix_fallocate(stream.fileno(), 0, length)
        except OSError as error:
            reason = f"{length:,} bytes, which cannot be written: {error.strerror}"
            raise DataError(f"{folder / name} for {plan.count} images needs {reason}.") from error
    np.save(folder / "probe.npy", probe)
    write_json(folder / "names.json", names)
    write_json(folder / "failed.json", {})
    # Written last: a folder that has it has all the other files.
    FeatureStore.write_meta(folder, plan)


def _continues(folder: Path, plan: StorePlan, probe: Float16[np.ndarray, "2 cells features"]) -> bool:
    """Whether the folder holds a store of this plan that can be continued; one of another plan is refused."""
    if not FeatureStore.is_complete(folder):
        return False
    try:
        if (started := FeatureStore.read_meta(folder, StorePlan)) == plan:
            _Rows.open(folder, plan, "r")
            with reading(folder / "probe.npy", advice="Build it again."):
                before = np.load(folder / "probe.npy", allow_pickle=False).astype(np.float64).reshape(probe.shape)
    except DataError as error:
        warnings.warn(f"{error} It is built anew.", RegardWarning, stacklevel=3)
        return False
    for name, ours in plan.__dict__.items():
        if (theirs := getattr(started, name)) != ours:
            what = "another list of images" if name == "names_hash" else f"{name} {theirs!r}, not {ours!r}"
            raise DataError(f"{folder} was started with {what}. Choose another folder, or remove this one.")
    difference = float(np.abs(probe.astype(np.float64) - before).max())
    if difference > _TOLERANCE * max(float(np.abs(before).max()), 1e-3):
        raise DataError(
            f"{folder} was started with another encoder or preparation than {plan.encoder!r}: the features of a probe "
            f"image differ by up to {difference:.3g}. Choose another folder, or remove this one."
        )
    return True


def _encode(encode: Callable[[Pixels], Any], pixels: Pixels, label: str) -> Float16[np.ndarray, "b cells features"]:
    encoded = encode(pixels)
    encoded = encoded.detach().float().cpu().numpy() if hasattr(encoded, "detach") else np.asarray(encoded)
    if encoded.ndim != 3 or len(encoded) != len(pixels):
        raise ShapeError(
            f"An encoder must return (images, cells, features), here for {len(pixels)} images; got {encoded.shape}."
        )
    with np.errstate(over="ignore"):
        short: Float[np.ndarray, "b cells features"] = encoded.astype("<f2")
    if not np.isfinite(short).all():
        raise NonFiniteError(f"{label}: the encoder returned features that are not finite in float16 (at most 65,504).")
    return short


def _probe(tall: bool) -> Image.Image:
    """An image with gradients and edges, whose features change when the encoder or the preparation does."""
    y, x = np.mgrid[0:97, 0:131]
    levels = np.stack([2 * x, 255 - y - x // 2, 90 * ((x // 13 + y // 11) % 3)], axis=-1).clip(0, 255).astype(np.uint8)
    return Image.fromarray(np.ascontiguousarray(levels.transpose(1, 0, 2) if tall else levels))


def hash_names(names: Sequence[str]) -> str:
    """Return a hash of the names of the images, in their order."""
    return blake2b("\n".join(names).encode(), digest_size=16).hexdigest()


def hash_steps(steps: Float[np.ndarray, "features"]) -> str:
    """Return a hash of the quantization steps."""
    return blake2b(np.ascontiguousarray(steps, dtype="<f4").tobytes(), digest_size=16).hexdigest()
