"""From which size on additive attention's kernels for a GPU are faster than the plain formula.

    python benchmarks/additive_sizes.py

For sizes from a few words to long documents: the plain formula, the kernels, and what kernel="auto" takes.
"""

import math
import statistics
import time
from collections.abc import Callable

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from regard import attend, score
from regard.attention.attend import Kernel

SIZES = [
    (1, 2, 8, 64), (8, 8, 8, 64), (16, 16, 16, 128), (64, 20, 20, 128), (64, 20, 20, 512), (64, 20, 20, 1024),
    (8, 100, 100, 256), (4, 4, 1000, 256), (16, 64, 256, 256), (64, 50, 50, 512), (64, 50, 50, 1024),
    (1, 1000, 1000, 64), (4, 200, 4000, 64), (8, 250, 250, 512), (8, 500, 500, 256), (2, 2000, 2000, 128),
]  # fmt: skip


class Projected(score.TanhSum):
    """The additive score of queries and keys that are projected already."""

    def __init__(self, direction: Tensor) -> None:
        super().__init__(len(direction), len(direction), len(direction))
        self.direction = torch.nn.Parameter(direction)


def milliseconds(run: Callable[[], object], repeats: int = 15) -> float:
    times = []
    for _ in range(repeats + 3):
        torch.cuda.synchronize()
        began = time.perf_counter()
        run()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return 1e3 * statistics.median(times[3:])


def rivals(batch: int, queries: int, keys: int, dim: int) -> tuple[list[Tensor], list[Callable[[], Tensor]]]:
    """The inputs, and attend with the plain formula, with the kernels, and as it chooses."""
    shapes = [(batch, queries, dim), (batch, keys, dim), (batch, keys, dim), (dim,)]
    query, key, values, direction = (torch.randn(shape, device="cuda", requires_grad=True) for shape in shapes)
    compare = Projected(direction.detach())

    def run(kernel: Kernel) -> Callable[[], Tensor]:
        return lambda: attend(query, key, values, score=compare, kernel=kernel).context

    return [query, key, values], [run("reference"), run("fused"), run("auto")]


def times(size: tuple[int, int, int, int], *, both: bool) -> list[float]:
    """Milliseconds of each rival, forward or in both passes."""
    inputs, runs = rivals(*size)

    def measured(run: Callable[[], Tensor]) -> float:
        if both:
            return milliseconds(lambda: torch.autograd.grad(run().sum(), inputs))
        with torch.no_grad():
            return milliseconds(run)

    return [measured(run) for run in runs]


def main() -> None:
    table = Table("b q k d", "features", "pass", "formula, ms", "kernels, ms", "auto, ms", "auto / the better")
    for size in SIZES:
        for both in (False, True):
            taken = times(size, both=both)
            row = [" ".join(map(str, size)), f"{math.prod(size):.1e}", "both" if both else "forward"]
            table.add_row(*row, *(f"{value:.3f}" for value in taken), f"{taken[2] / min(taken[:2]):.2f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
