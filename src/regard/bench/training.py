"""How fast recipes train on this machine: throughput, waiting for data, use of the arithmetic, and memory."""

import json
import resource
import sys
import tempfile
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch.utils.flop_counter import FlopCounterMode

from regard.bench.contest import device, machine, machine_line
from regard.bench.generated import generated
from regard.data.batches import BatchLoader, Movable
from regard.files import write_text
from regard.systems import registry
from regard.training.fit import HALF, Training, Waiting, matmul_precision, seed_everything
from regard.training.recipes import Recipe
from regard.training.settings import Devices
from regard.training.task import Task

BATCHES = 30
"""Batches in an epoch of generated data, about."""
FEWEST_UPDATES = 3
"""Updates that are measured at least, however long they take, after as many to warm up."""
PRODUCT = {"cpu": 1024, "cuda": 8192}
"""The size of the square matrices whose product measures the peak of a device."""


@dataclass(frozen=True)
class Speed:
    """How fast a recipe trained."""

    recipe: str
    unit: str
    rate: float
    """Units a second, such as target tokens."""
    updates: float
    """Updates a second."""
    waiting: float
    """The share of the time that was spent waiting for data."""
    flops: float
    """Floating-point operations of the products and convolutions for a unit, forward and backward."""
    utilisation: float
    """These operations a second, as a fraction of what a large product of matrices reaches in the same precision."""
    mebibytes: float
    """Peak memory: what torch had allocated on a GPU; on a CPU, that of the process."""


def measure(recipe: Recipe, name: str, *, seconds: float, given: bool = False) -> Speed:
    """Train for some seconds, after half as many to warm up; with random data, unless the recipe's own is `given`."""
    splits = None
    if not given:
        recipe, splits = generated(recipe, BATCHES)
    seed_everything(recipe.train.seed)
    with tempfile.TemporaryDirectory() as folder, matmul_precision():
        experiment = registry.entry(recipe.system).experiment(recipe, Path(folder), progress=False)
        splits = experiment.read_data() if splits is None else splits
        task, *loaders = experiment.task(experiment.build(splits), splits)
        flops = flops_of(task, loaders[0])
        _forget_peak()
        training = Training(
            task,
            (loaders[0], loaders[1]),
            experiment.score,
            Devices(),
            half_precision_on_gpu=experiment.half_precision_on_gpu,
        )
        training.begin()
        batches = _endless(loaders[0])
        _train(training, batches, seconds / 2)
        waiting, updates, took = _train(training, batches, seconds)
        rate, memory = task.processed / took, _peak_mebibytes()
        batches.close()
        training.close()
        peak = peak_flops(task.device, HALF.get(training.precision.precision, torch.float32))
    return Speed(name, task.unit, rate, updates / took, waiting, flops, rate * flops / peak, memory)


def flops_of(task: Task, batches: BatchLoader) -> float:
    """Operations of the products and convolutions for a unit of `task`: those of a batch, divided by its units.

    They are counted on the CPU, where no kernel of ours hides a product, and without the fused networks of oneDNN.
    """
    task.to("cpu")
    batch = _on_cpu(task.prepared(next(iter(batches))))
    with FlopCounterMode(display=False) as counter, _without_onednn():
        task.loss(batch).backward()
    task.zero_grad(set_to_none=True)
    operations: float = counter.get_total_flops() / task.amount(batch)
    return operations


def peak_flops(where: torch.device, kind: torch.dtype) -> float:
    """Operations a second of a product of large square matrices, the fastest of several."""
    size = PRODUCT[where.type]
    first, second = (torch.randn(size, size, device=where, dtype=kind) for _ in range(2))
    times = []
    for _ in range(8):
        _synchronize()
        began = time.perf_counter()
        first @ second
        _synchronize()
        times.append(time.perf_counter() - began)
    return float(2 * size**3 / min(times))


def report(recipes: Mapping[str, Recipe], *, seconds: float, given: bool, path: Path | None = None) -> list[Speed]:
    """Measure recipes and print a table of them; with a path, also write the numbers to this file, as JSON."""
    speeds = []
    console = Console(stderr=True)
    for name, recipe in recipes.items():
        with console.status(f"Training {name}"):
            speeds.append(measure(recipe, name, seconds=seconds, given=given))
    out = Console(highlight=False)
    out.print(machine_line())
    out.print(speed_table(speeds))
    if path is not None:
        fields = {"machine": machine(), "results": [asdict(speed) for speed in speeds]}
        write_text(path, json.dumps(fields, indent=2) + "\n")
        Console(soft_wrap=True, highlight=False, markup=False).print(f"Wrote {path}")
    return speeds


def speed_table(speeds: Sequence[Speed]) -> Table:
    """A line for each recipe."""
    table = Table(box=None, header_style="dim")
    table.add_column("recipe", no_wrap=True)
    for title in ("a second", "updates/s", "waiting", "MFLOP each", "of the peak", "MiB"):
        table.add_column(title, justify="right")
    for speed in speeds:
        table.add_row(
            speed.recipe,
            f"{speed.rate:,.0f} {speed.unit}",
            f"{speed.updates:,.1f}",
            f"{speed.waiting:.0%}",
            f"{speed.flops / 1e6:,.1f}",
            f"{speed.utilisation:.1%}",
            f"{speed.mebibytes:,.0f}",
        )
    return table


def _endless(batches: BatchLoader) -> Generator[Any]:
    """The batches of one epoch after the other."""
    epoch = 0
    while True:
        batches.set_epoch(epoch)
        yield from batches
        epoch += 1


def _train(training: Training, batches: Iterator[Any], seconds: float) -> tuple[float, int, float]:
    """Train for so long: the share of waiting, the number of updates, and the seconds that they took."""
    training.task.processed, updates = 0, 0
    waiting = Waiting(training.task.device)
    _synchronize()
    began = time.perf_counter()
    for batch in waiting.through(batches):
        training.update(batch)
        updates += 1
        if updates >= FEWEST_UPDATES and time.perf_counter() - began >= seconds:
            break
    _synchronize()
    return waiting.fraction, updates, time.perf_counter() - began


@contextmanager
def _without_onednn() -> Iterator[None]:
    before = torch.backends.mkldnn.enabled
    torch.backends.mkldnn.enabled = False  # type: ignore[assignment]
    try:
        yield
    finally:
        torch.backends.mkldnn.enabled = before


def _on_cpu(batch: Any) -> Any:
    if isinstance(batch, Movable | torch.Tensor):
        return batch.to("cpu")
    if isinstance(batch, tuple):
        parts = map(_on_cpu, batch)
        return batch._make(parts) if hasattr(batch, "_make") else tuple(parts)
    return batch


def _synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _forget_peak() -> None:
    """Begin to look for the peak of the memory anew; on a CPU, where the system can."""
    if device().type == "cuda":
        torch.cuda.reset_peak_memory_stats()
        return
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _peak_mebibytes() -> float:
    if device().type == "cuda":
        return torch.cuda.max_memory_allocated() / 2**20
    status = Path("/proc/self/status")
    if status.is_file():
        lines = dict(line.split(":", 1) for line in status.read_text(encoding="ascii").splitlines())
        return int(lines["VmHWM"].split()[0]) / 1024
    bytes_each = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * bytes_each / 2**20
