"""Ways in which what users give can be wrong: each takes a right file, or folder, and damages it."""

import gzip
import io
import json
import lzma
import shutil
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image
from safetensors.numpy import save_file

from helpers.files import image_bytes, saved, zipped

REFUSED, READ = 2, 0
MAX_LINE, MAX_FILE = 2**16, 2**18
"""Limits of lines and files in these tests, so that what is too large is written fast."""


@dataclass(frozen=True)
class Damage:
    """A way to be wrong, and how a command that is given it ends."""

    apply: Callable[[Path], Path | None]
    """Damages what stands at a path; gives the path to use instead where that is another."""
    ends: tuple[int, ...] = (REFUSED,)
    """The exit statuses that are right."""
    is_content: bool = False
    """Whether a pipe can be wrong in this way too."""


def content(make: Callable[[bytes], bytes], *ends: int) -> Damage:
    """Damage to the bytes of a file."""

    def apply(path: Path) -> None:
        path.write_bytes(make(path.read_bytes()))

    return Damage(apply, ends or (REFUSED,), is_content=True)


def written(given: bytes, *ends: int) -> Damage:
    """Another content."""
    return content(lambda _: given, *ends)


def moved(apply: Callable[[Path], Path | None], *ends: int) -> Damage:
    """Damage to the file itself."""
    return Damage(apply, ends or (REFUSED,))


def _missing(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def _is_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _loop(path: Path) -> None:
    _missing(path)
    path.symlink_to(path.name)


def _below_file(path: Path) -> Path:
    if path.is_dir():
        path = path / next(iter(sorted(path.iterdir())))
    return path / "below"


def _renamed(suffix: str, make: Callable[[bytes], bytes]) -> Callable[[Path], Path]:
    def apply(path: Path) -> Path:
        other = path.with_name(path.name + suffix)
        other.write_bytes(make(path.read_bytes()))
        return other

    return apply


def _without_directory(data: bytes) -> bytes:
    return zipped({"a.txt": data})[:-30]


PLACE = {
    "missing": moved(_missing),
    "a loop of links": moved(_loop),
    "below a file": moved(_below_file),
    "a name too long": moved(lambda path: path.with_name("x" * 300)),
    "a name with a line end": moved(lambda path: path.with_name("x\ny")),
}
"""Nothing is there, for files and folders alike."""
FILE = PLACE | {"a folder": moved(_is_folder)}
BINARY = {
    "empty": written(b""),
    "NUL": written(b"\0" * 50),
    "binary": written(bytes(range(256)) * 9),
    "gzip under another name": content(lambda data: gzip.compress(data, mtime=0)),
}
"""No text of any format."""
ENCODED = {
    "Latin-1": content(lambda data: "é à\n".encode("latin-1") + data),
    "Latin-1 in a later line": content(lambda data: data + b"caf\xe9\n"),
    "UTF-16": content(lambda data: data.decode().encode("utf-16")),
    "UTF-32": content(lambda data: data.decode().encode("utf-32")),
    "surrogates": content(lambda data: data + b"\xed\xa0\x80 \xed\xb0\x80\n"),
    "overlong": content(lambda data: b"\xc0\x80" + data),
}
"""Text in other encodings."""
COMPRESSED = {
    "a cut gzip": moved(_renamed(".gz", lambda data: gzip.compress(data)[:-9])),
    "no gzip": moved(_renamed(".gz", lambda data: data)),
    "a damaged gzip": moved(_renamed(".gz", lambda data: gzip.compress(data)[:12] + b"\xff" * 20)),
    "a gzip bomb": moved(_renamed(".gz", lambda _: gzip.compress(b"a" * 2 * MAX_FILE))),
    "an xz bomb": moved(_renamed(".xz", lambda _: lzma.compress(b"a" * 2 * MAX_FILE))),
    "a cut xz": moved(_renamed(".xz", lambda data: lzma.compress(data)[:-9])),
    "a zip without its directory": moved(_renamed(".zip", _without_directory)),
    "an empty zip": moved(_renamed(".zip", lambda _: zipped({}))),
    "a zip of two texts": moved(_renamed(".zip", lambda data: zipped({"a": data, "b": data}))),
    "a zip that leads outside": moved(_renamed(".zip", lambda data: zipped({"../../a.txt": data})), READ),
    "a zip bomb": moved(_renamed(".zip", lambda _: zipped({"a.txt": b"a" * 2 * MAX_FILE}))),
}
"""Compressed texts; names in a zip archive lead nowhere, since nothing is unpacked."""
WINDOWS = {
    "BOM": content(lambda data: b"\xef\xbb\xbf" + data, READ),
    "CRLF": content(lambda data: data.replace(b"\n", b"\r\n"), READ),
    "no line end": content(lambda data: data.rstrip(b"\n"), READ),
}
"""What other editors write, which means the same."""
TEXT = (
    FILE
    | ENCODED
    | COMPRESSED
    | WINDOWS
    | {
        **{name: damage for name, damage in BINARY.items() if name != "empty"},
        "empty": written(b"", READ, REFUSED),
        "only line ends": written(b"\n\n\n", READ, REFUSED),
        "a huge line": written(b"a " * MAX_LINE),
        "control characters": content(lambda data: b"\x1b[31m\x07 \x7f\n" + data, READ, REFUSED),
        "other scripts": content(lambda data: "ﷺ 😀 漢字 \u202e a\u0301\n".encode() + data, READ, REFUSED),
    }
)
"""Lines of text. An empty file is no mistake of a command that answers line by line."""
PARALLEL = TEXT | {"a line more": content(lambda data: data + b"a\n"), "empty": written(b"")}
"""Lines that belong to those of another file."""
JSON = (
    FILE
    | BINARY
    | ENCODED
    | {
        "no JSON": written(b"hello\n"),
        "cut": content(lambda data: data[: 2 * len(data) // 3]),
        "a number": written(b"3"),
        "null": written(b"null"),
        "a list": written(b"[]"),
        "an object": written(b"{}"),
        "deep": written(b"[" * 50_000),
        "deep objects": written(b'{"a":' * 50_000),
        "a huge number": written(b"9" * 6000),
        "NaN": written(b'{"version": NaN, "images": NaN, "src": NaN, "text": NaN}'),
        "other types": content(lambda data: json.dumps(_retyped(json.loads(data.split(b"\n")[0]))).encode()),
        "BOM": content(lambda data: b"\xef\xbb\xbf" + data, READ),
        "a huge file": moved(_renamed(".gz", lambda data: gzip.compress(b" " * 2 * MAX_FILE + data))),
    }
)
"""JSON, or a JSON object in each line."""
TABLE = FILE | ENCODED | BINARY | {"prose": written(b"Once upon a time.\nThe end.\n"), "one column": written(b"a\nb\n")}
"""Comma- or tab-separated columns."""
RECIPE = (
    FILE
    | ENCODED
    | {
        "binary": BINARY["binary"],
        "NUL": BINARY["NUL"],
        "no TOML": written(b"[model\n"),
        "unknown table": written(b"[modl]\n"),
        "unknown field": written(b"[model]\nx = 1\n"),
        "other types": written(b'[train]\nepochs = "many"\n'),
        "NaN": written(b"[train]\nlearning_rate = nan\n"),
        "a huge number": written(b"[model]\nhidden = 9" + b"9" * 40 + b"\n"),
        "a huge model": written(b"[model]\nhidden = 1000000000000\n"),
        "a date": written(b"[train]\nepochs = 1979-05-27\n"),
        "another system": written(b'system = "toaster"\n'),
        "no such code": written(b'[model]\nscore = "no_such_module:Score"\n'),
        "deep": written(b"a = " + b"[" * 5000),
    }
)


def _retyped(value: object) -> object:
    """JSON of the same keys, with lists for objects and numbers for texts below."""
    return {key: 7 if isinstance(each, str | list) else [each] for key, each in value.items()} if value else value


def _png(width: int, height: int, color: int = 2) -> bytes:
    """The header of a PNG of any size, without its pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")


def _animation() -> bytes:
    frames = [Image.new("L", (9, 7), 80 * n) for n in range(3)]
    return saved(frames[0], "GIF", save_all=True, append_images=frames[1:])


IMAGE = (
    FILE
    | {name: damage for name, damage in BINARY.items() if not name.startswith("gzip")}
    | {
        "text": written(b"hello\n"),
        "SVG": written(b"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>"),
        "PDF": written(b"%PDF-1.4\n%%EOF\n"),
        "a cut PNG": content(lambda data: data[: len(data) // 2]),
        "a cut JPEG": written(image_bytes("JPEG", size=(64, 64))[:500]),
        "a PNG without pixels": written(_png(9, 9)),
        "a bomb": written(_png(100_000, 100_000)),
        "no width": written(_png(0, 9)),
        "damaged": content(lambda data: data[:60] + b"\xff" * 40 + data[100:]),
        "one pixel": written(image_bytes("PNG", size=(1, 1)), READ),
        "a line": written(image_bytes("PNG", size=(300, 1)), READ),
        "a column": written(image_bytes("PNG", size=(1, 300)), READ),
        "an animation": written(_animation(), READ),
        "transparent": written(saved(Image.new("RGBA", (9, 9), (0, 0, 0, 0))), READ),
        "NaN": written(saved(Image.fromarray(np.full((9, 9), np.nan, np.float32)), "TIFF"), READ),
        **{
            f"{kind} {mode}": written(image_bytes(kind, mode), READ)
            for kind, mode in (
                *(("PNG", "L"), ("PNG", "P"), ("PNG", "1"), ("PNG", "I;16"), ("JPEG", "CMYK"), ("BMP", "RGB")),
                *(("TIFF", "F"), ("WEBP", "RGBA"), ("PPM", "RGB")),
            )
        },
    }
)
"""An image; every kind that Pillow reads is read, whatever its name."""


def _unpacked_bomb(data: bytes) -> bytes:
    """A zip archive whose member states another size than it expands to."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.png", b"\0" * 1_000_000)
    return stream.getvalue().replace((1_000_000).to_bytes(4, "little"), (10).to_bytes(4, "little"))


IMAGES = PLACE | {
    "a text": written(b"hello\n"),
    "cut": content(lambda data: data[: len(data) // 2]),
    "NUL": written(b"\0" * 2000),
    "without images": written(zipped({"a.txt": b"a"})),
    "a bomb": content(_unpacked_bomb),
    "names that lead outside": content(lambda _: zipped({"../../a.png": image_bytes("PNG")}), READ, REFUSED),
}
"""An archive of images."""


def _edit(change: Callable[[dict[str, object]], object]) -> Damage:
    def apply(folder: Path) -> None:
        stored = json.loads((folder / "config.json").read_text())
        change(stored)
        (folder / "config.json").write_text(json.dumps(stored))

    return moved(apply)


def _part(name: str, make: Callable[[bytes], bytes] | None) -> Damage:
    def apply(folder: Path) -> None:
        path = folder / name
        if make is None:
            path.unlink()
        else:
            path.write_bytes(make(path.read_bytes()))

    return moved(apply)


def _empty_folder(path: Path) -> None:
    shutil.rmtree(path)
    path.mkdir()


def _other_tensors(folder: Path) -> None:
    save_file({"x": np.zeros(3, np.float32)}, folder / "model.safetensors")
    _edit(lambda config: config.pop("sha256")).apply(folder)


MODEL = PLACE | {
    "empty": moved(_empty_folder),
    "no config": _part("config.json", None),
    "a cut config": _part("config.json", lambda data: data[:50]),
    "a deep config": _part("config.json", lambda _: b"[" * 50_000),
    "another system": _edit(lambda config: config.update(system="toaster")),
    "unknown field": _edit(lambda config: config["config"].update(x=1)),
    "no config table": _edit(lambda config: config.update(config=7)),
    "no parameters": _part("model.safetensors", None),
    "cut parameters": _part("model.safetensors", lambda data: data[:-50]),
    "flipped bits": _part("model.safetensors", lambda data: data[:-50] + bytes(byte ^ 1 for byte in data[-50:])),
    "a huge header": _part("model.safetensors", lambda data: b"\xff" * 8 + data[8:]),
    "other parameters": moved(_other_tensors),
    "a pickle": _part("model.safetensors", lambda _: b"\x80\x04cos\nsystem\n(S'true'\ntR."),
    "a file": moved(lambda folder: folder / "config.json"),
    "a newer version": moved(lambda f: _edit(lambda config: config.update(version="99.0")).apply(f), READ),
}
"""A model folder."""


def _parent_is_file(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("mine")
    return path / path.name


def _already_folder(path: Path) -> None:
    path.mkdir(parents=True)
    (path / "mine.txt").write_text("mine")


OUTPUT = {
    "below a file": moved(_parent_is_file),
    "a folder": moved(_already_folder),
    "a name too long": moved(lambda path: path.with_name("x" * 300 + path.suffix)),
}
"""A file to write."""
FOLDER = {name: damage for name, damage in OUTPUT.items() if name != "a folder"} | {
    "a file": moved(lambda path: path.write_text("mine") and None)
}
"""A folder to write to."""
