"""Whether the read heads of a memory machine matter: what each step of the answer loses without each slot."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from regard.decoders.protocol import select
from regard.layers.memory import INITIAL_CONTENT, MemoryState
from regard.systems.faithfulness import Ablation, Evidence
from regard.systems.tape.config import TapeOptions
from regard.systems.tape.model import Tape, TuringMachine
from regard.systems.tape.networks import TuringNetwork
from regard.work import proceed
from regard.worlds.tapes import Tapes

MAX_STEPS, MAX_SLOTS = 60, 60
"""The first steps of an answer, and the slots with the most content, that are measured."""
MIN_CONTENT = 1e-4
"""Mean square above which a slot counts as used."""
METHOD = (
    "Before each step of the answer, each slot of the memory that holds something is blanked in turn: the drop of the "
    "log-probability of the right bits in this step and the next without the slot that is read most, beside the mean "
    "over these slots."
)


def evidence(model: TuringMachine, sequence: Any, options: TapeOptions, result: Tape) -> Evidence | None:
    """Where the read heads are while the machine answers, and what blanking slots costs; None without a memory."""
    if not isinstance(model.network, TuringNetwork):
        return None
    tape = model.tape_of(sequence, options)
    weights, effects = slot_effects(model.network, tape, slots=options.slots or None)
    ablation = Ablation.from_effects([weights], [effects], unit="log-probability of two rows", method=METHOD)
    return Evidence([weights], "slots of the memory", ablation)


@torch.inference_mode()
def slot_effects(
    network: TuringNetwork, tape: Tapes, *, slots: int | None = None
) -> tuple[Float[np.ndarray, "t n"], Float[np.ndarray, "t n"]]:
    """At each scored step, the mean weight of the read heads on each used slot, and what blanking the slot costs."""
    device = next(network.parameters()).device
    inputs, targets = network.controller.project(tape.inputs.to(device)), tape.targets[0].to(device)
    scored = tape.scored.nonzero().flatten()[:MAX_STEPS].tolist()
    now = _Moment(network.controller.start(1), network.memory.start(1, slots=slots), network.first_read.expand(1, -1))
    weights, drops = [], []
    used: Tensor | None = None
    for step in range(scored[-1] + 1 if scored else 0):
        proceed()
        _, after = _advance(network, inputs[step], now)
        if step in scored:
            used = _used_slots(now.memory) if used is None else used
            weights.append(after.memory.weights[0, : network.memory.sizes.reads].mean(0)[used])
            rows = [each for each in (step, step + 1) if each in scored]
            scores = [_scores(network, inputs, targets, rows, each) for each in (now, _blanked(now, used))]
            drops.append(scores[0] - scores[1])
        now = after
    if not weights:
        return np.zeros((0, 0)), np.zeros((0, 0))
    return torch.stack(weights).double().cpu().numpy(), torch.stack(drops).double().cpu().numpy()


@dataclass(frozen=True)
class _Moment:
    """A machine between two steps."""

    state: Any
    memory: MemoryState
    read: Float[Tensor, "b r"]


def _advance(network: TuringNetwork, inputs: Tensor, now: _Moment) -> tuple[Float[Tensor, "b y"], _Moment]:
    """One step: the logits of the answer, and the machine after it."""
    hidden, state = network.controller(inputs.expand(len(now.read), -1), now.read, now.state)
    accessed = network.memory(hidden, now.memory)
    read = accessed.read.flatten(1)
    return network.output(torch.cat([hidden, read], -1)), _Moment(state, accessed.state, read)


def _used_slots(memory: MemoryState) -> Int[Tensor, "n"]:
    """The slots that hold something, those with the most first."""
    sizes = (memory.content[0] - INITIAL_CONTENT).square().mean(0)
    largest = sizes.topk(min(MAX_SLOTS, len(sizes))).indices
    return largest[sizes[largest] > MIN_CONTENT]


def _blanked(now: _Moment, used: Int[Tensor, "n"]) -> _Moment:
    """A batch of copies of a machine, in each of which one slot is blank."""
    rows = torch.zeros(len(used), dtype=torch.long, device=used.device)
    copies = select(now, rows)
    content = copies.memory.content.clone()
    content[torch.arange(len(used), device=used.device), :, used] = INITIAL_CONTENT
    return replace(copies, memory=replace(copies.memory, content=content))


def _scores(
    network: TuringNetwork, inputs: Tensor, targets: Tensor, rows: list[int], now: _Moment
) -> Float[Tensor, "b"]:
    """The log-probability of some rows of the answer, one after the other."""
    total = now.read.new_zeros(len(now.read))
    for row in rows:
        logits, now = _advance(network, inputs[row], now)
        wanted = targets[row].expand_as(logits)
        total = total - functional.binary_cross_entropy_with_logits(logits, wanted, reduction="none").sum(-1)
    return total
