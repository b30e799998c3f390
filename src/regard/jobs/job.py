"""Running a batch job, with processes of this machine or on a Ray cluster."""

import os
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Literal

from regard.data.progress import progress_bar
from regard.errors import WorkerError
from regard.jobs.chunks import Chunk
from regard.jobs.inputs import InputFile
from regard.jobs.processes import run_processes
from regard.jobs.worker import Done, Job
from regard.viewing.tokens import printable

Engine = Literal["processes", "ray"]
MAX_REPORTED = 10
"""How many inputs that were left out are reported one by one."""


@dataclass(frozen=True)
class Summary:
    """What a job has done."""

    files: int
    """Outputs that were completed."""
    lines: int
    """Inputs that these have, those answered by an earlier run included."""
    skipped_files: int
    """Outputs that were complete already."""
    refused: int
    """Inputs that could not be answered and were left out."""


@dataclass
class _Tally:
    """How much of an output is there."""

    lines: int = 0
    indices: set[int] = field(default_factory=set)
    chunks: int | None = None

    def add(self, done: Done) -> bool:
        """Count a chunk; whether the output is now complete."""
        self.indices.add(done.index)
        self.lines += done.lines
        self.chunks = done.index + 1 if done.is_last else self.chunks
        return len(self.indices) == self.chunks


def run(
    job: Job, *, engine: Engine = "processes", workers: int, label: str = "Working", unit: str = "lines"
) -> Summary:
    """Answer all lines of the input files into the output folder: one output per input, with its lines in order.

    An interrupted job continues where it was when it is run again, and outputs that are complete are left alone. The
    settings must then be the same. An input that has changed is answered again.
    """
    outputs, tallies, refused = job.outputs, {file.name: _Tally() for file in job.inputs}, 0
    for file in job.inputs:
        outputs.check_output(file, overwrite=job.overwrite)
    with outputs.claim(job.predictor.settings()):
        todo = {file.name: file for file in job.inputs if not outputs.is_complete(file)}
        for file in job.inputs:
            if file.name not in todo:
                outputs.remove_chunks(file)
        answered = _engine(engine)(job, list(todo.values()), workers)
        with progress_bar(label, None, unit) as advance, closing(answered):
            for done in answered:
                if done.error is not None:
                    raise done.error
                advance(done.lines)
                refused += _report(done, refused)
                tally = tallies[done.name]
                if tally.add(done) and tally.chunks is not None:
                    outputs.finish(todo[done.name], tally.chunks, tally.lines)
        missing = [name for name in todo if not outputs.is_complete(todo[name])]
        if missing:
            raise WorkerError(f"{missing[0]} is not complete. Run the same command again.")
    return Summary(len(todo), sum(tallies[name].lines for name in todo), len(job.inputs) - len(todo), refused)


def count_cores() -> int:
    """CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _engine(name: Engine) -> Callable[[Job, list[InputFile], int], Generator[Done, None, None]]:
    if name == "ray":
        from regard.jobs.cluster import run_on_ray

        return run_on_ray
    return _on_this_machine


def _on_this_machine(job: Job, files: list[InputFile], workers: int) -> Generator[Done, None, None]:
    return run_processes(job, _chunks(job, files), workers)


def _chunks(job: Job, files: list[InputFile]) -> Iterator[Chunk]:
    for file in files:
        yield from job.outputs.read_chunks(file, job.predictor.chunk_size)


def _report(done: Done, before: int) -> int:
    for number, message in enumerate(done.refused, before + 1):
        if number <= MAX_REPORTED:
            sys.stderr.write(f"regard: left out: {printable(f'{done.name}, {message}')}\n")
        if number == MAX_REPORTED + 1:
            sys.stderr.write("regard: more inputs were left out, which are not reported one by one.\n")
    return len(done.refused)
