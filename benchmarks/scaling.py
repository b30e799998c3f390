"""How batch jobs and trainings scale with the number of processes of a machine. Leave the machine alone meanwhile.

    python benchmarks/scaling.py jobs [--workers 1 2 4] [--engines processes ray] [--lines 2048] [--json FILE]
    python benchmarks/scaling.py training [--devices 1 2 4] [--seconds 60] [--json FILE]

jobs: `regard translate --output out/` of sentences of the world babel (11.4 words on average, seed 5), one file for
each worker. Each number of workers runs a short and a long job, whose difference gives the speed; what the short one
takes beyond that is the overhead: starting the workers, importing torch, loading the model, and, with Ray, the cluster.
Lines for each second of processor time are those of the workers (those of Ray cannot be told), and hold on a busy
machine too.

training: target tokens per second of `regard train babel-en-fr --devices N`, the median over the second half. Each
process takes 1,500 tokens of a batch, so that batches grow with the number of processes. On a machine with GPUs,
devices are GPUs; set CUDA_VISIBLE_DEVICES= to measure its CPU cores.

Further options, such as --beam 1, are those of the command.
"""

import argparse
import csv
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from regard.jobs.job import count_cores
from regard.worlds.babel import pairs

LONGER = 3
"""How many times as many lines the long job has."""
SEED = 5
TOKENS = 1500
"""Tokens of a batch for each process of a training."""
REGARD = [sys.executable, "-m", "regard"]


def write_sentences(folder: Path, files: int, lines: int) -> None:
    """Files of different sentences, in the order of their generation."""
    folder.mkdir(exist_ok=True)
    sentences = (f"{' '.join(pair.source)}\n" for pair in pairs("en", "fr", seed=SEED))
    for number in range(files):
        (folder / f"{number}.txt").write_text("".join(islice(sentences, lines)))


def time_job(
    model: str, engine: str, workers: int, lines: int, folder: Path, options: list[str]
) -> tuple[float, float]:
    """Seconds, and seconds of processor time, that a job takes which has a file of so many lines for each worker."""
    inputs, out = folder / f"{workers}-{lines}", folder / f"{engine}-{workers}-{lines}"
    write_sentences(inputs, workers, lines)
    command = [*REGARD, "translate", "--model", model, "--input", str(inputs / "*.txt"), "--output", f"{out}/"]
    command += ["--workers", str(workers), "--engine", engine, *options]
    began, used = time.perf_counter(), _processor_seconds()
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    seconds, used = time.perf_counter() - began, _processor_seconds() - used
    for number in range(workers):
        if len((out / f"{number}.txt").read_text().splitlines()) != lines:
            raise ValueError(f"{out / f'{number}.txt'} does not have {lines} lines.")
    return seconds, used


def _processor_seconds() -> float:
    """Processor time of the processes that have ended, those that they have started included."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure_jobs(arguments: argparse.Namespace, options: list[str]) -> list[dict[str, Any]]:
    """Speed and overhead for each engine and number of workers."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        for engine in arguments.engines:
            for workers in arguments.workers:
                sizes = [arguments.lines, LONGER * arguments.lines]
                (short, used), (long, used_more) = (
                    time_job(arguments.model, engine, workers, size, Path(name), options) for size in sizes
                )
                more = workers * (sizes[1] - sizes[0])
                speed = more / (long - short)
                rows.append(
                    {
                        "engine": engine,
                        "workers": workers,
                        "lines/s": speed,
                        "lines/processor s": more / (used_more - used) if engine == "processes" else "-",
                        "overhead s": short - workers * sizes[0] / speed,
                        "seconds": [short, long],
                    }
                )
    return rows


def measure_training(arguments: argparse.Namespace, options: list[str]) -> list[dict[str, Any]]:
    """Tokens per second for each number of processes."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        for devices in arguments.devices:
            out = Path(name) / str(devices)
            command = [*REGARD, "train", "babel-en-fr", "--out", str(out), "--devices", str(devices)]
            command += ["--train.minutes", str(arguments.seconds / 60), "--train.max_tokens", str(TOKENS * devices)]
            # Little is validated and tested, which is not measured here.
            command += ["--data.examples", "30000", "--data.held_out", "20", "--data.held_out_test", "20"]
            subprocess.run([*command, *options], check=True, stdout=subprocess.DEVNULL)
            with (out / "logs" / "metrics.csv").open() as log:
                speeds = [float(line["tokens/s"]) for line in csv.DictReader(log) if line.get("tokens/s")]
            late = speeds[len(speeds) // 2 :]
            rows.append({"devices": devices, "tokens/s": statistics.median(late), "from": min(late), "to": max(late)})
    return rows


def describe_machine() -> str:
    """The processor, the number of cores, the GPU and the version of torch."""
    names = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    processor = next(
        (line.split(":")[1].strip() for line in names if line.startswith("model name")), platform.machine()
    )
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    return f"{processor}, {count_cores()} cores, {gpu}, torch {torch.__version__}"


def print_rows(rows: list[dict[str, Any]], unit: str) -> None:
    """A table, with the speed relative to the first row."""
    table = Table(*[name for name in rows[0] if name != "seconds"], "speed")
    for row in rows:
        cells = [
            f"{cell:,.1f}" if isinstance(cell, float) else str(cell) for name, cell in row.items() if name != "seconds"
        ]
        table.add_row(*cells, f"{row[unit] / rows[0][unit]:.2f}x")
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["jobs", "training"])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="jobs: numbers of workers")
    parser.add_argument("--engines", nargs="+", default=["processes"], help="jobs: processes, ray")
    parser.add_argument("--lines", type=int, default=2048, help="jobs: lines of the short job for each worker")
    parser.add_argument("--model", default="en-fr", help="jobs: the translator")
    parser.add_argument("--devices", type=int, nargs="+", default=[1, 2], help="training: numbers of processes")
    parser.add_argument("--seconds", type=float, default=60, help="training: how long each training takes")
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    arguments, options = parser.parse_known_args()
    # Each worker has one core; more threads in a process would blur what is compared.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.stdout.write(f"{' '.join(['python', *sys.argv])}\n{describe_machine()}\n")
    rows = (measure_jobs if arguments.what == "jobs" else measure_training)(arguments, options)
    print_rows(rows, "lines/s" if arguments.what == "jobs" else "tokens/s")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
