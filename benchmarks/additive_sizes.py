"""At which sizes are the kernels of additive attention faster than the plain formula, and does kernel="auto" know?

    python benchmarks/additive_sizes.py
    python benchmarks/additive_sizes.py --compiled   # auto against torch.compile of the formula, also in bfloat16

Sizes range from a few words to long documents. Everything runs on the GPU when there is one. The formula, the kernels
and auto take turns, each for several calls in a row because single launches vary; medians are compared: on a GPU, auto
with the alternative that it does not choose, the kernels or the formula; on a CPU, auto with the formula.
"""

import argparse
import math
from collections.abc import Callable

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from regard import attend, score
from regard.attention.attend import Kernel
from regard.bench.contest import Contest, device, run_contests
from regard.kernels.additive import prefers_attention_kernels

SIZES = [
    (1, 1, 20, 512), (1, 2, 8, 64), (8, 8, 8, 64), (16, 16, 16, 128), (64, 1, 20, 512),
    (32, 20, 20, 128), (80, 1, 30, 1000), (64, 20, 20, 128), (90, 1, 47, 1000), (64, 20, 20, 256),
    (64, 20, 20, 512), (64, 20, 20, 1024),
    (8, 100, 100, 256), (4, 4, 1000, 256), (16, 64, 256, 256), (64, 50, 50, 512), (64, 50, 50, 1024),
    (1, 1000, 1000, 64), (4, 200, 4000, 64), (8, 250, 250, 512), (8, 500, 500, 256), (2, 2000, 2000, 128),
]  # fmt: skip
"""Batch, queries, keys and features."""
COMPILED_SIZES = [(*few, dim) for few in ((8, 8, 8), (64, 20, 20), (64, 64, 64)) for dim in (64, 128, 256, 512, 1024)]
"""Sizes that are timed beside torch.compile, which takes some seconds to compile each."""
MAX_CPU_FEATURES = 1 << 28
"""Features of query-key pairs up to which a size is timed on a CPU; the formula holds several tensors of that size."""
LARGE_CPU_FEATURES = 1 << 23
GPU_REPEATS, CPU_REPEATS, LARGE_CPU_REPEATS = (101, 3), (101, 1), (9, 1)
"""Number of turns, and calls in a row in each turn."""


class Projected(score.TanhSum):
    """The additive score of queries and keys that are already projected."""

    def __init__(self, direction: Tensor) -> None:
        super().__init__(len(direction), len(direction), len(direction))
        self.direction = torch.nn.Parameter(direction)


def contest(size: tuple[int, int, int, int], where: torch.device, calls: int, *, both: bool) -> tuple[Contest, str]:
    """The formula, auto and, on a GPU, the kernels, in one pass or both; and the name of what auto does not choose."""
    batch, queries, keys, dim = size
    shapes = [(batch, queries, dim), (batch, keys, dim), (batch, keys, dim), (dim,)]
    query, key, values, direction = (torch.randn(shape, device=where, requires_grad=True) for shape in shapes)
    projected = Projected(direction.detach())

    def run(kernel: Kernel) -> Callable[[], object]:
        def forward() -> Tensor:
            return attend(query, key, values, score=projected, kernel=kernel).context

        def without_gradients() -> Tensor:
            with torch.no_grad():
                return forward()

        once = (lambda: torch.autograd.grad(forward().sum(), [query, key, values])) if both else without_gradients

        def several() -> None:
            for _ in range(calls):
                once()

        return several

    kernels: list[Kernel] = ["reference", "fused", "auto"] if where.type == "cuda" else ["reference", "auto"]
    with torch.set_grad_enabled(both):
        alternative = "fused" if where.type == "cuda" and not prefers_attention_kernels(query, key) else "reference"
    name = f"{' '.join(map(str, size))} {'both' if both else 'forward'}"
    return Contest(name, {kernel: run(kernel) for kernel in kernels}), alternative


def compiled_contest(
    size: tuple[int, int, int, int], where: torch.device, dtype: torch.dtype, *, both: bool
) -> Contest:
    """The formula, torch.compile of it, and auto, in one pass or both, with the gradients of v."""
    batch, queries, keys, dim = size
    shapes = [(batch, queries, dim), (batch, keys, dim), (batch, keys, dim)]
    query, key, values = (torch.randn(shape, device=where, dtype=dtype, requires_grad=True) for shape in shapes)
    projected = Projected(torch.randn(dim, device=where, dtype=dtype))

    def formula() -> Tensor:
        return (torch.tanh(query.unsqueeze(2) + key.unsqueeze(1)) @ projected.direction).softmax(-1) @ values

    def timed(forward: Callable[[], Tensor]) -> Callable[[], object]:
        def without_gradients() -> Tensor:
            with torch.no_grad():
                return forward()

        wanted = [query, key, values, projected.direction]
        return (lambda: torch.autograd.grad(forward().sum(), wanted)) if both else without_gradients

    rivals = {
        "formula": formula,
        "torch.compile": torch.compile(formula, dynamic=False),
        "auto": lambda: attend(query, key, values, score=projected).context,
    }
    name = f"{' '.join(map(str, size))} {str(dtype).removeprefix('torch.')} {'both' if both else 'forward'}"
    return Contest(name, {rival: timed(forward) for rival, forward in rivals.items()})


def beside_compiled(where: torch.device) -> Table:
    """How auto compares with torch.compile of the formula where there are few pairs."""
    table = Table("b q k d, dtype, pass", "formula, ms", "torch.compile, ms", "auto, ms", "torch.compile / auto")
    for both in (False, True):
        for dtype in (torch.float32, torch.bfloat16):
            for size in COMPILED_SIZES:
                torch.compiler.reset()
                rivals = compiled_contest(size, where, dtype, both=both)
                timings = run_contests([rivals], repeats=GPU_REPEATS[0], progress=False)
                formula, compiled, auto = (1e3 * timing.median for timing in timings)
                cells = (f"{milliseconds:.3f}" for milliseconds in (formula, compiled, auto))
                table.add_row(rivals.name, *cells, f"{compiled / auto:.2f}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiled", action="store_true", help="time auto beside torch.compile of the formula")
    where = device()
    if parser.parse_args().compiled:
        Console(width=120).print(beside_compiled(where))
        return
    table = Table("b q k d", "features", "pass", "formula, ms", "kernels, ms", "auto, ms", "auto / alternative")
    for size in SIZES:
        features = math.prod(size)
        if where.type == "cpu" and features > MAX_CPU_FEATURES:
            continue
        on_cpu = LARGE_CPU_REPEATS if features > LARGE_CPU_FEATURES else CPU_REPEATS
        repeats, calls = GPU_REPEATS if where.type == "cuda" else on_cpu
        for both in (False, True):
            rivals, alternative = contest(size, where, calls, both=both)
            timings = run_contests([rivals], repeats=repeats, progress=False)
            times = {timing.rival: 1e3 * timing.median / calls for timing in timings}
            cells = (f"{times[name]:.3f}" if name in times else "" for name in ("reference", "fused", "auto"))
            sizes = [" ".join(map(str, size)), f"{features:,}", "both" if both else "forward"]
            table.add_row(*sizes, *cells, f"{times['auto'] / times[alternative]:.2f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
