"""Whole files of inputs from the command line: read line by line, or answered by several workers into a folder."""

import hashlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from regard.config import Checked, Count
from regard.errors import OptionError, RegardError, counted
from regard.files import checksum
from regard.jobs.inputs import find_inputs, is_pattern
from regard.jobs.job import count_cores, run
from regard.jobs.worker import Answer, Job, Predictor
from regard.systems import registry
from regard.systems.output import result_text

BATCHES_PER_PART = 16
"""Batches that a worker answers at a time; inputs of like cost are put together among these."""


@dataclass(frozen=True)
class FileOptions(Checked):
    """Whole files of inputs."""

    input: Annotated[
        tuple[str, ...], Parameter(alias="-i", negative="", consume_multiple=True, show_default=False)
    ] = ()
    """Files with one input per line (plain, .gz, .xz, .zip), or quoted patterns such as 'big/*.txt.gz'."""
    workers: Count = 0
    """With an output folder: number of workers; 0 for one per GPU, or one per CPU core without a GPU."""
    engine: Literal["processes", "ray"] = "processes"
    """With an output folder: processes of this machine, or a Ray cluster (pip install 'regard[ray]')."""
    skip_errors: Annotated[bool, Parameter(negative="")] = False
    """With an output folder: write an empty line for an input that fails, instead of stopping."""

    def into_folder(self, output: str | None, given: Sequence[Any] = ()) -> bool:
        """Whether `--output` is a folder: it ends in "/", or is one, or belongs to several input files.

        `given` are inputs that stand on the command line themselves.
        """
        if given and self.input:
            raise OptionError("Give the inputs themselves, or files of inputs with --input, not both.")
        is_several = len(self.input) > 1 or any(map(is_pattern, self.input))
        is_folder = output is not None and (output.endswith("/") or Path(output).is_dir() or is_several)
        if is_folder and not self.input:
            raise OptionError(f"--output {output} is a folder: name the files to read with --input FILE ...")
        if not is_folder and (self.workers or self.engine != "processes" or self.skip_errors):
            raise OptionError("--workers, --engine and --skip-errors are for an output folder, such as --output out/.")
        return is_folder


@dataclass(frozen=True)
class Answers:
    """Answers lines with a model: what the workers of `regard translate --output out/` and other commands do."""

    system: str
    """Its name."""
    model: str
    options: Mapping[str, Any]
    json: bool = False
    device: str | None = None
    trust: bool = False

    @property
    def chunk_size(self) -> int:
        """Lines that a worker answers at a time."""
        return BATCHES_PER_PART * registry.entry(self.system).system.max_batch

    def settings(self) -> dict[str, Any]:
        """The model, identified by its content, and the options."""
        return {"model": model_checksum(self.model), "json": self.json, **self.options}

    def load(self, worker: int, workers: int) -> Answer:
        """Load the model for a worker."""
        device = worker_device(worker, workers, self.device)
        model = registry.entry(self.system).system.load(self.model, device=device, trust=self.trust)
        options = model.options(self.options)

        def answer(lines: Sequence[str]) -> list[str]:
            answered = model.stream_lines(lines, read_ahead=len(lines) or 1, **self.options)
            return [result_text(model, one, result, options, as_json=self.json) for one, result in answered]

        return answer

    def refused(self, line: str, error: RegardError) -> str:
        """An empty line, or the error as JSON."""
        return json.dumps({"input": line, "error": str(error)}, ensure_ascii=False) if self.json else ""


def run_job(predictor: Predictor, files: FileOptions, output: str, *, label: str) -> None:
    """Answer the files into a folder, and report what was done."""
    inputs = find_inputs(files.input, json=predictor.json)
    job = Job(predictor, tuple(inputs), Path(output).absolute(), skip_errors=files.skip_errors)
    workers = files.workers or (0 if files.engine == "ray" else count_workers())
    try:
        done = run(job, engine=files.engine, workers=workers, label=label)
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted. The same command continues.\n")
        raise
    earlier = f"; complete already: {done.skipped_files:,}" if done.skipped_files else ""
    refused = f" Inputs left out: {done.refused}." if done.refused else ""
    sys.stderr.write(
        f"Wrote {counted(done.files, 'file')} with {counted(done.lines, 'line')} to {output}{earlier}.{refused}\n"
    )


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
