"""Small right files of many formats, as bytes."""

import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image


def lines(rows: Iterable[Any]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def saved(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    """The file of an image."""
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def image_bytes(kind: str, mode: str = "RGB", size: tuple[int, int] = (9, 7)) -> bytes:
    pixels = np.random.default_rng(1).integers(0, 255, (size[1], size[0], 3)).astype(np.uint8)
    grey = Image.fromarray(pixels).convert("L") if mode in ("I;16", "F") else Image.fromarray(pixels)
    return saved(grey.convert(mode), kind)


def tar(files: dict[str, bytes], mode: str = "w") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def zipped(files: dict[str, str | bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def npz(**arrays: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def write_mnist(folder: Path, **parts: tuple[np.ndarray, np.ndarray]) -> None:
    """Write the images and labels of train and t10k in the files of MNIST."""
    for part, arrays in parts.items():
        for array, name in zip(arrays, ("images-idx3", "labels-idx1"), strict=True):
            (folder / f"{part}-{name}-ubyte.gz").write_bytes(gzip.compress(idx(array), 1, mtime=0))


def idx(array: np.ndarray) -> bytes:
    head = bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4) for size in array.shape)
    return head + array.astype(np.uint8).tobytes()
