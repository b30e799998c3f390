"""Pictures with their classes, from the files in which they are published: IDX, CIFAR-10, mosaics, folders."""

import gzip
import hashlib
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

from regard.data.batches import BatchLoader, TokenBatches
from regard.data.image_archives import pictures_in
from regard.data.images import Square, channels_first, open_image
from regard.data.progress import progress_bar
from regard.errors import DataError, OptionError

CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_IDX_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """Pictures of one size, and the class of each."""

    images: UInt8[Tensor, "n c h w"]
    labels: Int[Tensor, "n"]
    classes: tuple[str, ...]
    """The names of the classes, by their number."""

    def __post_init__(self) -> None:
        if len(self.images) != len(self.labels):
            raise DataError(f"There are {len(self.images)} pictures and {len(self.labels)} labels.")
        if len(self.labels) and not 0 <= int(self.labels.min()) <= int(self.labels.max()) < len(self.classes):
            raise DataError(f"Labels are from 0 to {len(self.classes) - 1}; got one of {int(self.labels.max())}.")

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: slice | Tensor) -> "LabelledImages":
        return replace(self, images=self.images[index], labels=self.labels[index])

    def to(self, device: torch.device | str) -> "LabelledImages":
        """The pictures on a device."""
        return replace(self, images=self.images.to(device), labels=self.labels.to(device))

    def take(self, indices: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Some pictures and their labels, where they are: the collate_fn of a loader."""
        chosen = torch.tensor(indices).to(self.images.device, non_blocking=True)
        return self.images[chosen], self.labels[chosen]

    def held_out(self, count: int) -> tuple["LabelledImages", "LabelledImages"]:
        """Without and with `count` pictures that are held out: those whose pixels have the smallest SHA-256.

        So the split does not change with the order, and the same picture is never on both sides.
        """
        if count == 0:
            return self, self[:0]
        if not 0 < count < len(self):
            raise OptionError(f"Of {len(self)} pictures some can be held out, but not {count}.")
        digests = (hashlib.sha256(image.tobytes()).digest() for image in self.images.numpy())
        hashes = np.array([int.from_bytes(digest[:8]) for digest in digests], dtype=np.uint64)
        limit = np.sort(hashes)[count - 1]
        chosen = torch.from_numpy(hashes <= limit)
        if bool(chosen.all()):
            raise DataError(f"Nothing is left to train on: the {len(self)} pictures are the same again and again.")
        return self[~chosen], self[chosen]


def loader(pictures: LabelledImages, *, batch: int, shuffle: bool, seed: int = 0) -> BatchLoader:
    """Batches of images and labels, gathered where the pictures are; it knows where it stands, to go on from there."""
    # As if each were a pair of empty sentences, which take two tokens: then so many go into a batch, in any order.
    batches = TokenBatches(np.zeros((len(pictures), 2), np.int64), max_tokens=2 * batch, shuffle=shuffle, seed=seed)
    return BatchLoader(range(len(pictures)), batches, collate_fn=pictures.take)


def read_idx(path: str | os.PathLike[str]) -> Shaped[np.ndarray, "..."]:
    """The array in an IDX file (LeCun's format), plain or gzipped."""
    content = _bytes_of(Path(path))
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"{path} is damaged: {error}.") from error
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in _IDX_TYPES:
        raise DataError(f"{path} is not an IDX file: it begins with {content[:4].hex(' ')}.")
    kind, axes = np.dtype(_IDX_TYPES[content[2]]), content[3]
    start = 4 + 4 * axes
    shape = struct.unpack(f">{axes}I", content[4:start]) if len(content) >= start else ()
    if len(content) < start or len(content) - start != math.prod(shape) * kind.itemsize:
        raise DataError(f"{path} is cut off or too long: {shape} numbers are promised, {len(content)} bytes there.")
    return np.frombuffer(content, kind, offset=start).reshape(shape).astype(kind.newbyteorder("="))


def read_mnist(folder: str | os.PathLike[str]) -> tuple[LabelledImages, LabelledImages]:
    """Training and test pictures of MNIST, or of any data set in its four files (maybe with .gz)."""

    def part(name: str) -> LabelledImages:
        images, labels = (
            read_idx(_idx_file(Path(folder), f"{name}-{what}")) for what in ("images-idx3", "labels-idx1")
        )
        classes = tuple(map(str, range(max(10, int(labels.max()) + 1))))
        return LabelledImages(torch.from_numpy(images).unsqueeze(1), torch.from_numpy(labels).long(), classes)

    return part("train"), part("t10k")


def read_cifar10(folder: str | os.PathLike[str]) -> tuple[LabelledImages, LabelledImages]:
    """Training and test pictures of CIFAR-10: the binary files, in a folder or in cifar-10-binary.tar.gz, or mosaics.

    The pickled files of the Python version are never opened.
    """
    folder = Path(folder)
    inner = folder / "cifar-10-batches-bin"
    unpacked = inner if inner.is_dir() else folder
    if (unpacked / "test_batch.bin").is_file():
        return _parts(lambda name: _cifar_binary(_bytes_of(unpacked / f"{name}.bin"), f"{unpacked / name}.bin"))
    archive = folder if folder.suffix == ".gz" else folder / "cifar-10-binary.tar.gz"
    if archive.is_file():
        return _cifar_archive(archive)
    if (folder / "test_batch.jpg").is_file():
        return read_mosaics(folder)
    raise DataError(
        f"{folder} holds no CIFAR-10: neither test_batch.bin, nor cifar-10-binary.tar.gz, nor test_batch.jpg. "
        "`regard data get cifar10` fetches it (the binary version)."
    )


def read_mosaics(folder: str | os.PathLike[str], *, size: int = 32) -> tuple[LabelledImages, LabelledImages]:
    """Training and test pictures from data_batch_*.jpg and test_batch.jpg, each a square of tiles, and *_labels.npy."""
    folder = Path(folder)

    def part(files: list[Path], labels: Path) -> LabelledImages:
        if not files:
            raise DataError(f"{folder} holds no data_batch_*.jpg beside its test_batch.jpg.")
        images = np.concatenate([_tiles(file, size) for file in files])
        try:
            numbers = np.load(labels, allow_pickle=False)
        except (OSError, EOFError, ValueError) as error:
            raise DataError(f"{labels} is not a file of numbers: {error}.") from error
        return LabelledImages(torch.from_numpy(images), torch.from_numpy(numbers).long(), CIFAR10_CLASSES)

    return (
        part(sorted(folder.glob("data_batch_*.jpg")), folder / "train_labels.npy"),
        part([folder / "test_batch.jpg"], folder / "test_labels.npy"),
    )


def read_class_folders(
    folder: str | os.PathLike[str], *, size: int, channels: int = 3, progress: bool = True
) -> LabelledImages:
    """Pictures from one folder for each class, named after it; each is scaled and cut to size x size pixels."""
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder.")
    classes = sorted(place.name for place in folder.iterdir() if place.is_dir() and not place.name.startswith("."))
    files = [(member.file, number) for number, name in enumerate(classes) for member in pictures_in(folder / name)]
    if not files:
        raise DataError(f"{folder} holds no pictures. Put those of each class into a folder with its name.")
    square = Square(size)
    images = torch.empty(len(files), channels, size, size, dtype=torch.uint8)
    with progress_bar("reading", len(files), "pictures", shown=progress) as advance:
        for image, (file, _) in zip(images, files, strict=True):
            image.copy_(torch.from_numpy(channels_first(square(open_image(file, channels=channels)))))
            advance(1)
    return LabelledImages(images, torch.tensor([number for _, number in files]), tuple(classes))


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error


def _idx_file(folder: Path, name: str) -> Path:
    for ending in ("ubyte", "ubyte.gz"):
        for join in ("-", "."):
            if (folder / f"{name}{join}{ending}").is_file():
                return folder / f"{name}{join}{ending}"
    raise DataError(f"{folder} lacks {name}-ubyte.gz of the four files of MNIST. `regard data get mnist` fetches them.")


def _parts(read: Callable[[str], tuple[np.ndarray, np.ndarray]]) -> tuple[LabelledImages, LabelledImages]:
    def part(names: list[str]) -> LabelledImages:
        images, labels = (np.concatenate(arrays) for arrays in zip(*map(read, names), strict=True))
        return LabelledImages(torch.from_numpy(images), torch.from_numpy(labels).long(), CIFAR10_CLASSES)

    return part([f"data_batch_{number}" for number in range(1, 6)]), part(["test_batch"])


def _cifar_binary(content: bytes, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Records of a label and 3 x 32 x 32 pixels, a byte each."""
    record = 1 + 3 * 32 * 32
    if not content or len(content) % record:
        raise DataError(f"{name} is not a binary file of CIFAR-10: {len(content)} bytes are not records of {record}.")
    rows = np.frombuffer(content, np.uint8).reshape(-1, record)
    return rows[:, 1:].reshape(-1, 3, 32, 32).copy(), rows[:, 0].copy()


def _cifar_archive(archive: Path) -> tuple[LabelledImages, LabelledImages]:
    try:
        with tarfile.open(archive) as files:

            def read(name: str) -> tuple[np.ndarray, np.ndarray]:
                path = f"cifar-10-batches-bin/{name}.bin"
                member = files.extractfile(path)
                return _cifar_binary(b"" if member is None else member.read(), f"{archive}/{path}")

            return _parts(read)
    except (tarfile.TarError, KeyError, OSError, EOFError, zlib.error) as error:
        raise DataError(f"{archive} is not the binary version of CIFAR-10: {error}.") from error


def _tiles(path: Path, size: int) -> UInt8[np.ndarray, "n 3 h w"]:
    picture = open_image(path)
    columns, rows = picture.width // size, picture.height // size
    if not rows or not columns or (picture.width % size or picture.height % size):
        raise DataError(f"{path} is {picture.width} x {picture.height} pixels, which are no tiles of {size} x {size}.")
    tiles = np.asarray(picture).reshape(rows, size, columns, size, 3).transpose(0, 2, 4, 1, 3)
    return np.ascontiguousarray(tiles.reshape(rows * columns, 3, size, size))
