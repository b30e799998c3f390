"""Compare small calls of `attend` and `MultiHead` with torch's: `OMP_NUM_THREADS=1 python benchmarks/small_calls.py`.

Small calls cost what Python does around the kernel. Each row times two functions in turn, in short blocks of calls. The
times are those of the fastest blocks, which other work on the machine disturbs least. Both compute the same context.
"""

import argparse
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from regard import MultiHead, attend, mask, score

DIM, NUM_HEADS = 32, 4
Row = tuple[str, Callable[[], Tensor], Callable[[], Tensor]]


def rows(batch: int, length: int) -> list[Row]:
    """Pairs of functions that compute the same: one of regard, one of torch."""
    query, key, value = (torch.randn(batch, NUM_HEADS, length, DIM) for _ in range(3))
    padding = mask.padding(torch.randint(1, length + 1, (batch, 1)), length)
    fused = functional.scaled_dot_product_attention
    theirs = nn.MultiheadAttention(NUM_HEADS * DIM, NUM_HEADS, batch_first=True)
    ours, x = MultiHead.from_torch(theirs), torch.randn(batch, length, NUM_HEADS * DIM)
    few, words = query[:, 0, :4], key[:, 0]  # without heads
    return [
        ("attend", lambda: attend(query, key, value).context, lambda: fused(query, key, value)),
        (
            "attend, dot",
            lambda: attend(query, key, value, score=score.dot).context,
            lambda: fused(query, key, value, scale=1.0),
        ),
        (
            "attend, padding mask",
            lambda: attend(query, key, value, mask=padding).context,
            lambda: fused(query, key, value, padding),
        ),
        ("attend, 4 queries, no heads", lambda: attend(few, words).context, lambda: fused(few, words, words)),
        (
            "the same, torch with an axis for heads",
            lambda: attend(few, words).context[:, None],
            lambda: fused(few[:, None], words[:, None], words[:, None]),
        ),
        ("MultiHead, self", lambda: ours(x).context, lambda: theirs(x, x, x, need_weights=False)[0]),
    ]


def seconds(function: Callable[[], Tensor], calls: int) -> float:
    """Time of one call, as the mean of a block of calls."""
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - start) / calls


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=400, help="blocks of calls of each function")
    parser.add_argument("--calls", type=int, default=40, help="calls in a block")
    options = parser.parse_args()
    print("| batch x heads x keys x features | call | regard, µs | torch, µs | ratio |\n|---|---|---|---|---|")
    for batch, length in ((1, 16), (1, 64), (8, 16)):
        for name, ours, theirs in rows(batch, length):
            torch.testing.assert_close(ours(), theirs())
            with torch.no_grad():
                blocks = [[seconds(each, options.calls) for each in (ours, theirs)] for _ in range(options.blocks)]
            regard, torchs = (min(times) * 1e6 for times in zip(*blocks, strict=True))
            sizes = f"{batch} x {NUM_HEADS} x {length} x {DIM}"
            print(f"| {sizes} | {name} | {regard:.1f} | {torchs:.1f} | {regard / torchs:.2f} |")


if __name__ == "__main__":
    main()
