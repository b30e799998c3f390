"""Files that are never seen half-written, checksums, and locks.

A file is written under a temporary name in the folder where it belongs, flushed, and renamed.
"""

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from regard.errors import DataError

StrPath = str | os.PathLike[str]
DRAFT = ".tmp"
"""How the name of a file ends that is being written."""


@contextmanager
def replacing(path: StrPath) -> Iterator[Path]:
    """Give a temporary path in the same folder; when the block ends, what was written there takes the place of `path`.

    After an exception the temporary file is removed and an earlier file at `path` is left as it was. The file gets the
    permissions that the umask asks for, and missing parent folders are created. A device or a pipe, such as
    /dev/stdout, is written to as it is.
    """
    path = Path(path)
    if path.is_dir():
        raise DataError(f"{path} is a folder. Give the name of a file.")
    if path.exists() and not path.is_file():
        yield path
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name[:40]}.", suffix=DRAFT, dir=path.parent)
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
        _flush(draft)
        draft.chmod(0o666 & ~_umask())
        draft.replace(path)
        _flush(path.parent)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def replacing_folder(path: StrPath, *, refuse: Callable[[Path], str]) -> Iterator[Path]:
    """Give a temporary folder; when the block ends, it takes the place of `path`.

    `refuse` is asked about an existing folder that is not empty, and says why it must not be replaced, or "" if it may.
    """
    path = Path(path)
    check_replaceable(path, refuse=refuse)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{path.name[:40]}.", suffix=DRAFT, dir=path.parent))
    try:
        yield draft
        for file in draft.rglob("*"):
            if file.is_file():
                _flush(file)
                file.chmod(0o666 & ~_umask())
        draft.chmod(0o777 & ~_umask())
        check_replaceable(path, refuse=refuse)
        if path.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{path.name[:40]}.", suffix=".old", dir=path.parent))
            path.replace(old)
            try:
                draft.replace(path)
            except BaseException:
                old.replace(path)
                raise
            shutil.rmtree(old)
        else:
            draft.replace(path)
        _flush(path.parent)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def check_replaceable(path: StrPath, *, refuse: Callable[[Path], str]) -> None:
    """Raise a DataError where `path` is a file, or a folder that `refuse` gives a reason not to replace."""
    path = Path(path)
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        raise DataError(f"{path} is not a folder, and regard replaces only folders that it wrote. Choose another name.")
    if path.is_dir() and any(path.iterdir()) and (reason := refuse(path)):
        raise DataError(f"{path} is not replaced, because {reason}. Choose another folder, or move that one away.")


def write_text(path: StrPath, text: str) -> Path:
    """Write a text file as UTF-8, whole or not at all."""
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")
    return Path(path)


def write_bytes(path: StrPath, content: bytes) -> Path:
    """Write a binary file, whole or not at all."""
    with replacing(path) as draft:
        draft.write_bytes(content)
    return Path(path)


def remove_drafts(folder: StrPath, names: Sequence[str] = ("*",)) -> None:
    """Remove what a killed process left half-written in a folder, of files and folders with these names.

    Nothing else may be writing there.
    """
    for name in names:
        for draft in Path(folder).glob(f".{name}.*{DRAFT}"):
            if draft.is_dir():
                shutil.rmtree(draft)
            else:
                draft.unlink()


def checksum(path: StrPath) -> str:
    """The SHA-256 of a file, or of the names and contents of all files below a folder."""
    path = Path(path)
    if path.is_dir():
        total = hashlib.sha256()
        for file in sorted(each for each in path.rglob("*") if each.is_file()):
            total.update(f"{checksum(file)} {file.relative_to(path).as_posix()}\n".encode())
        return total.hexdigest()
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextmanager
def locked(path: StrPath, *, wait: str = "", refuse: str = "") -> Iterator[None]:
    """Hold a lock file while the block runs; the kernel releases it when the process ends, however it ends.

    Where another process holds it, raise a DataError with the message `refuse`; or, with `wait`, write that message to
    stderr and wait.
    """
    from filelock import FileLock, Timeout

    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        if not wait:
            raise DataError(refuse) from error
        sys.stderr.write(f"{wait}\n")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def building(folder: StrPath) -> Iterator[None]:
    """Build the contents of a folder while the block runs; another process that is about to do so waits."""
    folder = Path(folder)
    with locked(folder.parent / f".{folder.name}.lock", wait=f"Another process builds {folder}; waiting for it."):
        yield


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    """The umask, read from the process's status where that exists: setting it, to read it, is not thread-safe."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(next(line.split()[1] for line in status.splitlines() if line.startswith("Umask:")), 8)
    except (OSError, StopIteration):
        current = os.umask(0)
        os.umask(current)
        return current
