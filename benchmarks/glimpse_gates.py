"""Train glimpse models on MNIST and on digits of fonts, side by side on one GPU, and check their errors.

    python benchmarks/glimpse_gates.py FOLDER                    # every row, side by side
    python benchmarks/glimpse_gates.py FOLDER mnist translated   # selected rows

FOLDER is what `regard data get mnist` wrote. Each row is a process of its own; errors are those of one pass over 10,000
test images. Where there is NVIDIA's multi-process service, it is used, so that the processes share the GPU without
taking turns. Results, logs and the models go to the folder --out. The exit status is 1 when a row misses its goal.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from regard.systems.plan import read_recipe
from regard.training.recipes import Recipe

ROWS: dict[str, tuple[str, dict[str, dict[str, Any]]]] = {
    "mnist": ("glimpse-mnist", {}),
    "translated": ("glimpse-translated", {}),
    "cluttered-1": ("glimpse-cluttered", {}),
    "cluttered-2": ("glimpse-cluttered", {"train": {"seed": 2}}),
    "cluttered-3": ("glimpse-cluttered", {"train": {"seed": 3}}),
    "cluttered-random-1": ("glimpse-cluttered", {"model": {"policy": "random"}}),
    "cluttered-random-2": ("glimpse-cluttered", {"model": {"policy": "random"}, "train": {"seed": 2}}),
    "cluttered-random-3": ("glimpse-cluttered", {"model": {"policy": "random"}, "train": {"seed": 3}}),
    "cluttered-100": ("glimpse-cluttered-100", {}),
    "digits": (
        "glimpse-digits",
        {
            "data": {"examples": 512_000, "held_out": 5000},
            "train": {"epochs": 60, "batch_size": 512, "average_decay": 0.999},
        },
    ),
}
"""Each row: its recipe, and the fields that it changes."""
GOALS = {"mnist": 1.2, "translated": 1.3, "cluttered-1": 4.0, "cluttered-2": 4.0, "cluttered-3": 4.0}
"""Highest error of a row, in percent; the others are reported."""
MARGIN = 5.0
"""Points by which random locations must be worse than learned ones of the same seed."""


def recipe(row: str, folder: str) -> Recipe:
    """The recipe of a row."""
    name, changes = ROWS[row]
    data = dict(changes.get("data", {})) | ({} if name == "glimpse-digits" else {"folder": folder})
    return read_recipe(name, {"data": data, "model": changes.get("model", {}), "train": changes.get("train", {})})


def train(row: str, folder: str, out: Path) -> None:
    """Train one row, in this process."""
    import regard

    trained = regard.train(recipe(row, folder), out=out / row)
    if row == "digits":
        trained.model.save(out / "glimpse-digits", metrics=trained.metrics, store="float16")
        with tarfile.open(out / "glimpse-digits.tar.gz", "w:gz") as packed:
            packed.add(out / "glimpse-digits", "glimpse-digits")


def start_sharing() -> None:
    """Start NVIDIA's multi-process service where it is installed; without it the processes take turns."""
    control = shutil.which("nvidia-cuda-mps-control")
    if control is None:
        return
    subprocess.run([control, "-d"], check=False, capture_output=True)
    # Where the service cannot run, as in some containers, every program that uses the GPU would fail.
    probe = [sys.executable, "-c", "import torch; torch.zeros(1, device='cuda')"]
    works = subprocess.run(probe, check=False, capture_output=True, timeout=120).returncode == 0
    if not works:
        subprocess.run([control], input=b"quit\n", check=False, capture_output=True)
    sys.stdout.write(f"multi-process service: {'used' if works else 'not usable here'}\n")


def main() -> None:
    """Train the rows side by side, and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="MNIST")
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"default: all of {', '.join(ROWS)}")
    parser.add_argument("--out", type=Path, default=Path("build/glimpse-gates"), help="folder for the results")
    parser.add_argument("--row", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.row:
        train(arguments.row, arguments.folder, arguments.out)
        return
    rows = arguments.rows or list(ROWS)
    if unknown := [row for row in rows if row not in ROWS]:
        parser.error(f"there is no row {unknown[0]!r}; choose from {', '.join(ROWS)}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    start_sharing()
    command = [sys.executable, __file__, arguments.folder, "--out", str(arguments.out)]
    began, running = time.perf_counter(), {}
    environment = os.environ | {"OMP_NUM_THREADS": "2"}
    for row in rows:
        with (arguments.out / f"{row}.log").open("w") as log:
            running[row] = subprocess.Popen([*command, "--row", row], stdout=log, stderr=log, env=environment)
    failed = [row for row, process in running.items() if process.wait()]
    for row in failed:
        sys.stdout.write(f"{row} failed:\n" + "\n".join((arguments.out / f"{row}.log").read_text().splitlines()[-15:]))
    sys.exit(not (report(rows, arguments.out, time.perf_counter() - began) and not failed))


def report(rows: list[str], out: Path, seconds: float) -> bool:
    """Print what each row reached, write results.json, and say whether all goals are met."""
    files = {row: out / row / "model" / "metrics.json" for row in rows}
    found = {row: json.loads(file.read_text()) for row, file in files.items() if file.is_file()}
    table = Table("row", "error %", "goal", "on the digit %", "random on it %", "steps", "images/s")
    for row, metrics in found.items():
        goal = f"<= {GOALS[row]}" if row in GOALS else ""
        numbers = (f"{metrics[name]:.2f}" for name in ("on_digit", "random_on_digit"))
        speed = f"{metrics.get('images/s', 0):,.0f}"
        table.add_row(row, f"{metrics['test_error']:.2f}", goal, *numbers, str(metrics["steps"]), speed)
    Console(width=100).print(table)
    sys.stdout.write(f"{seconds / 60:.1f} minutes\n")
    (out / "results.json").write_text(json.dumps(found, indent=1))
    met = all(metrics["test_error"] <= GOALS.get(row, 100) for row, metrics in found.items())
    for row, metrics in found.items():
        control = found.get(f"cluttered-random-{row.removeprefix('cluttered-')}")
        if row in GOALS and control is not None:
            met &= control["test_error"] - metrics["test_error"] >= MARGIN
    return met


if __name__ == "__main__":
    main()
