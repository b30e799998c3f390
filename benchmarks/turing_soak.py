"""Train neural Turing machines with hostile settings for a long time, and check that every number stays finite.

    python benchmarks/turing_soak.py                     # 100,000 updates of each: about 15 minutes on two cores
    python benchmarks/turing_soak.py --updates 1000      # a quick try

Learning rates are ten times those of the recipes and gradients are hardly clipped, so that the machines come to strong
keys, large exponents and full memories again and again. The exit status is 1 if any number is NaN or infinite.
"""

import argparse
import sys

import torch
from rich.console import Console
from rich.progress import track

from regard.systems.memory.experiment import TapeTask, TapeTrain, bit_loss, clip_finite
from regard.systems.memory.model import TuringMachine, TuringMachineConfig
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


def soak(task: Task, config: dict[str, object], updates: int, name: str) -> str:
    """Train; returns what is wrong, or nothing."""
    torch.manual_seed(1)
    machine = TuringMachine(TuringMachineConfig(**config), task)
    training = TapeTask(machine, TapeTrain(batch_size=8, learning_rate=0.03), total_steps=updates)
    optimizer, parameters = training.make_optimizer(), list(machine.parameters())
    losses = []
    for step in track(range(updates), name, console=Console(stderr=True)):
        tapes = training.tapes(step)
        loss = bit_loss(machine(tapes.inputs), tapes)
        optimizer.zero_grad()
        loss.backward()
        clip_finite(parameters, 100.0)
        optimizer.step()
        losses.append(loss.detach())
        if len(losses) == CHECK_EVERY:
            if not torch.stack(losses).isfinite().all():
                return f"{name}: the loss is not finite around update {step + 1}"
            if not all(part.isfinite().all() for part in parameters):
                return f"{name}: a parameter is not finite after update {step + 1}"
            losses = []
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=100_000)
    chosen = parser.parse_args()
    wrong = [found for name, (task, config) in MACHINES.items() if (found := soak(task, config, chosen.updates, name))]
    for found in wrong:
        print(found)
    if wrong:
        sys.exit(1)
    print(f"{len(MACHINES)} machines, {chosen.updates:,} updates each: every number is finite.")


if __name__ == "__main__":
    main()
