"""Images with class labels, read from IDX files, CIFAR-10, mosaics or one folder per class."""

import gzip
import hashlib
import io
import math
import os
import struct
import tarfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int, Shaped, UInt8
from torch import Tensor

from regard.data.batches import BatchLoader, CostBatches
from regard.data.images import Square, channels_first, list_images, open_image
from regard.data.progress import progress_bar
from regard.data.text import read_limited
from regard.errors import DataError, OptionError

CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
MAX_AXES = 8
_IDX_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """Images of one size, and the class of each."""

    images: UInt8[Tensor, "n c h w"]
    labels: Int[Tensor, "n"]
    classes: tuple[str, ...]
    """The name of each class; a label is an index into these."""

    def __post_init__(self) -> None:
        if len(self.images) != len(self.labels):
            raise DataError(f"Each image needs one label; got {len(self.images)} images and {len(self.labels)} labels.")
        if len(self.labels) and not 0 <= int(self.labels.min()) <= int(self.labels.max()) < len(self.classes):
            raise DataError(
                f"Labels must be from 0 to {len(self.classes) - 1}, the index of a class; got labels from "
                f"{int(self.labels.min())} to {int(self.labels.max())}."
            )

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: slice | Tensor) -> "LabelledImages":
        return replace(self, images=self.images[index], labels=self.labels[index])

    def to(self, device: torch.device | str) -> "LabelledImages":
        """Move images and labels to a device."""
        return replace(self, images=self.images.to(device), labels=self.labels.to(device))

    def take(self, indices: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Gather images and labels on the device where they are: the collate_fn of a DataLoader."""
        chosen = torch.tensor(indices).to(self.images.device, non_blocking=True)
        return self.images[chosen], self.labels[chosen]

    def loader(self, *, batch_size: int, shuffle: bool, seed: int = 0) -> BatchLoader:
        """Batches of images and labels, in an order that the seed decides; resumable (see CostBatches)."""
        sizes = np.ones((len(self), 1), dtype=np.int64)
        batches = CostBatches(sizes, max_cost=batch_size, shuffle=shuffle, seed=seed)
        return BatchLoader(range(len(self)), batches, collate_fn=self.take)

    def hold_out(self, count: int) -> tuple["LabelledImages", "LabelledImages"]:
        """Split off the `count` images whose pixels have the smallest SHA-256; return the rest and the held-out images.

        The split does not depend on the order of the images, and identical images are never on both sides.
        """
        if count == 0:
            return self, self[:0]
        if not 0 < count < len(self):
            raise OptionError(f"The number of images to hold out must be from 0 to {len(self) - 1}; got {count}.")
        digests = (hashlib.sha256(image.tobytes()).digest() for image in self.images.numpy())
        hashes = np.array([int.from_bytes(digest[:8]) for digest in digests], dtype=np.uint64)
        limit = np.sort(hashes)[count - 1]
        chosen = torch.from_numpy(hashes <= limit)
        if bool(chosen.all()):
            raise DataError(f"Nothing is left to train on: all {len(self)} images are identical.")
        return self[~chosen], self[chosen]


def read_idx(path: str | os.PathLike[str]) -> Shaped[np.ndarray, "..."]:
    """Read the array in an IDX file, the format of MNIST, plain or gzipped."""
    content = _read_bytes(Path(path))
    if content[:2] == b"\x1f\x8b":
        try:
            with gzip.open(io.BytesIO(content)) as unpacked:
                content = read_limited(unpacked, str(path))
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"{path} is damaged: {error}.") from error
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in _IDX_TYPES:
        raise DataError(f"{path} is not an IDX file: it begins with {content[:4].hex(' ')}.")
    kind, axes = np.dtype(_IDX_TYPES[content[2]]), content[3]
    if not 1 <= axes <= MAX_AXES:
        raise DataError(f"{path} is not an IDX file: it has {axes} axes, and arrays have 1 to {MAX_AXES}.")
    start = 4 + 4 * axes
    shape = struct.unpack(f">{axes}I", content[4:start]) if len(content) >= start else ()
    if len(content) < start or len(content) - start != math.prod(shape) * kind.itemsize:
        raise DataError(f"{path} is truncated or too long: {len(content)} bytes do not hold an array of {shape}.")
    return np.frombuffer(content, kind, offset=start).reshape(shape).astype(kind.newbyteorder("="))


def read_mnist(folder: str | os.PathLike[str]) -> tuple[LabelledImages, LabelledImages]:
    """Read the training and test images of MNIST, or of a data set in the same four files (plain or .gz)."""

    def part(name: str) -> LabelledImages:
        images, labels = (
            read_idx(_idx_file(Path(folder), f"{name}-{what}")) for what in ("images-idx3", "labels-idx1")
        )
        if images.ndim != 3 or labels.ndim != 1 or {images.dtype, labels.dtype} != {np.dtype(np.uint8)}:
            raise DataError(
                f"{folder}: MNIST has images (n, h, w) and labels (n,) of bytes; got {name} images {images.shape} of "
                f"{images.dtype} and labels {labels.shape} of {labels.dtype}."
            )
        if not images.size:
            raise DataError(f"{folder}: the {name} images are empty.")
        classes = tuple(map(str, range(max(10, int(labels.max(initial=0)) + 1))))
        return LabelledImages(torch.from_numpy(images).unsqueeze(1), torch.from_numpy(labels).long(), classes)

    return part("train"), part("t10k")


def read_cifar10(folder: str | os.PathLike[str]) -> tuple[LabelledImages, LabelledImages]:
    """Read the training and test images of CIFAR-10.

    `folder` holds the binary version (unpacked, or as cifar-10-binary.tar.gz) or mosaics (see `read_mosaics`). The
    pickled files of the Python version are never opened.
    """
    folder = Path(folder)
    inner = folder / "cifar-10-batches-bin"
    unpacked = inner if inner.is_dir() else folder
    if (unpacked / "test_batch.bin").is_file():
        return _read_parts(lambda name: _cifar_binary(_read_bytes(unpacked / f"{name}.bin"), f"{unpacked / name}.bin"))
    archive = folder if folder.suffix == ".gz" else folder / "cifar-10-binary.tar.gz"
    if archive.is_file():
        return _cifar_archive(archive)
    if (folder / "test_batch.jpg").is_file():
        return read_mosaics(folder)
    raise DataError(
        f"{folder} does not hold CIFAR-10: it has neither test_batch.bin, nor cifar-10-binary.tar.gz, nor "
        "test_batch.jpg. Run `regard data get cifar10` to download the binary version."
    )


def read_mosaics(folder: str | os.PathLike[str], *, size: int = 32) -> tuple[LabelledImages, LabelledImages]:
    """Read images that are tiles of data_batch_*.jpg and test_batch.jpg; labels are in train_ and test_labels.npy."""
    folder = Path(folder)

    def part(files: list[Path], labels: Path) -> LabelledImages:
        if not files:
            raise DataError(f"{folder} holds no data_batch_*.jpg beside its test_batch.jpg.")
        images = np.concatenate([_tiles(file, size) for file in files])
        try:
            numbers = np.load(labels, allow_pickle=False)
        except Exception as error:  # NumPy raises nearly anything for a damaged file
            raise DataError(f"{labels} does not hold an array of labels: {error}.") from error
        if not isinstance(numbers, np.ndarray) or numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            raise DataError(f"{labels} must hold whole numbers, one for each image; got {str(numbers)[:80]!r}.")
        return LabelledImages(torch.from_numpy(images), torch.from_numpy(numbers.astype(np.int64)), CIFAR10_CLASSES)

    return (
        part(sorted(folder.glob("data_batch_*.jpg")), folder / "train_labels.npy"),
        part([folder / "test_batch.jpg"], folder / "test_labels.npy"),
    )


def read_class_folders(
    folder: str | os.PathLike[str], *, size: int, channels: int = 3, progress: bool = True
) -> LabelledImages:
    """Read images from one folder per class, named after it; each is resized and cropped to size x size pixels."""
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder.")
    classes = sorted(inner.name for inner in folder.iterdir() if inner.is_dir() and not inner.name.startswith("."))
    files = [(member.file, number) for number, name in enumerate(classes) for member in list_images(folder / name)]
    if not files:
        raise DataError(f"{folder} holds no images. Put the images of each class into a folder with its name.")
    square = Square(size)
    images = torch.empty(len(files), channels, size, size, dtype=torch.uint8)
    with progress_bar("reading", len(files), "images", enabled=progress) as advance:
        for image, (file, _) in zip(images, files, strict=True):
            image.copy_(torch.from_numpy(channels_first(square(open_image(file, channels=channels)))))
            advance(1)
    return LabelledImages(images, torch.tensor([number for _, number in files]), tuple(classes))


def _read_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return read_limited(stream, str(path))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error


def _idx_file(folder: Path, name: str) -> Path:
    for ending in ("ubyte", "ubyte.gz"):
        for join in ("-", "."):
            if (folder / f"{name}{join}{ending}").is_file():
                return folder / f"{name}{join}{ending}"
    raise DataError(f"{folder} lacks {name}-ubyte.gz, one of the four files of MNIST. Run `regard data get mnist`.")


def _read_parts(read: Callable[[str], tuple[np.ndarray, np.ndarray]]) -> tuple[LabelledImages, LabelledImages]:
    def part(names: list[str]) -> LabelledImages:
        images, labels = (np.concatenate(arrays) for arrays in zip(*map(read, names), strict=True))
        return LabelledImages(torch.from_numpy(images), torch.from_numpy(labels).long(), CIFAR10_CLASSES)

    return part([f"data_batch_{number}" for number in range(1, 6)]), part(["test_batch"])


def _cifar_binary(content: bytes, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Parse records of one label and 3 x 32 x 32 pixels, one byte each."""
    record = 1 + 3 * 32 * 32
    if not content or len(content) % record:
        raise DataError(
            f"{name} is not a binary file of CIFAR-10: {len(content)} bytes are not a multiple of {record}."
        )
    rows = np.frombuffer(content, np.uint8).reshape(-1, record)
    return rows[:, 1:].reshape(-1, 3, 32, 32).copy(), rows[:, 0].copy()


def _cifar_archive(archive: Path) -> tuple[LabelledImages, LabelledImages]:
    try:
        with tarfile.open(archive) as files:

            def read(name: str) -> tuple[np.ndarray, np.ndarray]:
                path = f"cifar-10-batches-bin/{name}.bin"
                member = files.getmember(path)
                stream = files.extractfile(member) if member.isfile() else None
                content = b"" if stream is None else read_limited(stream, f"{archive}/{path}")
                return _cifar_binary(content, f"{archive}/{path}")

            return _read_parts(read)
    except DataError:
        raise
    except Exception as error:  # tarfile raises nearly anything for a damaged archive
        raise DataError(f"{archive} is not the binary version of CIFAR-10: {error}.") from error


def _tiles(path: Path, size: int) -> UInt8[np.ndarray, "n 3 h w"]:
    mosaic = open_image(path)
    columns, rows = mosaic.width // size, mosaic.height // size
    if not rows or not columns or (mosaic.width % size or mosaic.height % size):
        raise DataError(
            f"{path} is {mosaic.width} x {mosaic.height} pixels, which is not a multiple of {size} x {size}."
        )
    tiles = np.asarray(mosaic).reshape(rows, size, columns, size, 3).transpose(0, 2, 4, 1, 3)
    return np.ascontiguousarray(tiles.reshape(rows * columns, 3, size, size))
