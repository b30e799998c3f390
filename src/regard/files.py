"""Files that are never seen half-written, checksums, and locks.

A file is written under a temporary name in the folder where it belongs, flushed, and renamed. What a killed process
left half-written is removed when the same file is written again.
"""

import errno
import hashlib
import itertools
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from regard.errors import DataError, OutputError

try:
    import fcntl
except ImportError:  # Windows: drafts of killed processes stay there
    fcntl = None  # type: ignore[assignment]

StrPath = str | os.PathLike[str]
DRAFT = ".regard-draft"
"""How the name of a file or folder ends that is being written."""
EARLIER_DRAFT = ".tmp"
"""How it ended before; runs that were killed then may still hold such drafts."""
_RANDOM = "[a-z0-9_]" * 8
"""What `tempfile` puts between the beginning and the end of a name, as a pattern."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The errors of a disk that is full, of a quota and of a limit."""


@contextmanager
def replacing(path: StrPath) -> Iterator[Path]:
    """Give a temporary path in the same folder; when the block ends, what was written there takes the place of `path`.

    After an exception the temporary file is removed and an earlier file at `path` is left as it was. The file gets the
    permissions that the umask asks for, and missing parent folders are created. A device or a pipe, such as
    /dev/stdout, is written to as it is.
    """
    path = Path(path)
    with _naming(path, path):
        if path.is_dir():
            raise DataError(f"{path} is a folder. Give the name of a file.")
        is_device = path.exists() and not path.is_file()
    if is_device:
        with _naming(path, path):
            yield path
        return
    with _naming(path, path):
        _make_parent(path)
        handle, name = tempfile.mkstemp(prefix=_prefix(path), suffix=DRAFT, dir=path.parent)
    draft = Path(name)
    try:
        _lock(handle)
        with _naming(path, draft):
            yield draft
            _flush(draft)
            draft.chmod(0o666 & ~_umask())
            draft.replace(path)
            _flush(path.parent)
    finally:
        draft.unlink(missing_ok=True)
        os.close(handle)


@contextmanager
def replacing_folder(path: StrPath, *, refuse: Callable[[Path], str]) -> Iterator[Path]:
    """Give a temporary folder; when the block ends, it takes the place of `path`.

    `refuse` is asked about an existing folder that is not empty, and says why it must not be replaced, or "" if it may.
    """
    path = Path(path)
    check_replaceable(path, refuse=refuse)
    with _naming(path, path):
        _make_parent(path)
        draft = Path(tempfile.mkdtemp(prefix=_prefix(path), suffix=DRAFT, dir=path.parent))
    handle = os.open(draft, os.O_RDONLY) if fcntl else None
    try:
        if handle is not None:
            _lock(handle)
        with _naming(path, draft):
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
        if handle is not None:
            os.close(handle)


def _prefix(path: Path) -> str:
    return f".{path.name[:40]}."


def _make_parent(path: Path) -> None:
    """Create the folder of a file that will be written, and remove what killed processes left of that file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if fcntl is None:
        return
    with os.scandir(path.parent) as entries:
        left = [
            entry
            for entry in entries
            if entry.name.startswith(_prefix(path)) and entry.name.endswith(DRAFT) and not entry.is_symlink()
        ]
    for entry in left:
        try:
            handle = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW)
        except OSError:  # it is gone, or another user's
            continue
        try:
            if _lock(handle):
                shutil.rmtree(entry.path) if entry.is_dir() else Path(entry.path).unlink(missing_ok=True)
        except OSError:  # as above
            pass
        finally:
            os.close(handle)


def _lock(handle: int) -> bool:
    """Lock an open file or folder as long as this process lives; False where another process holds it."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks: nothing is removed there
        return False
    return True


@contextmanager
def _naming(path: Path, draft: Path) -> Iterator[None]:
    """Let what goes wrong while `draft` is written name the file that it becomes, and the reason.

    Libraries report a failed write in many ways; where the disk is full, it is the reason whatever they raise. An
    OSError without a number does not come from the system: a library raises it about contents, most often of an input.
    """
    try:
        yield
    except (DataError, OutputError, BrokenPipeError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            named = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else None
            if named is not None and draft not in (named, *named.parents) and named != path.parent:
                raise
            raise OutputError(path, error) from error
        if (reason := _no_room(draft)) is not None:
            raise OutputError(path, reason) from error
        raise


def _no_room(draft: Path) -> OSError | None:
    """Why nothing can be written beside or behind a draft; None if something can."""
    try:
        if draft.is_dir():
            with tempfile.TemporaryFile(dir=draft) as stream:
                stream.write(bytes(4096))
        elif draft.is_file():
            with draft.open("ab", buffering=0) as stream:
                stream.write(bytes(4096))
                os.fsync(stream.fileno())
    except OSError as error:
        return error if error.errno in NO_ROOM else None
    return None


def check_replaceable(path: StrPath, *, refuse: Callable[[Path], str]) -> None:
    """Raise a DataError where `path` is a file, or a folder that `refuse` gives a reason not to replace."""
    path = Path(path)
    with _naming(path, path):
        is_file = path.is_symlink() or (path.exists() and not path.is_dir())
    if is_file:
        raise DataError(f"{path} is not a folder, and regard replaces only folders that it wrote. Choose another name.")
    if path.is_dir() and any(path.iterdir()) and (reason := refuse(path)):
        raise DataError(f"{path} is not replaced, because {reason}. Choose another folder, or move that one away.")


def read_text(path: StrPath, most: int = 2**28) -> str:
    """Read a text file as UTF-8, without a byte order mark; one that has more bytes than `most` is refused."""
    with Path(path).open("rb") as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        raise DataError(f"{path} has more than {most:,} bytes, which is the most that is read at once.")
    return content.decode("utf-8-sig")


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
    for name, end in itertools.product(names, (DRAFT, EARLIER_DRAFT)):
        for draft in Path(folder).glob(f".{name[:40]}.{_RANDOM}{end}"):
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
