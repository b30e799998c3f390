"""Downloading public data sets once, verified, or taking their files from a folder."""

import fnmatch
import hashlib
import os
import shutil
import tarfile
import zipfile
from importlib import import_module
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from regard.data.progress import progress_bar
from regard.data.public.datasets import DATASETS, Dataset, File
from regard.data.text import reading
from regard.errors import DataError, OptionError
from regard.extras import require
from regard.files import replacing

SCHEMES = ("https",)
"""Schemes that downloads, and the addresses they are redirected to, may have."""
TIMEOUT = 30
"""Seconds to wait for a server to answer."""
_CHUNK = 2**16


def get(
    name: str, folder: str | os.PathLike[str] | None = None, *, source: str | os.PathLike[str] | None = None
) -> Path:
    """Return the folder with all files of a data set; download those that are missing, and verify them.

    Without `folder`, the files are kept in the user's cache. With `source`, a folder that already holds the files,
    nothing is downloaded: they are verified there, and copied if a `folder` is given.
    """
    if name not in DATASETS:
        raise OptionError(f"There is no data set {name!r}; known data sets are {', '.join(sorted(DATASETS))}.")
    dataset = DATASETS[name]
    if source is not None:
        folder = _take(dataset, Path(source), None if folder is None else Path(folder))
    elif dataset.by_hand:
        raise DataError(_instructions(dataset))
    else:
        folder = _download(dataset, None if folder is None else Path(folder))
    if dataset.prepare is not None:
        dataset.prepare(folder)
    return folder


def _instructions(dataset: Dataset) -> str:
    names = " and ".join(file.name for file in dataset.files)
    return (
        f"{dataset.name} cannot be downloaded automatically: {dataset.by_hand}. Download {names} ({dataset.size}) from "
        f"{dataset.page} into one folder, and run `regard data get {dataset.name} --from THAT_FOLDER`."
    )


def _take(dataset: Dataset, source: Path, folder: Path | None) -> Path:
    missing = [file.name for file in dataset.files if not (source / file.name).is_file()]
    if missing:
        where = f" The official page is {dataset.page}." if dataset.page else ""
        raise DataError(f"{source} lacks {', '.join(missing)}, part of the data set {dataset.name}.{where}")
    for file in dataset.files:
        _verify(source / file.name, file)
    if folder is None or folder.resolve() == source.resolve():
        return source
    for file in dataset.files:
        with replacing(folder / file.name) as draft:
            shutil.copyfile(source / file.name, draft)
    return folder


def _download(dataset: Dataset, folder: Path | None) -> Path:
    pooch = _pooch(dataset)
    folder = Path(pooch.os_cache("regard")) / dataset.name if folder is None else folder
    for number, file in enumerate(dataset.files, start=1):
        fetch = _Fetch(dataset, file, f"{file.name} ({number} of {len(dataset.files)})")
        try:
            pooch.retrieve(file.url, file.sha256 and f"sha256:{file.sha256}", file.name, folder, downloader=fetch)
        except DataError:
            raise
        except ValueError as error:  # pooch raises it for a wrong checksum
            raise DataError(
                f"{file.url} is not the file that was expected: its SHA-256 is not {file.sha256}. The publisher may "
                f"have replaced it, or the connection altered it. {_offline_advice(dataset)}"
            ) from error
        except OSError as error:
            raise DataError(f"{folder / file.name} cannot be written: {error}.") from error
        _verify(folder / file.name, file)
    return folder


class _Fetch:
    """Downloads one file for pooch, which keeps it under a temporary name until this returns without an error."""

    def __init__(self, dataset: Dataset, file: File, label: str) -> None:
        self._dataset, self._file, self._label = dataset, file, label

    def __call__(self, url: str, output: str, _: Any) -> None:
        requests = import_module("requests")
        try:
            # Some servers refuse clients that do not identify themselves.
            with requests.get(url, headers={"User-Agent": "regard"}, stream=True, timeout=TIMEOUT) as response:
                self._check(response)
                with Path(output).open("wb") as stream:
                    self._write(response, stream)
        except requests.HTTPError as error:
            answer = f"{error.response.status_code} {error.response.reason}"
            raise self._failure(f"the server answered {answer}") from None
        except requests.Timeout:
            raise self._failure(f"{urlsplit(url).hostname} does not answer") from None
        except requests.exceptions.SSLError:
            raise self._failure(f"no secure connection to {urlsplit(url).hostname} is possible") from None
        except requests.ConnectionError:
            reason = f"{urlsplit(url).hostname} cannot be reached. Is there a network connection?"
            raise self._failure(reason) from None
        except requests.RequestException as error:
            raise self._failure(f"the download failed ({type(error).__name__})") from None
        if self._file.sha256 is None:
            _verify(Path(output), self._file)

    def _check(self, response: Any) -> None:
        for answer in (*response.history, response):
            if urlsplit(answer.url).scheme not in SCHEMES:
                raise self._failure(f"it leads to {answer.url}, and only {', '.join(SCHEMES)} is allowed")
        response.raise_for_status()
        if response.headers.get("Content-Type", "").startswith("text/html"):
            raise self._failure("the server sent a web page instead of the file")

    def _write(self, response: Any, stream: IO[bytes]) -> None:
        stated = response.headers.get("Content-Length", "")
        encoded = "Content-Encoding" in response.headers
        total = int(stated) if stated.isdigit() and not encoded else None
        size = 0
        with progress_bar(self._label, total, "bytes") as advance:
            for chunk in response.iter_content(_CHUNK):
                size += len(chunk)
                if size > self._file.max_bytes:
                    raise self._failure(f"it is larger than {self._file.max_bytes:,} bytes, which is the limit")
                stream.write(chunk)
                advance(len(chunk))
        if total is not None and size != total:
            raise self._failure(f"the connection ended after {size:,} of {total:,} bytes")

    def _failure(self, reason: str) -> DataError:
        end = "" if reason.endswith("?") else "."
        return DataError(f"{self._file.url} could not be downloaded: {reason}{end} {_offline_advice(self._dataset)}")


def _offline_advice(dataset: Dataset) -> str:
    return (
        "You can also download the files on another computer, and then run "
        f"`regard data get {dataset.name} --from THEIR_FOLDER`."
    )


def _verify(path: Path, file: File) -> None:
    """Check the size of a file, its checksum if it is pinned, and otherwise its format."""
    if (size := path.stat().st_size) > file.max_bytes:
        raise DataError(f"{path} has {size:,} bytes, but {file.name} has at most {file.max_bytes:,}.")
    if file.sha256 is not None:
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        if found != file.sha256:
            raise DataError(
                f"{path} is not the published {file.name}: its SHA-256 is {found}, not {file.sha256}. Download it "
                "again."
            )
    elif file.member is not None and not any(fnmatch.fnmatch(name, file.member) for name in _members(path, file)):
        raise DataError(f"{path} is not the published {file.name}: it holds no {file.member}. Download it again.")


def _members(path: Path, file: File) -> list[str]:
    with reading(path, f"is not the published {file.name}: it cannot be opened as an archive"):
        if file.name.endswith(".zip"):
            with zipfile.ZipFile(path) as archive:
                return archive.namelist()
        with tarfile.open(path) as tar:
            return tar.getnames()


def _pooch(dataset: Dataset) -> Any:
    instead = f"If you have the files, run `regard data get {dataset.name} --from THEIR_FOLDER`."
    pooch = require(f"Downloading {dataset.name}", "pooch", instead=instead)
    pooch.get_logger().setLevel("WARNING")
    return pooch
