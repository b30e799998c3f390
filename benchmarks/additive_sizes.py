"""From which size on additive attention's kernels are faster than the plain formula, and what kernel="auto" takes.

    python benchmarks/additive_sizes.py

For sizes from a few words to long documents, on the GPU where there is one. The rivals run in turns, each several calls
in a row, since what one launch takes scatters; compared are the medians of their times: on a GPU, auto beside what it
does not take, the kernels or the formula; on a CPU, auto beside the formula.
"""

import math
from collections.abc import Callable

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from regard import attend, score
from regard.attention.attend import Kernel
from regard.bench.contest import Contest, device, hold

SIZES = [
    (1, 1, 20, 512), (1, 2, 8, 64), (8, 8, 8, 64), (16, 16, 16, 128), (64, 1, 20, 512),
    (32, 20, 20, 128), (80, 1, 30, 1000), (64, 20, 20, 128), (90, 1, 47, 1000), (64, 20, 20, 256),
    (64, 20, 20, 512), (64, 20, 20, 1024),
    (8, 100, 100, 256), (4, 4, 1000, 256), (16, 64, 256, 256), (64, 50, 50, 512), (64, 50, 50, 1024),
    (1, 1000, 1000, 64), (4, 200, 4000, 64), (8, 250, 250, 512), (8, 500, 500, 256), (2, 2000, 2000, 128),
]  # fmt: skip
MOST_ON_CPU = 1 << 28
"""Features of pairs; the formula holds some tensors of that size."""
ON_GPU, ON_CPU, LARGE_ON_CPU = (101, 3), (101, 1), (9, 1)
"""How often the rivals take turns, and how many calls in a row a turn is."""
LARGE = 1 << 23


class Projected(score.TanhSum):
    """The additive score of queries and keys that are projected already."""

    def __init__(self, direction: Tensor) -> None:
        super().__init__(len(direction), len(direction), len(direction))
        self.direction = torch.nn.Parameter(direction)


def contest(size: tuple[int, int, int, int], where: torch.device, in_a_row: int, *, both: bool) -> tuple[Contest, str]:
    """The formula, on a GPU the kernels, and auto, forward or in both passes; and what auto does not take."""
    batch, queries, keys, dim = size
    shapes = [(batch, queries, dim), (batch, keys, dim), (batch, keys, dim), (dim,)]
    query, key, values, direction = (torch.randn(shape, device=where, requires_grad=True) for shape in shapes)
    compare = Projected(direction.detach())

    def run(kernel: Kernel) -> Callable[[], object]:
        def forward() -> Tensor:
            return attend(query, key, values, score=compare, kernel=kernel).context

        def without_gradients() -> Tensor:
            with torch.no_grad():
                return forward()

        once = (lambda: torch.autograd.grad(forward().sum(), [query, key, values])) if both else without_gradients

        def several() -> None:
            for _ in range(in_a_row):
                once()

        return several

    kernels: list[Kernel] = ["reference", "fused", "auto"] if where.type == "cuda" else ["reference", "auto"]
    with torch.set_grad_enabled(both):
        other = "fused" if where.type == "cuda" and not compare.prefers_read(query, key) else "reference"
    name = f"{' '.join(map(str, size))} {'both' if both else 'forward'}"
    return Contest(name, {kernel: run(kernel) for kernel in kernels}), other


def main() -> None:
    where = device()
    table = Table("b q k d", "features", "pass", "formula, ms", "kernels, ms", "auto, ms", "auto / the other")
    for size in SIZES:
        if where.type == "cpu" and math.prod(size) > MOST_ON_CPU:
            continue
        repeats, in_a_row = ON_GPU if where.type == "cuda" else LARGE_ON_CPU if math.prod(size) > LARGE else ON_CPU
        for both in (False, True):
            rivals, other = contest(size, where, in_a_row, both=both)
            results = hold([rivals], repeats=repeats, progress=False)
            taken = {result.rival: 1e3 * result.median / in_a_row for result in results}
            times = (f"{taken[name]:.3f}" if name in taken else "" for name in ("reference", "fused", "auto"))
            sizes = [" ".join(map(str, size)), f"{math.prod(size):.1e}", "both" if both else "forward"]
            table.add_row(*sizes, *times, f"{taken['auto'] / taken[other]:.2f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
