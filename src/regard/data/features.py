"""Features of pictures, computed once by an encoder and kept on disk: resumed after a kill, opened at once."""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float16, UInt8
from PIL import Image

from regard.data.image_tensors import ImageTensors
from regard.data.images import ImageReport, Images, Square
from regard.data.progress import progress_bar
from regard.errors import DataError, NonFiniteError, OptionError, ShapeError

FORMAT = 1
PENDING, DONE, FAILED = range(3)
# How far the features of the probe may be from those of the first run: another device rounds otherwise.
_TOLERANCE = 0.02
_DTYPES = {"float16": "<f2", "int8": "i1"}
_ENDINGS = {"float16": "f16", "int8": "i8"}

Pixels = UInt8[np.ndarray, "b h w 3"]
Prepare = Callable[[Image.Image], UInt8[np.ndarray, "h w 3"]]


@dataclass(frozen=True)
class _Plan:
    """What a store is of, as meta.json says it."""

    encoder: str
    prepare: str
    names_hash: str
    count: int
    cells: int
    features: int
    kind: str = "float16"

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.count, self.cells, self.features

    @property
    def file(self) -> str:
        return f"features.{_ENDINGS[self.kind]}"

    @property
    def dtype(self) -> "np.dtype[Any]":
        return np.dtype(_DTYPES[self.kind])

    @property
    def size(self) -> int:
        return self.count * self.cells * self.features * self.dtype.itemsize


class FeatureStore:
    """Features of pictures, float16 (cells, features) for each name: `store["a.jpg"]`, `store.batch(names)`.

    A store is a folder: features.f16 (a memory-mapped array), state.u8 (which rows are done), names.json, failed.json,
    probe.npy and meta.json. At half the size, features.i8 holds whole numbers from -127 to 127, and steps.npy what 1
    stands for in each feature. Pickling a store, as loaders do for their workers, copies only its path.
    """

    def __init__(self, folder: Path, plan: _Plan, names: Sequence[str], state: UInt8[np.ndarray, "n"]) -> None:
        self.folder = folder
        self.encoder = plan.encoder
        self.failed: dict[str, str] = _read(folder / "failed.json")
        """Why a picture has no features."""
        self._rows = {name: row for row, name in enumerate(names) if state[row] == DONE}
        # Copied where it is written to, which nobody does: torch takes no array that cannot be written.
        self._features = np.memmap(folder / plan.file, dtype=plan.dtype, mode="c", shape=plan.shape)
        self._steps = _steps(folder) if plan.kind == "int8" else None

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
        """Encode the pictures of these names, `batch` at a time; a run that was ended goes on where it stood.

        `prepare` makes uint8 pixels of a picture, all of one shape; `encode` makes (b, cells, features) of them, as an
        array or a tensor; `encoder` says in words which it is. With `steps`, features are kept as so many steps, from
        -127 to 127, a byte each. A folder that was begun with another encoder, other
        weights or another preparation is refused: besides the words, the features of a test picture must come out the
        same. Pictures that cannot be read are left out, told in `failed`, and tried again at the next build.
        """
        if batch < 1 or workers < 1 or not names:
            raise OptionError(
                f"A store is of one or more pictures; got {len(names)}, batch={batch}, workers={workers}."
            )
        names, folder = list(dict.fromkeys(names)), Path(folder)
        probe = _encoded(encode, np.stack([prepare(_probe(turned)) for turned in (False, True)]), "The test picture")
        kind = "float16" if steps is None else "int8"
        cells, features = probe.shape[1:]
        plan = _Plan(encoder, repr(prepare), _hash(names), len(names), cells, features, kind)
        if (folder / "meta.json").is_file():
            _check(folder, plan, probe)
        else:
            _begin(folder, plan, names, probe, steps)
        _fill(folder, plan, names, _Encoding(images, encode, prepare, batch, workers), progress)
        return cls.open(folder)

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> "FeatureStore":
        """The store in a folder, if it is complete."""
        folder = Path(folder)
        plan = _plan(folder)
        state = _state(folder, plan, "r")
        if missing := int((state == PENDING).sum()):
            raise DataError(
                f"{folder} has the features of {plan.count - missing} of {plan.count} pictures. Build it again, and it "
                "goes on from there."
            )
        size = (folder / plan.file).stat().st_size
        if size != plan.size:
            raise DataError(f"{folder / plan.file} has {size} bytes, not what meta.json promises. Build it anew.")
        return cls(folder, plan, _read(folder / "names.json"), state)

    @property
    def shape(self) -> tuple[int, int]:
        """Cells and features of a picture."""
        return self._features.shape[1], self._features.shape[2]

    @property
    def names(self) -> list[str]:
        """The pictures that have features."""
        return list(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def __getitem__(self, name: str) -> Float16[np.ndarray, "cells features"]:
        return np.asarray(self.batch([name])[0])

    def batch(self, names: Sequence[str]) -> Float16[np.ndarray, "b cells features"]:
        """The features of several pictures."""
        some = self._features[[self._row(name) for name in names]]
        return np.array(some if self._steps is None else some * self._steps, dtype=np.float16)

    def tensors(self, names: Sequence[str]) -> ImageTensors:
        """The features of these pictures as one tensor; it stays on disk where they are all, in the order of the store.

        Otherwise they are brought into memory, each once.
        """
        rows = [self._row(name) for name in names]
        some = self._features if rows == list(range(len(self._features))) else self._features[rows]
        return ImageTensors(torch.from_numpy(some), None if self._steps is None else torch.from_numpy(self._steps))

    def __repr__(self) -> str:
        cells, features = self.shape
        failed = f", {len(self.failed)} failed" if self.failed else ""
        return f"FeatureStore({len(self)} pictures of {cells} x {features} by {self.encoder}{failed}; in {self.folder})"

    def __reduce__(self) -> tuple[Any, ...]:
        return FeatureStore.open, (self.folder,)

    def _row(self, name: str) -> int:
        if name not in self._rows:
            why = self.failed.get(name, f"it is not one of its {len(self)} pictures.")
            raise DataError(f"{self.folder} has no features of {name}: {why}")
        return self._rows[name]


@dataclass(frozen=True)
class _Encoding:
    """Pictures by name to features, some at a time; those that cannot be read are told in a report."""

    images: Images
    encode: Callable[[Pixels], Any]
    prepare: Prepare
    batch: int
    workers: int

    def each(
        self, names: Sequence[str], report: ImageReport
    ) -> Iterator[tuple[Sequence[str], Float16[np.ndarray, "..."]]]:
        def pixels(name: str) -> UInt8[np.ndarray, "h w 3"] | str:
            try:
                return self.prepare(self.images.open(name))
            except DataError as error:
                return str(error)

        with ThreadPoolExecutor(self.workers) as pool:
            for start in range(0, len(names), self.batch):
                some = names[start : start + self.batch]
                read = dict(zip(some, pool.map(pixels, some), strict=True))
                report.bad |= {name: why for name, why in read.items() if isinstance(why, str)}
                good = {name: array for name, array in read.items() if not isinstance(array, str)}
                report.read += len(good)
                told = f"{some[0]}, ..., {some[-1]}"
                yield some, _encoded(self.encode, np.stack([*good.values()]), told) if good else np.zeros(0, "<f2")


def _fill(folder: Path, plan: _Plan, names: Sequence[str], encoding: _Encoding, progress: bool) -> None:
    state = _state(folder, plan, "r+")
    steps = _steps(folder) if plan.kind == "int8" else None
    features = np.memmap(folder / plan.file, dtype=plan.dtype, mode="r+", shape=plan.shape)
    rows = {name: row for row, name in enumerate(names)}
    waiting = [name for name in names if state[rows[name]] != DONE]
    report = ImageReport()
    done = plan.count - len(waiting)
    with progress_bar("encoding", plan.count, "images", completed=done, enabled=progress and bool(waiting)) as advance:
        for some, made in encoding.each(waiting, report):
            good = [rows[name] for name in some if name not in report.bad]
            if good:
                if made.shape[1:] != plan.shape[1:]:
                    raise ShapeError(
                        f"The encoder gave features {made.shape[1:]} for {some[0]}, and {plan.shape[1:]} before."
                    )
                features[good] = made if steps is None else np.clip(np.rint(made / steps), -127, 127)
            # A row is marked only when it is on disk, so that no kill can leave one that is marked and empty.
            features.flush()
            state[good] = DONE
            state[[rows[name] for name in some if name in report.bad]] = FAILED
            state.flush()
            advance(len(some))
    _write(folder / "failed.json", report.bad)


def _begin(
    folder: Path,
    plan: _Plan,
    names: Sequence[str],
    probe: Float16[np.ndarray, "2 cells features"],
    steps: Float[np.ndarray, "features"] | None,
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if plan.size > (free := shutil.disk_usage(folder).free):
        raise DataError(f"{plan.count} pictures need {plan.size:,} bytes in {folder}, and {free:,} are free.")
    if steps is not None:
        if np.shape(steps) != (plan.features,) or not (np.asarray(steps) > 0).all():
            raise OptionError(f"There is a step above 0 for each of {plan.features} features; got {np.shape(steps)}.")
        np.save(folder / "steps.npy", np.asarray(steps, dtype=np.float32))
    for name, length in ((plan.file, plan.size), ("state.u8", plan.count)):
        with (folder / name).open("wb") as stream:
            stream.truncate(length)
    np.save(folder / "probe.npy", probe)
    _write(folder / "names.json", names)
    _write(folder / "failed.json", {})
    # The last: a folder with it has all the others.
    _write(folder / "meta.json", {"regard_features": FORMAT, **plan.__dict__})


def _check(folder: Path, plan: _Plan, probe: Float16[np.ndarray, "2 cells features"]) -> None:
    """That what was begun in a folder is what is being built now."""
    begun = _plan(folder)
    for name, ours in plan.__dict__.items():
        if (theirs := getattr(begun, name)) != ours:
            what = "another list of pictures" if name == "names_hash" else f"{name} {theirs!r}, not {ours!r}"
            raise DataError(f"{folder} was begun with {what}. Give another folder, or remove this one.")
    before = np.load(folder / "probe.npy", allow_pickle=False).astype(np.float64)
    far = float(np.abs(probe.astype(np.float64) - before).max())
    if far > _TOLERANCE * max(float(np.abs(before).max()), 1e-3):
        raise DataError(
            f"{folder} was begun with another encoder or preparation than {plan.encoder!r}: on a test picture its "
            f"features differ by up to {far:.3g}. Give another folder, or remove this one."
        )


def _plan(folder: Path) -> _Plan:
    if not (folder / "meta.json").is_file():
        raise DataError(f"There is no feature store in {folder}: it has no meta.json. Build it.")
    fields = _read(folder / "meta.json")
    version = fields.pop("regard_features", None)
    if version != FORMAT:
        raise DataError(f"{folder} has feature format {version}; this regard reads format {FORMAT}. Build it anew.")
    return _Plan(**fields)


def _state(folder: Path, plan: _Plan, mode: Any) -> "np.memmap[Any, np.dtype[np.uint8]]":
    return np.memmap(folder / "state.u8", dtype=np.uint8, mode=mode, shape=(plan.count,))


def _steps(folder: Path) -> Float[np.ndarray, "features"]:
    try:
        return np.asarray(np.load(folder / "steps.npy", allow_pickle=False), dtype=np.float32)
    except (OSError, ValueError) as error:
        raise DataError(f"{folder / 'steps.npy'} cannot be read: {error}. Build the store anew.") from error


def _encoded(encode: Callable[[Pixels], Any], pixels: Pixels, told: str) -> Float16[np.ndarray, "b cells features"]:
    made = encode(pixels)
    made = made.detach().float().cpu().numpy() if hasattr(made, "detach") else np.asarray(made)
    if made.ndim != 3 or len(made) != len(pixels):
        raise ShapeError(
            f"An encoder gives (pictures, cells, features), here {len(pixels)} pictures; got {made.shape}."
        )
    with np.errstate(over="ignore"):
        short: Float[np.ndarray, "b cells features"] = made.astype("<f2")
    if not np.isfinite(short).all():
        raise NonFiniteError(f"{told}: the encoder gave features that are not finite in float16 (up to 65,504).")
    return short


def _probe(turned: bool) -> Image.Image:
    """A picture with slopes and edges, wide or high, that comes out otherwise when anything is done to it otherwise."""
    y, x = np.mgrid[0:97, 0:131]
    levels = np.stack([2 * x, 255 - y - x // 2, 90 * ((x // 13 + y // 11) % 3)], axis=-1).clip(0, 255).astype(np.uint8)
    return Image.fromarray(np.ascontiguousarray(levels.transpose(1, 0, 2) if turned else levels))


def _hash(names: Sequence[str]) -> str:
    return blake2b("\n".join(names).encode(), digest_size=16).hexdigest()


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}. Build the store anew.") from error


def _write(path: Path, content: Any) -> None:
    draft = path.with_name(path.name + ".tmp")
    draft.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    draft.replace(path)
