"""Call shipped models of every system 2,000 times, and check that memory is then what it was after 200 calls.

    python tests/soak/call_models.py                     # about five minutes on two cores
    python tests/soak/call_models.py --calls 400         # a quick try

Every call has another input. Python's allocations and the resident memory are compared; the exit status is 1 if an
object, or 8 KiB, stays behind in each call.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent.parent))

from helpers.memory import growth
from helpers.systems import KINDS, fresh_text, load, shipped_case

from regard.systems.translate.alignment import align_pairs

FIRST = 200
MAX_BLOCKS, MAX_KIBIBYTES = 1.0, 8.0
"""What a call may leave behind: most of it is the interpreter's own, which comes to rest later."""


def asking() -> Iterator[tuple[str, Callable[[int], object]]]:
    """What is called, and how with each number."""
    for kind in KINDS:
        case = shipped_case(kind)
        yield f"{case.name}.{case.verb}", lambda number, case=case: case.ask(case.fresh(number))
    model = load("en-fr")
    yield (
        "align with en-fr",
        lambda number: align_pairs(model, [(fresh_text(number).split(), fresh_text(number + 1).split())]),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=2000, help="calls of each model (2000)")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # inputs that a model cannot spell
    wrong, counted = 0, chosen.calls - FIRST
    for name, ask in asking():
        began = time.monotonic()
        more = growth(ask, FIRST, chosen.calls)
        blocks, kibibytes = more.blocks / counted, more.resident * 1024 / counted
        is_wrong = blocks > MAX_BLOCKS or kibibytes > MAX_KIBIBYTES
        wrong += is_wrong
        print(  # noqa: T201
            f"{name}: {chosen.calls} calls, {more.blocks:+,} allocations and {more.resident:+.1f} MiB "
            f"since call {FIRST}{': MEMORY GROWS' if is_wrong else ''} ({time.monotonic() - began:.0f} s)",
            flush=True,
        )
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
