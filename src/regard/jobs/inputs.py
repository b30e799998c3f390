"""The files that a job reads, and the names of their outputs."""

import glob
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from regard.data.text import file_stamp
from regard.errors import DataError, OptionError


@dataclass(frozen=True)
class InputFile:
    """A file with one input per line."""

    path: Path
    name: str
    """The name of its output, below the output folder."""

    @property
    def stamp(self) -> dict[str, str | int]:
        """What identifies its content: path, size and time of modification."""
        path, size, modified = file_stamp(self.path)
        return {"path": path, "size": size, "modified": modified}


def find_inputs(patterns: Sequence[str], *, json: bool = False) -> list[InputFile]:
    """The files that are named or match a pattern such as 'big/*.txt.gz', each with the name of its output.

    An output is named like its input. It is compressed where the input ends in .gz, and plain where it ends in .xz or
    .zip, without that suffix; `json` changes the suffix before to .jsonl. Folders below the fixed part of a pattern are
    kept: 'big/**/*.txt' writes big/a/b.txt as a/b.txt.
    """
    found: dict[str, InputFile] = {}
    for pattern in patterns:
        for path, relative in find_files(pattern):
            file = InputFile(path.absolute(), _output_name(relative, json=json))
            same = found.setdefault(file.name, file)
            if same.path != file.path:
                advice = (
                    "Rename one of them"
                    if same.path.parent == file.path.parent
                    else "Name them by one quoted pattern, which keeps their folders"
                )
                raise OptionError(
                    f"{same.path} and {file.path} would have the same output, {file.name}. {advice}, or run a command "
                    "for each, with an output folder of its own."
                )
    for file in found.values():
        for folder in PurePath(file.name).parents:
            if (other := found.get(folder.as_posix())) is not None:
                raise OptionError(
                    f"The output of {other.path}, {other.name}, would have the name of the folder for the output of "
                    f"{file.path}, {file.name}. Rename one of them, or run a command for each, with an output folder "
                    "of its own."
                )
    return list(found.values())


def is_pattern(text: str) -> bool:
    """Whether a text stands for any number of files rather than for one."""
    return glob.has_magic(text) and not Path(text).exists()


def find_files(pattern: str) -> Iterator[tuple[Path, PurePath]]:
    """The files of a name or pattern, each with its path relative to the fixed part of the pattern."""
    if not is_pattern(pattern):
        path = Path(pattern)
        file_stamp(path)  # which says what is wrong where there is no such file
        yield path, PurePath(path.name)
        return
    parts = Path(pattern).parts
    fixed = Path(*parts[: next(index for index, part in enumerate(parts) if glob.has_magic(part))])
    # Path.glob would also find hidden files.
    paths = sorted(Path(match) for match in glob.iglob(pattern, recursive=True))  # noqa: PTH207
    files = [path for path in paths if path.is_file()]
    if not files:
        raise DataError(f"No file matches the pattern {pattern!r}.")
    for path in files:
        yield path, path.relative_to(fixed)


def _output_name(path: PurePath, *, json: bool) -> str:
    compressed = ".gz" if path.suffix.lower() == ".gz" else ""
    if path.suffix.lower() in (".gz", ".xz", ".zip"):
        path = path.with_suffix("")
    if json:
        path = path.with_suffix(".jsonl")
    return path.as_posix() + compressed
