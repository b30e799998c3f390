"""A whole training on a GPU: loops that are recorded and replayed, beside the same recipe step by step.

    python benchmarks/recorded_training.py FOLDER

FOLDER is what `regard data get multi30k` made. The recipe multi30k-rnnsearch is trained twice, each time in a process
of its own and without validations: with plain loops of plain formulas for SECONDS, and as it is for twice as long,
since its first epochs go into recording. What counts is the median of the second half.
"""

import csv
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from regard.training.recipe import read_recipe
from regard.training.run import train

SECONDS = 30
KINDS = {"step by step": SECONDS, "recorded": 2 * SECONDS}


def speeds(kind: str, folder: str) -> list[float]:
    """Target tokens a second, every twenty batches."""
    if kind == "step by step":
        from regard.decoders import recurrent
        from regard.kernels import cells

        recurrent.in_steps = lambda attention, memory: None
        cells.has_gpu_kernels = lambda tensor: False
    limits = {"minutes": KINDS[kind] / 60, "validate_every": 1000}
    with tempfile.TemporaryDirectory() as run:
        train(read_recipe("multi30k-rnnsearch", {"data": {"folder": folder}, "train": limits}), run, progress=False)
        with (Path(run) / "logs" / "metrics.csv").open() as log:
            return [float(line["tokens/s"]) for line in csv.DictReader(log) if line.get("tokens/s")]


def main() -> None:
    folder, *kind = sys.argv[1:]
    if kind:
        print(*speeds(kind[0], folder))
        return
    table = Table("training", "target tokens/s", "min - max", "times as fast")
    first = None
    for name in KINDS:
        said = subprocess.run([sys.executable, __file__, folder, name], check=True, capture_output=True, text=True)
        found = [float(word) for word in said.stdout.split()]
        late = found[len(found) // 2 :]
        first = first or statistics.median(late)
        spread = f"{min(late):,.0f} - {max(late):,.0f}"
        table.add_row(name, f"{statistics.median(late):,.0f}", spread, f"{statistics.median(late) / first:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
