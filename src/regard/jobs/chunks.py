"""The output folder of a job: complete chunks of each output, joined into the output when none is missing.

    out/a.txt                            an output, which appears when it is complete
    out/.regard/settings.json            what every output of this folder was made with
    out/.regard/files/a.txt/input.json   the input that it belongs to, and the size of its chunks
    out/.regard/files/a.txt/parts/       chunks of an output that is not complete yet
    out/.regard/files/a.txt/done.json    says that the output is complete

Each file is written under a temporary name and renamed. A chunk that exists is therefore whole, and may be written
twice (by a worker that is thought to be dead, and by the one that took its place) without harm.
"""

import gzip
import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from regard.data.text import read_lines
from regard.errors import DataError
from regard.files import locked, replacing, write_bytes, write_text
from regard.jobs.inputs import InputFile


@dataclass(frozen=True)
class Chunk:
    """Consecutive lines of one input file: what a worker answers at a time."""

    name: str
    """The name of the output that it is a chunk of."""
    index: int
    first_line: int
    """The number of its first line, counted from 1."""
    lines: tuple[str, ...]
    is_last: bool
    is_done: bool = False
    """Whether an earlier run has answered it."""

    @property
    def place(self) -> str:
        """Which lines these are, in words."""
        return f"lines {self.first_line} to {self.first_line + len(self.lines) - 1}"


@dataclass(frozen=True)
class OutputFolder:
    """Where the outputs of a job are, complete or in chunks."""

    folder: Path

    @contextmanager
    def claim(self, settings: dict[str, Any]) -> Iterator[None]:
        """Keep other jobs out of the folder; refuse one that holds the outputs of other settings."""
        state = self.folder / ".regard"
        busy = f"Another job is writing to {self.folder}. Wait for it, or choose another folder."
        with locked(state / "lock", refuse=busy):
            self._check_settings(state / "settings.json", json.loads(json.dumps(settings)))
            yield

    def _check_settings(self, path: Path, settings: dict[str, Any]) -> None:
        if not path.is_file():
            write_text(path, json.dumps(settings, indent=2) + "\n")
            return
        earlier = _read_json(path)
        names = [name for name in earlier | settings if earlier.get(name) != settings.get(name)]
        if names:
            changed = ", ".join(f"{name} {earlier.get(name)!r} -> {settings.get(name)!r}" for name in names)
            raise DataError(
                f"{self.folder} holds the outputs of a job with other settings: {changed}. Choose another folder, or "
                "remove that one."
            )

    def is_complete(self, file: InputFile) -> bool:
        """Whether the output of a file is there, and the input has not changed since."""
        state = self._state(file.name)
        is_done = (self.folder / file.name).is_file() and (state / "done.json").is_file()
        return is_done and self._is_unchanged(file)

    def check_output(self, file: InputFile, *, overwrite: bool = False) -> None:
        """Refuse an output that would replace the input itself, or without `overwrite` a file that no job wrote."""
        output = self.folder / file.name
        if output.exists() and output.samefile(file.path):
            raise DataError(f"{output} is both an input and an output. Choose another folder.")
        if output.exists() and not (overwrite or (self._state(file.name) / "input.json").is_file()):
            raise DataError(
                f"{output} exists, and was not written by this job. Add --overwrite to replace it, or choose another "
                "folder."
            )

    def read_chunks(self, file: InputFile, size: int) -> Iterator[Chunk]:
        """The lines of a file in chunks of `size`.

        Parts of an earlier input of the same name are removed first, and those of another size, which another version
        of regard may have chosen: they have other lines.
        """
        state, origin = self._state(file.name), file.stamp | {"part_size": size}
        if not (state / "input.json").is_file() or _read_json(state / "input.json") != origin:
            shutil.rmtree(state / "parts", ignore_errors=True)
        (state / "done.json").unlink(missing_ok=True)
        for attempts in (state / "parts").glob("*.attempts"):
            attempts.unlink()
        write_text(state / "input.json", json.dumps(origin) + "\n")
        lines = read_lines(file.path)
        chunk = tuple(islice(lines, size))
        index = 0
        while chunk or not index:  # an empty file is one chunk without lines
            following = tuple(islice(lines, size))
            is_done = self._chunk(file.name, index).is_file()
            yield Chunk(file.name, index, 1 + index * size, chunk, is_last=not following, is_done=is_done)
            chunk, index = following, index + 1

    def write_chunk(self, chunk: Chunk, texts: Sequence[str]) -> None:
        """Write the answers of a chunk, one text per input."""
        content = "".join(f"{text}\n" for text in texts).encode()
        # Compressed chunks may be joined: a gzip file is any number of gzip streams.
        compressed = gzip.compress(content, mtime=0) if chunk.name.endswith(".gz") else content
        write_bytes(self._chunk(chunk.name, chunk.index), compressed)

    def count_attempt(self, chunk: Chunk) -> int:
        """Note that a worker begins a chunk, and give the number of those that began it in this run."""
        path = self._chunk(chunk.name, chunk.index).with_suffix(".attempts")
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as attempts:
            attempts.write(b".")
        return path.stat().st_size

    def finish(self, file: InputFile, chunks: int, lines: int) -> None:
        """Join the chunks of an output."""
        state = self._state(file.name)
        if not self._is_unchanged(file):
            raise DataError(f"{file.path} was changed while it was read. Run the same command again.")
        with replacing(state / "joined") as draft, draft.open("wb") as joined:
            for index in range(chunks):
                with self._chunk(file.name, index).open("rb") as chunk:
                    shutil.copyfileobj(chunk, joined)
        output = self.folder / file.name
        output.parent.mkdir(parents=True, exist_ok=True)
        (state / "joined").replace(output)
        write_text(state / "done.json", json.dumps({"lines": lines}) + "\n")
        shutil.rmtree(state / "parts")

    def remove_chunks(self, file: InputFile) -> None:
        """Remove the chunks of a complete output, which a job leaves that was killed before it could."""
        shutil.rmtree(self._state(file.name) / "parts", ignore_errors=True)

    def _is_unchanged(self, file: InputFile) -> bool:
        """Whether a file is still the input that its chunks were read from."""
        origin, stamp = _read_json(self._state(file.name) / "input.json"), file.stamp
        return {name: origin.get(name) for name in stamp} == stamp

    def _state(self, name: str) -> Path:
        return self.folder / ".regard" / "files" / name

    def _chunk(self, name: str, index: int) -> Path:
        return self._state(name) / "parts" / f"{index:08}"


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return dict(content)
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{path} cannot be read: {error}. Remove the folder, and run the job again.") from error
