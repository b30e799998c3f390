"""Peak memory and time of attention with a network as its score: the plain formula against regard's own method.

    python benchmarks/attention_memory.py                  # additive attention
    python benchmarks/attention_memory.py --score mlp      # another score
    python benchmarks/attention_memory.py --json out.json  # also write the numbers

"plain" is the formula of the papers (kernel="reference"), "lean" is what regard does by default (kernel="auto"). Both
run the whole attention on the same inputs, softmax and weighted sum included. On a CPU, memory is the growth of the
peak resident size of a fresh process that has already loaded its libraries; on a GPU, the peak of torch's allocator.
Times are medians of runs that alternate between the two, with the fastest and the slowest run.
"""

import argparse
import ctypes
import gc
import json
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table

from regard import attend, score
from regard.kernels import additive

KINDS = {"plain": "reference", "lean": "auto"}
SCORES = {
    "additive": lambda dim: score.Additive(dim, dim, dim),
    "concat": lambda dim: score.Concat(dim, dim, dim),
    "mlp": lambda dim: score.MLP(dim, dim, (dim, dim // 4)),
}
PASSES = ("forward", "both")


def make_run(kind: str, step: str, sizes: argparse.Namespace) -> Callable[[], None]:
    """A function that runs one kind; all kinds have the same inputs."""
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    query = torch.randn(sizes.batch, sizes.queries, sizes.dim, device=device, requires_grad=True)
    key = torch.randn(sizes.batch, sizes.keys, sizes.dim, device=device, requires_grad=True)
    network = SCORES[sizes.score](sizes.dim).to(device)

    def run() -> None:
        with torch.set_grad_enabled(step != "forward"):
            context = attend(query, key, score=network, kernel=KINDS[kind]).context
        if step != "forward":
            torch.autograd.grad(context.sum(), [query, key, *network.parameters()])
        if device == "cuda":
            torch.cuda.synchronize()

    return run


def measure_memory(kind: str, step: str, sizes: argparse.Namespace) -> float:
    """MiB that a run takes beyond its inputs, in this process."""
    # A first small run loads libraries, thread pools and the compiler of the loops that large calls use.
    small = argparse.Namespace(batch=2, queries=5, keys=7, dim=sizes.dim, score=sizes.score)
    with (
        mock.patch.object(additive, "MAX_FEATURES_FOR_FORMULA", 0),
        mock.patch.object(score, "MAX_FEATURES_FOR_FORMULA", 0),
        mock.patch.object(additive, "MIN_FEATURES_TO_COMPILE", 1),
    ):
        make_run(kind, step, small)()
    run = make_run(kind, step, sizes)
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        run()
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    _reset_peak()
    before = _peak()
    run()
    return _peak() - before


def _peak() -> float:
    """The most memory that this process has held, in MiB."""
    if sys.platform == "linux":
        # getrusage would give the peak of the process that started this one, where that is larger.
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(re.findall(r"VmHWM:\s*(\d+) kB", status)[0]) / 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def _reset_peak() -> None:
    """On Linux, reset the peak, so that it does not include loading and compiling."""
    if sys.platform == "linux":
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def memory_in_fresh_process(kind: str, step: str, sizes: argparse.Namespace) -> float:
    options = [f"--{name}={getattr(sizes, name)}" for name in ("score", "batch", "queries", "keys", "dim")]
    command = [sys.executable, __file__, *options, "--measure", kind, step]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure_times(sizes: argparse.Namespace) -> dict[tuple[str, str], list[float]]:
    """Milliseconds of each run; the kinds alternate, so that a slow moment affects both."""
    runs = {(kind, step): make_run(kind, step, sizes) for step in PASSES for kind in KINDS}
    for run in runs.values():
        run()
    times: dict[tuple[str, str], list[float]] = {name: [] for name in runs}
    for _ in track(range(sizes.repeats), "Timing", console=Console(stderr=True), transient=True):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            times[name].append(1000 * (time.perf_counter() - start))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--score", choices=SCORES, default="additive", help="default: additive")
    for name, default in [("batch", 4), ("queries", 500), ("keys", 500), ("dim", 256), ("repeats", 5)]:
        parser.add_argument(f"--{name}", type=int, default=default, help=f"default: {default}")
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    parser.add_argument("--measure", nargs=2, metavar=("KIND", "PASS"), help=argparse.SUPPRESS)
    sizes = parser.parse_args()
    if sizes.measure:
        print(measure_memory(*sizes.measure, sizes))
        return

    memory = {
        (kind, step): memory_in_fresh_process(kind, step, sizes)
        for step in track(PASSES, "Measuring memory", console=Console(stderr=True), transient=True)
        for kind in KINDS
    }
    times = measure_times(sizes)
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else f"CPU, {torch.get_num_threads()} threads"
    table = Table(
        "pass", "kind", "MiB", "ms", "min - max", "less memory", "speed",
        title=f"{sizes.score} attention: b={sizes.batch}, q={sizes.queries}, k={sizes.keys}, d={sizes.dim}, float32\n"
        f"torch {torch.__version__}, {device}",
    )  # fmt: skip
    rows = []
    for step in PASSES:
        for kind in KINDS:
            median = statistics.median(times[kind, step])
            saving = memory["plain", step] / max(memory[kind, step], 0.1)
            speed = statistics.median(times["plain", step]) / median
            spread = f"{min(times[kind, step]):.0f} - {max(times[kind, step]):.0f}"
            table.add_row(
                step, kind, f"{memory[kind, step]:,.0f}", f"{median:,.0f}", spread, f"{saving:.1f}x", f"{speed:.1f}x"
            )
            rows.append({"pass": step, "kind": kind, "memory_mib": memory[kind, step], "times_ms": times[kind, step]})
    Console().print(table)
    if sizes.json:
        settings = {name: getattr(sizes, name) for name in ("score", "batch", "queries", "keys", "dim")}
        sizes.json.write_text(json.dumps({"torch": torch.__version__, "device": device, **settings, "rows": rows}))


if __name__ == "__main__":
    main()
