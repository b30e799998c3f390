"""Training speed on a GPU: decoder loops recorded as CUDA graphs, against the same recipe step by step.

    python benchmarks/recorded_training.py FOLDER

FOLDER is what `regard data get multi30k` wrote. The recipe multi30k-rnnsearch is trained twice without validation, each
time in a process of its own: for 30 seconds with plain loops of plain formulas, and for 60 seconds as it is, since its
first epochs are spent on recording. The speed is the median over the second half.
"""

import argparse
import csv
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

import regard
from regard.attention.attend import Attention
from regard.kernels import cells
from regard.systems.plan import read_recipe
from regard.training.recipes import Recipe

STEP_BY_STEP, RECORDED = "step by step", "recorded"
SECONDS = {STEP_BY_STEP: 30, RECORDED: 60}


def recipe(mode: str, folder: str) -> Recipe:
    """The recipe multi30k-rnnsearch for the seconds of a mode, without validation."""
    limits = {"minutes": SECONDS[mode] / 60, "validate_every": 1000}
    return read_recipe("multi30k-rnnsearch", {"data": {"folder": folder}, "train": limits})


def measure(mode: str, folder: str) -> list[float]:
    """Target tokens per second, every twenty batches."""
    if mode == STEP_BY_STEP:
        Attention.in_steps = lambda self, memory: None  # type: ignore[method-assign]
        cells.has_gpu_kernels = lambda tensor: False
    with tempfile.TemporaryDirectory() as run:
        regard.train(recipe(mode, folder), out=run, progress=False)
        with (Path(run) / "logs" / "metrics.csv").open() as log:
            return [float(line["tokens/s"]) for line in csv.DictReader(log) if line.get("tokens/s")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="Multi30k")
    parser.add_argument("--measure", choices=SECONDS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(*measure(arguments.measure, arguments.folder))
        return
    table = Table("training", "target tokens/s", "min - max", "speed")
    first = None
    for mode in SECONDS:
        command = [sys.executable, __file__, arguments.folder, "--measure", mode]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        speeds = [float(word) for word in output.split()]
        late = speeds[len(speeds) // 2 :]
        first = first or statistics.median(late)
        spread = f"{min(late):,.0f} - {max(late):,.0f}"
        table.add_row(mode, f"{statistics.median(late):,.0f}", spread, f"{statistics.median(late) / first:.2f}x")
    Console().print(table)


if __name__ == "__main__":
    main()
