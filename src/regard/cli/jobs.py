"""Whole files of inputs, answered by several workers into a folder."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.cli.io import InputOutput, as_json, print_error, result_text
from regard.errors import RegardError, counted
from regard.files import checksum
from regard.jobs.inputs import find_inputs
from regard.jobs.job import count_cores, run
from regard.jobs.worker import Answer, Job, Predictor
from regard.systems import registry
from regard.systems.config import Options
from regard.systems.pretrained import class_for, load_as

BATCHES_PER_PART = 16
"""Batches that a worker answers at a time; inputs of like cost are put together among these."""


@dataclass(frozen=True)
class VerbPredictor:
    """Answers lines with a model: what the workers of `regard translate --output out/` and other verbs do."""

    system: registry.Entry
    """That of the model; a worker finds it by its module, also where only the program that began the job knows it."""
    model: str
    options: Options
    json: bool = False
    device: str | None = None
    trust: bool = False

    @property
    def chunk_size(self) -> int:
        """Lines that a worker answers at a time."""
        return BATCHES_PER_PART * int(class_for(self.system, self.model).max_batch)

    def settings(self) -> dict[str, Any]:
        """The model, identified by its content, and the options."""
        return {"model": model_checksum(self.model), "json": self.json, **vars(self.options)}

    def load(self, worker: int, workers: int) -> Answer:
        """Load the model for a worker."""
        device = worker_device(worker, workers, self.device)
        model = load_as(self.system, self.model, device=device, trust=self.trust)

        def answer(lines: Sequence[str]) -> list[str]:
            inputs = (model.parse(line, self.options) for line in lines)
            answered = model.stream_some(inputs, self.options, read_ahead=len(lines) or 1)
            return [result_text(model, one, result, self.options, json=self.json) for one, result in answered]

        return answer

    def refused(self, line: str, error: RegardError) -> str:
        """An empty line, or the error as JSON."""
        return refused(line, error, json=self.json)


def refused(line: str, error: RegardError, *, json: bool) -> str:
    """What is written for a line that cannot be answered: an empty line, or the error as JSON."""
    return as_json({"input": line, "error": str(error)}) if json else ""


def run_job(predictor: Predictor, io: InputOutput, *, label: str) -> None:
    """Answer the files of `--input` into the folder of `--output`, and report what was done."""
    job = Job(
        predictor,
        tuple(find_inputs(io.input, json=io.json)),
        Path(str(io.output)).absolute(),
        skip_errors=io.skip_errors,
        overwrite=io.overwrite,
    )
    workers = io.workers or (0 if io.engine == "ray" else count_workers())
    try:
        done = run(job, engine=io.engine, workers=workers, label=label)
    except KeyboardInterrupt:
        print_error("Interrupted. The same command continues.")
        raise
    earlier = f"; complete already: {done.skipped_files:,}" if done.skipped_files else ""
    left_out = f" Inputs left out: {done.refused}." if done.refused else ""
    written = f"{counted(done.files, 'file')} with {counted(done.lines, 'line')}"
    print_error(f"Wrote {written} to {io.output}{earlier}.{left_out}")


def model_checksum(name: str) -> str:
    """A checksum of the files that decide what a model answers."""
    from regard.systems.folder import CARD, METRICS, find_model

    path = find_model(name)
    files = [path] if path.is_file() else [file for file in path.iterdir() if file.name not in (METRICS, CARD)]
    listed = [f"{file.name} {checksum(file)}\n" for file in sorted(files)]
    return hashlib.sha256("".join(listed).encode()).hexdigest()


def count_workers() -> int:
    """One worker per GPU, or else one per CPU core."""
    import torch

    return torch.cuda.device_count() or count_cores()


def worker_device(worker: int, workers: int, device: str | None) -> str | None:
    """The device of one of several workers: the given one, its own GPU, or its share of the CPU cores."""
    import torch

    if device is None and torch.cuda.device_count() > 1:
        return f"cuda:{worker % torch.cuda.device_count()}"
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, count_cores() // workers))
    return device
