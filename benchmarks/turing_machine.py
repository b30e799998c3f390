"""Updates of a neural Turing machine: regard beside a plain loop, on the CPU or on a GPU.

    python benchmarks/turing_machine.py                  # the GPU when there is one, otherwise the CPU
    python benchmarks/turing_machine.py --device cpu --threads 2

Both train the same machine (LSTM controller of 100 units, memory of 128 x 20) on the same copying tapes of 1 to 20
vectors of 8 bits, and take turns, so that other work on the machine slows both alike. The plain loop is the paper's
formulas in torch, batched, with autograd. On a GPU, regard records its loop as CUDA graphs while it warms up; each
length of a tape, rounded up, is recorded once. A second table compares batches of 64 with single tapes.
"""

import argparse
import random
import statistics
import time
from collections.abc import Callable

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.nn import functional

from regard.systems.tape.networks import TuringNetwork
from regard.systems.tape.training import bit_loss
from regard.worlds.tapes import Copy

HIDDEN, SLOTS, WIDTH = 100, 128, 20


class PlainMachine(nn.Module):
    """A neural Turing machine with one head that reads and one that writes, formula by formula."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(inputs + WIDTH, HIDDEN)
        self.read = nn.Linear(HIDDEN, WIDTH + 6)
        self.write = nn.Linear(HIDDEN, 3 * WIDTH + 6)
        self.output = nn.Linear(HIDDEN + WIDTH, outputs)

    def address(self, parameters: Tensor, memory: Tensor, last: Tensor) -> Tensor:
        """The weights of a head."""
        key, strength, gate, shift, sharpen = parameters.split([WIDTH, 1, 1, 3, 1], -1)
        similarity = functional.cosine_similarity(memory, key.tanh().unsqueeze(1), dim=-1)
        content = torch.softmax(functional.softplus(strength) * similarity, -1)
        gate = torch.sigmoid(gate)
        gated = gate * content + (1 - gate) * last
        shift = torch.softmax(shift, -1)
        shifted = sum(gated.roll(step, -1) * shift[:, step + 1 : step + 2] for step in (-1, 0, 1))
        sharpened = (shifted + 1e-12) ** (1 + functional.softplus(sharpen))
        return sharpened / sharpened.sum(-1, keepdim=True)

    def forward(self, inputs: Tensor) -> Tensor:
        """The logits of all steps, one after another."""
        batch = len(inputs)
        memory = inputs.new_full((batch, SLOTS, WIDTH), 1e-6)
        reading = writing = functional.one_hot(
            torch.zeros(batch, dtype=torch.int64, device=inputs.device), SLOTS
        ).float()
        read, state, outputs = inputs.new_zeros(batch, WIDTH), None, []
        for each in inputs.unbind(1):
            state = self.cell(torch.cat([each, read], -1), state)
            hidden = state[0]
            written = self.write(hidden)
            reading = self.address(self.read(hidden), memory, reading)
            writing = self.address(written[:, : WIDTH + 6], memory, writing)
            read = (reading.unsqueeze(1) @ memory).squeeze(1)
            erase, add = written[:, WIDTH + 6 :].split(WIDTH, -1)
            focus = writing.unsqueeze(2)
            memory = memory * (1 - focus * torch.sigmoid(erase).unsqueeze(1)) + focus * add.tanh().unsqueeze(1)
            outputs.append(self.output(torch.cat([hidden, read], -1)))
        return torch.stack(outputs, 1)


def trainer(network: nn.Module, device: str, batch: int, seed: int = 1) -> Callable[[], int]:
    """A function that makes one update and returns its number of tapes."""
    task, draw = Copy(), random.Random(seed)  # noqa: S311 - not for secrets
    generator = torch.Generator(device).manual_seed(seed)
    network.to(device).train()
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, fused=device == "cuda")

    def update() -> int:
        tapes = task.sample(batch, draw.randint(1, 20), generator)
        loss = bit_loss(network(tapes.inputs), tapes)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 0.3)
        optimizer.step()
        return batch

    return update


def speeds(
    updates: dict[str, Callable[[], int]], *, rounds: int, seconds: float, device: str
) -> dict[str, list[float]]:
    """Updates a second of each, in every round; they take turns."""
    found: dict[str, list[float]] = {name: [] for name in updates}
    for _ in range(rounds):
        for name, update in updates.items():
            began, count = time.perf_counter(), 0
            while time.perf_counter() - began < seconds:
                update()
                count += 1
                if device == "cuda":
                    torch.cuda.synchronize()
            found[name].append(count / (time.perf_counter() - began))
    return found


def report(title: str, found: dict[str, list[float]], tapes: dict[str, int]) -> None:
    table = Table("", "updates/s", "min - max", "tapes/s", "times as fast", title=title, title_justify="left")
    first = None
    for name, values in found.items():
        rate = statistics.median(values)
        throughput = rate * tapes[name]
        first = first or throughput
        table.add_row(
            name,
            f"{rate:.1f}",
            f"{min(values):.1f} - {max(values):.1f}",
            f"{throughput:,.0f}",
            f"{throughput / first:.1f}",
        )
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int, default=0, help="threads of the CPU; by default those of torch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0, help="seconds of each in a round")
    parser.add_argument("--warm", type=int, default=150, help="updates before the clock starts")
    chosen = parser.parse_args()
    if chosen.threads:
        torch.set_num_threads(chosen.threads)
    device = chosen.device
    task = Copy()
    sizes = task.input_size, task.output_size
    pair = {
        "plain loop": trainer(PlainMachine(*sizes), device, 64),
        "regard": trainer(TuringNetwork(*sizes, hidden=HIDDEN, slots=SLOTS, width=WIDTH), device, 64),
    }
    batches = {
        "batch of 1": trainer(TuringNetwork(*sizes, hidden=HIDDEN, slots=SLOTS, width=WIDTH), device, 1),
        "batch of 64": pair["regard"],
    }
    for name, update in {**pair, **batches}.items():
        began = time.perf_counter()
        for _ in range(min(10, chosen.warm) if name == "plain loop" or device == "cpu" else chosen.warm):
            update()
        Console(stderr=True).print(f"{name}: ready after {time.perf_counter() - began:.1f} s", highlight=False)
    timing = {"rounds": chosen.rounds, "seconds": chosen.seconds, "device": device}
    where = torch.cuda.get_device_name() if device == "cuda" else f"CPU, {torch.get_num_threads()} threads"
    report(f"Copying tapes of 1 to 20, batch 64 ({where})", speeds(pair, **timing), {"plain loop": 64, "regard": 64})
    report("Training throughput by batch", speeds(batches, **timing), {"batch of 1": 1, "batch of 64": 64})


if __name__ == "__main__":
    main()
