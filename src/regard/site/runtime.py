"""onnxruntime-web, which runs graphs in a browser: from npm, once, into a cache of the user."""

import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from regard.errors import OptionError
from regard.files import replacing_folder

VERSION = "1.30.0"
FILES = {
    "ort.wasm.min.js": "faece07e84faa9001f5104bbe4e5c70861d06cb2376a0dea1fa0ad33a67adc81",
    "ort-wasm-simd-threaded.mjs": "e13f7f94fc51b4ca72b12faeb1ee95f4ace6dfbc8939bc718aabdc0a27c4299b",
    "ort-wasm-simd-threaded.wasm": "3398c10d07d229bd91b364548e130e0e51a8e5704b88c7c083ebbeb78842dee2",
}
"""The files of its folder `dist` that a page needs, with their SHA-256."""


def runtime_folder(given: str = "") -> Path:
    """The folder with the files: the given one, that of the cache, or a new download by npm."""
    if given:
        return _checked(Path(given))
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "regard" / f"onnxruntime-web-{VERSION}"
    if not cache.is_dir():
        _download(cache)
    return _checked(cache)


def _download(cache: Path) -> None:
    package, npm = f"onnxruntime-web@{VERSION}", shutil.which("npm")
    instead = f"Install npm, or unpack {package} and name its folder: --runtime FOLDER/dist."
    if npm is None:
        raise OptionError(f"The runtime of the browser comes from npm, which is not installed. {instead}")
    cache.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache.parent) as place:
        done = subprocess.run(  # noqa: S603 - nothing of it comes from outside
            [npm, "pack", package, "--silent", "--pack-destination", place], capture_output=True, text=True, check=False
        )
        packed = next(Path(place).glob("*.tgz"), None)
        if done.returncode or packed is None:
            raise OptionError(f"npm could not download {package}: {done.stderr.strip()[-300:]} {instead}")
        with replacing_folder(cache, refuse=lambda path: "it is not empty") as draft, tarfile.open(packed) as archive:
            for name in FILES:
                member = archive.extractfile(f"package/dist/{name}")
                if member is None:
                    raise OptionError(f"{package} has no file {name}.")
                (draft / name).write_bytes(member.read())


def _checked(folder: Path) -> Path:
    """The folder, if it holds these very files."""
    for name, expected in FILES.items():
        path = folder / name
        if not path.is_file():
            raise OptionError(f"{folder} holds no {name}: name the folder dist of onnxruntime-web {VERSION}.")
        if hashlib.sha256(path.read_bytes()).hexdigest() != expected:
            raise OptionError(f"{path} is not that of onnxruntime-web {VERSION}. Remove it, and run the command again.")
    return folder
