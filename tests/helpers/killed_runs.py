"""Trainings in processes of their own that are killed, for `tests/training/test_killed.py` and `make soak`.

A server process imports torch once; each training is forked from it, so that it begins within a second.
"""

import multiprocessing
import signal
import time
from pathlib import Path

from regard.files import DRAFT

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["helpers.runs", "regard.training.fit", "regard.systems.run", "regard.cli"])
SLOW = 0.05
"""Seconds that a checkpoint takes to be flushed, so that a process can be killed meanwhile."""


def train_small(kind: str, data: Path, out: Path, losses: Path, slow: float = 0.0) -> None:
    """Train, or go on, and write the loss of each update to a file; what a process does until it is killed."""
    import torch

    import regard.files
    from helpers.runs import small_recipe, watch_losses
    from regard.systems.run import train
    from regard.training.divergence import Divergence

    torch.set_num_threads(1)
    if slow:
        flush = regard.files._flush
        regard.files._flush = lambda path: (time.sleep(slow), flush(path))[1]
    with losses.open("a") as stream:
        Divergence.update = watch_losses(_Lines(stream))
        train(small_recipe(kind, data, epochs=3), out=out, resume=True, progress=False)


class _Lines(dict[int, float]):
    """Writes each loss as a line, exactly."""

    def __init__(self, stream) -> None:
        self.stream = stream

    def __setitem__(self, step: int, loss: float) -> None:
        self.stream.write(f"{step} {loss.hex()}\n")
        self.stream.flush()


def read_losses(path: Path) -> dict[int, set[float]]:
    """The losses of each update, which differ where the update was computed twice with different results."""
    found: dict[int, set[float]] = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        step, loss = line.split()
        found.setdefault(int(step), set()).add(float.fromhex(loss))
    return found


def run_and_kill(kind: str, data: Path, out: Path, losses: Path, *, updates: int, writing: bool) -> bool:
    """Begin a training, or go on with it, and kill it after so many updates, or while it writes a checkpoint then.

    Returns whether it was killed before it ended by itself.
    """
    process = PROCESSES.Process(target=train_small, args=(kind, data, out, losses, SLOW if writing else 0.0))
    process.start()
    deadline = time.monotonic() + 600
    while process.is_alive() and time.monotonic() < deadline:
        if len(read_losses(losses)) >= updates and (not writing or list((out / "checkpoints").glob(f".*{DRAFT}"))):
            break
        time.sleep(0.001)
    process.kill()
    process.join()
    return process.exitcode == -signal.SIGKILL


def command_with_limit(size: int, said: Path, *arguments: str) -> None:
    """Run a command that cannot write files larger than this, and write what it says to a file."""
    import os
    import resource
    import sys

    from regard.cli import main

    # Where a file ends too early, Python writes half a module, which every later process fails to import.
    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT), 2)
    main(arguments)


def run_to_the_end(kind: str, data: Path, out: Path, losses: Path) -> None:
    """Begin a training, or go on with it, and wait for its end."""
    process = PROCESSES.Process(target=train_small, args=(kind, data, out, losses))
    process.start()
    process.join()
    if process.exitcode:
        raise RuntimeError(f"The training of a {kind} ended with status {process.exitcode}.")
