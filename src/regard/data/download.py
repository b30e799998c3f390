"""Public corpora by name: where they lie, under which licence, and fetching them once."""

import hashlib
import os
import shutil
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from regard.errors import DataError, OptionError


@dataclass(frozen=True)
class File:
    """One file to fetch; `sha256` is None where the publisher replaces the file from time to time."""

    name: str
    url: str
    sha256: str | None = None


@dataclass(frozen=True)
class Dataset:
    """A public corpus: its files, what they may be used for, whom to cite, and how to read them."""

    files: tuple[File, ...]
    licence: str
    citation: str
    reading: str
    """An expression of regard.data.text, or with a module of regard.data, and with `folder` for what `get` returned."""


_MULTI30K = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"
_MULTI30K_SHA256 = {
    "test_2016_flickr.cs.gz": "200a4a74cc9560f051924abb9803be008d1908d77f747e9141aeb86dfd2797f1",
    "test_2016_flickr.de.gz": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
    "test_2016_flickr.en.gz": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
    "test_2016_flickr.fr.gz": "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90",
    "train.cs.gz": "a65adb8b32e3bc664f21ecba7a6e7f6950fd1f405e135f7c312faabdb6255077",
    "train.de.gz": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
    "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    "train.fr.gz": "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c",
    "val.cs.gz": "b63226e05c4bd5dd6a42897d74b86a1b9d2c31498252c572b1ea7f7996927fcc",
    "val.de.gz": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
    "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    "val.fr.gz": "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9",
}


def _tatoeba(language: str, code: str) -> Dataset:
    return Dataset(
        files=(File(f"{code}-eng.zip", f"https://www.manythings.org/anki/{code}-eng.zip"),),
        licence="CC BY 2.0 France; attribution: www.manythings.org/anki and tatoeba.org",
        citation=f"English-{language} sentence pairs of the Tatoeba project, selected by manythings.org/anki",
        reading=f'read_tsv(folder / "{code}-eng.zip")  # English sentences repeat: split by them, not by line',
    )


_MNIST = "https://storage.googleapis.com/cvdf-datasets/mnist"
_MNIST_SHA256 = {
    "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}

DATASETS: dict[str, Dataset] = {
    "cifar10": Dataset(
        files=(
            File(
                "cifar-10-binary.tar.gz",
                "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            ),
        ),
        licence="None stated; pictures from the web, for research",
        citation="Krizhevsky 2009, Learning Multiple Layers of Features from Tiny Images",
        reading="labelled_images.read_cifar10(folder)",
    ),
    "mnist": Dataset(
        files=tuple(File(name, f"{_MNIST}/{name}", sha256) for name, sha256 in _MNIST_SHA256.items()),
        licence="Commonly given as CC BY-SA 3.0",
        citation="LeCun, Bottou, Bengio and Haffner 1998, Gradient-Based Learning Applied to Document Recognition",
        reading="labelled_images.read_mnist(folder)",
    ),
    "multi30k": Dataset(
        files=tuple(File(name, f"{_MULTI30K}/{name}", sha256) for name, sha256 in _MULTI30K_SHA256.items()),
        licence="The repository states none; image captions for research. Ask the authors before other use",
        citation="Elliott et al. 2016, Multi30K: Multilingual English-German Image Descriptions; "
        "French: Elliott et al. 2017; Czech: Barrault et al. 2018",
        reading='read_pairs(folder / "train.en.gz", folder / "train.fr.gz")  # or val, test_2016_flickr; de, cs',
    ),
    "tatoeba-deu": _tatoeba("German", "deu"),
    "tatoeba-fra": _tatoeba("French", "fra"),
}


def get(
    name: str, folder: str | os.PathLike[str] | None = None, *, source: str | os.PathLike[str] | None = None
) -> Path:
    """The folder with all files of a dataset, fetched where they are not there yet, and checked.

    Without `folder`, it is in the cache of this user. With `source`, a folder that holds the files already, nothing is
    downloaded: they are checked there, and copied if a `folder` is given.
    """
    if name not in DATASETS:
        raise OptionError(f"There is no dataset {name!r}; there are {', '.join(sorted(DATASETS))}.")
    files = DATASETS[name].files
    if source is not None:
        return _take(name, files, Path(source), None if folder is None else Path(folder))
    pooch = _pooch(name)
    folder = Path(pooch.os_cache("regard")) / name if folder is None else Path(folder)
    for number, file in enumerate(files, start=1):
        _fetch(pooch, file, folder, f"{file.name} ({number} of {len(files)})")
    return folder


def _take(name: str, files: tuple[File, ...], source: Path, folder: Path | None) -> Path:
    missing = [file.name for file in files if not (source / file.name).is_file()]
    if missing:
        raise DataError(f"{source} lacks {', '.join(missing)} of the {len(files)} file(s) of {name}.")
    for file in files:
        _check(source / file.name, file)
    if folder is None or folder.resolve() == source.resolve():
        return source
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        draft = folder / f"{file.name}.tmp"
        shutil.copyfile(source / file.name, draft)
        draft.replace(folder / file.name)
    return folder


def _check(path: Path, file: File) -> None:
    if file.sha256 is None:
        return
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != file.sha256:
        raise DataError(
            f"{path} is not the {file.name} that {file.url} holds: its SHA-256 is {found}, not {file.sha256}. "
            "Fetch it again."
        )


def _pooch(name: str) -> Any:
    try:
        return import_module("pooch")
    except ImportError:
        raise OptionError(
            f"Downloading {name} needs the package pooch: pip install pooch. If you have the files, give their folder "
            "as source=."
        ) from None


def _fetch(pooch: Any, file: File, folder: Path, label: str) -> None:
    # Some servers turn away programs that do not say who they are.
    downloader = pooch.HTTPDownloader(progressbar=_Bar(label), chunk_size=2**16, headers={"User-Agent": "regard"})
    try:
        pooch.retrieve(file.url, file.sha256 and f"sha256:{file.sha256}", file.name, folder, downloader=downloader)
    except (OSError, ValueError) as error:  # the errors of requests are OSErrors; a wrong checksum is a ValueError
        raise DataError(
            f"{file.url} could not be fetched into {folder}: {error} If there is no network here, fetch the files "
            "elsewhere and give their folder as source=."
        ) from error


class _Bar:
    """The bar that pooch moves: it sets `total`, then calls the methods."""

    def __init__(self, label: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

        columns = (TextColumn(label), BarColumn(), DownloadColumn(), TransferSpeedColumn())
        self.total = 0
        self._bar = Progress(*columns, console=Console(stderr=True))
        self._task = self._bar.add_task(label)

    def update(self, size: int) -> None:
        self._bar.start()
        self._bar.update(self._task, advance=size, total=self.total or None)

    def reset(self) -> None:
        self._bar.update(self._task, completed=0)

    def close(self) -> None:
        self._bar.stop()
