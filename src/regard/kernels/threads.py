"""The number of CPU threads that suits the size of the work."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

SMALL = 250_000_000
"""Number of multiplications in a step below which a second thread gains little: 1.0 to 1.3 times on two idle cores."""


@contextmanager
def threads_for(multiplications: int) -> Iterator[None]:
    """Compute on one CPU thread if each step takes fewer than `SMALL` multiplications; restore the number afterwards.

    In small operations threads mostly wait for each other. Where another process uses one of the cores, each of them
    waits for the operating system, and decoding takes up to 13 times as long. Set OMP_NUM_THREADS to decide yourself.

    torch keeps the number for each Python thread. One that first uses torch while another is in here begins with 1.
    """
    before = torch.get_num_threads()
    if before == 1 or multiplications >= SMALL or "OMP_NUM_THREADS" in os.environ:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
