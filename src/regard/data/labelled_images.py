"""Images with class labels, read from IDX files, CIFAR-10 or one folder per class."""

import hashlib
import math
import os
import struct
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from regard.data.batches import BatchLoader, CostBatches, Movable
from regard.data.images import Square, channels_first, list_images, open_image
from regard.data.progress import progress_bar
from regard.data.text import read_all, read_limited, reading
from regard.errors import DataError, OptionError

CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


@dataclass(frozen=True, eq=False)
class LabelledImages(Movable):
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


def read_idx(path: str | os.PathLike[str]) -> UInt8[np.ndarray, "..."]:
    """Read the bytes in an IDX file of MNIST, plain or .gz: images (n, h, w) or labels (n,)."""
    content = read_all(path)
    if content[:3] != b"\0\0\x08" or content[3:4] not in (b"\1", b"\3"):
        raise DataError(f"{path} is not an IDX file of images or labels: it begins with {content[:4].hex(' ')}.")
    start = 4 + 4 * content[3]
    shape = struct.unpack(f">{content[3]}I", content[4:start]) if len(content) >= start else ()
    if len(content) < start or len(content) - start != math.prod(shape):
        raise DataError(f"{path} is truncated or too long: {len(content)} bytes do not hold an array of {shape}.")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape).copy()


def read_mnist(folder: str | os.PathLike[str]) -> tuple[LabelledImages, LabelledImages]:
    """Read the training and test images of MNIST, or of a data set in the same four files (plain or .gz)."""

    def part(name: str) -> LabelledImages:
        images, labels = (
            read_idx(_idx_file(Path(folder), f"{name}-{what}")) for what in ("images-idx3", "labels-idx1")
        )
        if images.ndim != 3 or labels.ndim != 1:
            raise DataError(
                f"{folder}: MNIST has images (n, h, w) and labels (n,); got {name} images {images.shape} and labels "
                f"{labels.shape}."
            )
        if not images.size:
            raise DataError(f"{folder}: the {name} images are empty.")
        classes = tuple(map(str, range(max(10, int(labels.max(initial=0)) + 1))))
        return LabelledImages(torch.from_numpy(images).unsqueeze(1), torch.from_numpy(labels).long(), classes)

    return part("train"), part("t10k")


def read_cifar10(folder: str | os.PathLike[str]) -> tuple[LabelledImages, LabelledImages]:
    """Read the training and test images of CIFAR-10.

    `folder` holds the binary version, unpacked or as cifar-10-binary.tar.gz. Pickles of the Python version are never
    opened.
    """
    folder = Path(folder)
    inner = folder / "cifar-10-batches-bin"
    unpacked = inner if inner.is_dir() else folder
    if (unpacked / "test_batch.bin").is_file():
        return _read_parts(lambda name: _cifar_binary(read_all(unpacked / f"{name}.bin"), f"{unpacked / name}.bin"))
    archive = folder if folder.suffix == ".gz" else folder / "cifar-10-binary.tar.gz"
    if archive.is_file():
        return _cifar_archive(archive)
    raise DataError(
        f"{folder} does not hold CIFAR-10: it has neither test_batch.bin nor "
        "cifar-10-binary.tar.gz. Run `regard data get cifar10` to download the binary version."
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
    with reading(archive, "is not the binary version of CIFAR-10"), tarfile.open(archive) as files:

        def read(name: str) -> tuple[np.ndarray, np.ndarray]:
            path = f"cifar-10-batches-bin/{name}.bin"
            member = files.getmember(path)
            stream = files.extractfile(member) if member.isfile() else None
            content = b"" if stream is None else read_limited(stream, f"{archive}/{path}")
            return _cifar_binary(content, f"{archive}/{path}")

        return _read_parts(read)
