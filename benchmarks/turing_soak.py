"""Train neural Turing machines with hostile settings for a long time, and check that every number stays finite.

    python benchmarks/turing_soak.py                     # 100,000 updates of each: about 15 minutes on two cores
    python benchmarks/turing_soak.py --updates 1000      # a quick try
    python benchmarks/turing_soak.py --minutes 10        # as many as fit into ten minutes

Learning rates are ten times those of the recipes and gradients are hardly clipped, so that the machines come to strong
keys, large exponents and full memories again and again. Each machine has a process and a thread of its own. The exit
status is 1 if any number is NaN or infinite.
"""

import argparse
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import torch

from regard.systems.tape.config import TapeConfig, TapeTrain
from regard.systems.tape.model import TuringMachine
from regard.systems.tape.training import TapeTask, bit_loss, clip_finite
from regard.worlds.tapes import Copy, Recall, Task

CHECK_EVERY = 100
SMALL = {"hidden": 16, "slots": 12, "width": 6}
MACHINES: dict[str, tuple[Task, dict[str, object]]] = {
    "copy, LSTM controller": (Copy(bits=4, max_length=8), SMALL),
    "recall, feed-forward controller, four heads, shifts of 2": (
        Recall(bits=3, item_length=2, max_length=4),
        SMALL | {"controller": "feedforward", "read_heads": 2, "write_heads": 2, "max_shift": 2},
    ),
}


def soak(name: str, updates: int, minutes: float) -> tuple[int, str]:
    """Train; returns the number of updates, and what is wrong or nothing."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    task, config = MACHINES[name]
    machine = TuringMachine(TapeConfig(**config), task)
    training = TapeTask(machine, TapeTrain(batch_size=8, learning_rate=0.03), total_steps=updates)
    optimizer, parameters = training.make_optimizer(), list(machine.parameters())
    losses, began = [], time.monotonic()
    for step in range(1, updates + 1):
        tapes = training.tapes(step - 1)
        loss = bit_loss(machine(tapes.inputs), tapes)
        optimizer.zero_grad()
        loss.backward()
        clip_finite(parameters, 100.0)
        optimizer.step()
        losses.append(loss.detach())
        if step % CHECK_EVERY == 0 or step == updates:
            if not torch.stack(losses).isfinite().all():
                return step, f"{name}: the loss is not finite around update {step}"
            if not all(part.isfinite().all() for part in parameters):
                return step, f"{name}: a parameter is not finite after update {step}"
            losses = []
            if time.monotonic() - began > 60 * minutes:
                return step, ""
    return updates, ""


def main() -> None:
    """Train all machines side by side, and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=100_000)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="end after so many minutes")
    chosen = parser.parse_args()
    began = time.monotonic()
    with ProcessPoolExecutor(len(MACHINES), mp_context=multiprocessing.get_context("spawn")) as workers:
        ended = list(workers.map(partial(soak, updates=chosen.updates, minutes=chosen.minutes), MACHINES))
    for name, (updates, wrong) in zip(MACHINES, ended, strict=True):
        print(f"{name}: {updates:,} updates, {wrong or 'every number is finite'}")
    print(f"{(time.monotonic() - began) / 60:.1f} minutes")
    if any(wrong for _, wrong in ended):
        sys.exit(1)


if __name__ == "__main__":
    main()
