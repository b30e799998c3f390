"""What each worker of a job does, whatever process or machine it runs in."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from regard.errors import RegardError, WorkerError
from regard.jobs.chunks import Chunk, OutputFolder
from regard.jobs.inputs import InputFile

MAX_ATTEMPTS = 3
"""How often a chunk is given to a worker, if each of them dies over it."""
Answer = Callable[[Sequence[str]], list[str]]
"""Lines in, a text for each of them out."""


@runtime_checkable
class Predictor(Protocol):
    """How lines become lines. It is sent to the workers by pickle, and each of them loads the model."""

    @property
    def json(self) -> bool:
        """Whether the texts are JSON, which decides how outputs are called."""

    @property
    def chunk_size(self) -> int:
        """Lines that a worker answers at a time: enough to fill batches, few enough to lose little in a crash."""

    def settings(self) -> dict[str, Any]:
        """What the outputs depend on, as plain values: model, options, ..."""

    def load(self, worker: int, workers: int) -> Answer:
        """Load the model for one of several workers of a machine, which are counted from 0."""

    def refused(self, line: str, error: RegardError) -> str:
        """What to write for a line that cannot be answered, where errors are skipped."""


@dataclass(frozen=True)
class Job:
    """Input files, the output folder, and what to do with the lines."""

    predictor: Predictor
    inputs: tuple[InputFile, ...]
    folder: Path
    skip_errors: bool = False
    """Whether an input that cannot be answered is left out, rather than ending the job."""
    overwrite: bool = False
    """Whether outputs may replace files that no job wrote."""

    @property
    def outputs(self) -> OutputFolder:
        """The output folder."""
        return OutputFolder(self.folder)


@dataclass(frozen=True)
class Done:
    """The report of a worker on a chunk."""

    name: str
    index: int
    lines: int
    is_last: bool
    refused: tuple[str, ...] = ()
    """Where errors are skipped: what was wrong, and in which line."""
    error: RegardError | None = None
    """Why the chunk could not be answered."""


def gave_up(chunk: Chunk, reason: str) -> Done:
    """The report on a chunk over which too many workers have died."""
    error = WorkerError(
        f"{chunk.name}, {chunk.place}: {MAX_ATTEMPTS} workers died over these lines; {reason}. Try fewer --workers. "
        "What is complete is kept, and the same command continues."
    )
    return Done(chunk.name, chunk.index, len(chunk.lines), chunk.is_last, error=error)


class Worker:
    """Answers one chunk after the other; the model is loaded for the first of them."""

    def __init__(self, job: Job, worker: int = 0, workers: int = 1) -> None:
        self._job, self._place = job, (worker, workers)
        self._answer: Answer | None = None

    def __call__(self, chunk: Chunk) -> Done:
        """Answer a chunk and write it; a chunk that an earlier run has written is only reported."""
        refused: list[str] = []
        error = None
        if not chunk.is_done:
            try:
                self._job.outputs.write_chunk(chunk, self._texts(chunk, refused))
            except RegardError as raised:
                error = type(raised)(f"{chunk.name}, {chunk.place}: {raised}")
        return Done(chunk.name, chunk.index, len(chunk.lines), chunk.is_last, tuple(refused), error)

    def _texts(self, chunk: Chunk, refused: list[str]) -> list[str]:
        answer = self._answer = self._answer or self._job.predictor.load(*self._place)
        try:
            return answer(chunk.lines)
        except RegardError:
            if not self._job.skip_errors:
                raise
        texts = []
        for number, line in enumerate(chunk.lines, chunk.first_line):
            try:
                texts += answer([line])
            except RegardError as error:
                refused.append(f"line {number}: {error}")
                texts.append(self._job.predictor.refused(line, error))
        return texts
