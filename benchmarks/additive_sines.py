"""Additive attention in bfloat16 by sums of sines, beside the other kernels and the formula: times and errors.

    python benchmarks/additive_sines.py

On a GPU. Queries and keys are scaled so that their largest inputs together just stay within a reach, for which there
are sines. Errors are the largest of the logits against float64, of inputs that are bfloat16 for all.
"""

from collections.abc import Callable

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from regard.bench.contest import Contest, hold
from regard.kernels import additive_sines
from regard.kernels.additive import additive_logits_reference
from regard.kernels.additive_gpu import additive_attention, additive_attention_reference, additive_logits

SIZE = (8, 1024, 1024, 512)
NEVER = 1 << 62


def inputs(reach: float) -> list[Tensor]:
    """Queries, keys, values and direction."""
    batch, queries, keys, dim = SIZE
    torch.manual_seed(0)
    shapes = [(batch, queries, dim), (batch, keys, dim), (batch, keys, dim), (dim,)]
    made = [torch.randn(shape, device="cuda") for shape in shapes]
    made[:2] = [0.49 * reach * side / side.abs().max() for side in made[:2]]
    return [part.bfloat16().requires_grad_() for part in (*made[:3], made[3] / dim**0.5)]


def errors(query: Tensor, key: Tensor, direction: Tensor) -> list[float]:
    """Of direct evaluation, the other kernels, and the sines."""
    few = query[:1, :64].detach(), key[:1, :256].detach(), direction.detach()
    exact = additive_logits_reference(*(part.double() for part in few))
    found = [additive_logits_reference(*few)]
    for pays in (NEVER, 1):
        additive_sines.PAYS = pays
        found.append(additive_logits(query.detach(), key.detach(), direction.detach())[:1, :64, :256])
    return [(logits.double() - exact).abs().max().item() for logits in found]


def contest(parts: list[Tensor], *, both: bool) -> Contest:
    """The whole attention, softmax and read included."""

    def run(attention: Callable[..., Tensor], pays: int) -> Callable[[], object]:
        def attended() -> Tensor:
            additive_sines.PAYS = pays
            return attention(*parts)

        if both:
            return lambda: torch.autograd.grad(attended().sum(), parts)
        return torch.no_grad()(attended)

    rivals = {
        "formula": run(additive_attention_reference, NEVER),
        "kernels": run(additive_attention, NEVER),
        "sines": run(additive_attention, 1),
    }
    return Contest("both" if both else "forward", rivals)


def main() -> None:
    table = Table(
        "reach", "sines", "wrong: direct", "kernels", "sines", "pass", "formula, ms", "kernels, ms", "sines, ms"
    )
    for waves in additive_sines.WAVES:
        parts = inputs(waves.reach)
        wrong = [f"{error:.4f}" for error in errors(parts[0], parts[1], parts[3])]
        for both in (False, True):
            times = [f"{1e3 * result.median:.2f}" for result in hold([contest(parts, both=both)], progress=False)]
            table.add_row(f"{waves.reach}", f"{len(waves.frequencies)}", *wrong, "both" if both else "forward", *times)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
