"""Whether memory grows with the number of calls, for `tests/systems/test_memory.py` and `make soak`."""

import ctypes
import gc
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

STATM = Path("/proc/self/statm")
TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None) if STATM.exists() else None


@dataclass(frozen=True)
class Usage:
    """What a process holds."""

    objects: int
    """Python's containers, tensors and other objects that may hold others."""
    blocks: int
    """Python's allocations: texts and numbers too. Their number settles only after some hundred calls."""
    resident: float
    """Memory in MiB, that of tensors included; 0 where the system does not tell."""

    def __sub__(self, other: "Usage") -> "Usage":
        return Usage(self.objects - other.objects, self.blocks - other.blocks, self.resident - other.resident)


def usage() -> Usage:
    """What this process holds now, without what is only waiting to be collected."""
    gc.collect()
    if TRIM is not None:
        TRIM(0)  # free memory that the allocator keeps depends on the order of calls, and is no leak
    resident = int(STATM.read_text().split()[1]) * 4096 / 2**20 if STATM.exists() else 0.0
    return Usage(len(gc.get_objects()), sys.getallocatedblocks(), resident)


def growth(ask: Callable[[int], object], first: int, last: int) -> Usage:
    """How much more this process holds after `last` calls than after the `first`; calls are numbered from 0."""
    gc.freeze()  # what is there already is not looked through again, which takes a second for all libraries
    try:
        for number in range(first):
            ask(number)
        before = usage()
        for number in range(first, last):
            ask(number)
        return usage() - before
    finally:
        gc.unfreeze()
