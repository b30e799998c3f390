"""How good a memory machine is: bits per sequence, exact sequences, and the same for longer tapes."""

import math
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from regard.errors import counted
from regard.systems.report import Measure, Report
from regard.systems.tape.config import TapeTest
from regard.systems.tape.model import TuringMachine
from regard.worlds.tapes import NGrams, RepeatCopy, Tapes, Task

MAX_TAPES = 100
"""Tapes of one length that are answered together."""
MULTIPLES = (1, 2, 3, 6)
"""Further lengths that are measured by default, in multiples of the longest of the training."""


class Scored(NamedTuple):
    """Scores of each tape of a batch."""

    bits: Float[Tensor, "b"]
    """Bits that it takes to correct the answer: the cross-entropy of all bits that count, in bits."""
    wrong: Int[Tensor, "b"]
    """Wrong bits."""
    counted: int
    """Bits that count."""

    @property
    def exact(self) -> Bool[Tensor, "b"]:
        """Whether every bit is right."""
        return self.wrong == 0


def score_tapes(logits: Float[Tensor, "b t y"], tapes: Tapes) -> Scored:
    """Compare answers with the right ones."""
    lost = functional.binary_cross_entropy_with_logits(logits.double(), tapes.targets.double(), reduction="none")
    counted = tapes.scored[:, None]
    wrong = ((logits > 0) != (tapes.targets > 0.5)) & counted
    bits = (lost * counted).sum((1, 2)) / math.log(2)
    return Scored(bits, wrong.sum((1, 2)), int(tapes.scored.sum()) * logits.shape[-1])


def tapes_of_all_lengths(task: Task, count: int, *, seed: int) -> list[Tapes]:
    """`count` tapes or a few more, as many of each length from min_length to max_length, on the CPU."""
    lengths = range(task.min_length, task.max_length + 1)
    return [
        tapes
        for length in lengths
        for tapes in tapes_of_length(task, length, math.ceil(count / len(lengths)), seed=seed + length)
    ]


def tapes_of_length(task: Task, length: int, count: int, *, seed: int) -> list[Tapes]:
    """Batches with `count` tapes of one length, or a few more: repeat-copy has as many of each number of copies."""
    generator = torch.Generator().manual_seed(seed)
    if isinstance(task, RepeatCopy):
        each, numbers = math.ceil(count / task.max_repeats), range(1, task.max_repeats + 1)
        drawn = (task.draw(part, length, generator, repeats=number) for number in numbers for part in _parts(each))
        return [task.write(sequences) for sequences in drawn]
    return [task.sample(part, length, generator) for part in _parts(count)]


def _parts(count: int) -> list[int]:
    """A number of tapes, in batches of at most MAX_TAPES."""
    return [min(MAX_TAPES, count - first) for first in range(0, count, MAX_TAPES)]


def evaluate(model: TuringMachine, test_set: TapeTest, *, name: str = "model") -> Report:
    """Answer fresh tapes of the task: of the lengths of the training, and of further lengths one by one."""
    model.check_mode()
    task, slots = model.task, test_set.slots
    lengths = test_set.lengths or _default_lengths(model, slots)
    for length in (task.max_length, *lengths):
        task.check_length(length)
        model.check_slots(length, slots)
    # Beyond the seeds of the validation, and apart from each other.
    seed = 2**40 + 2**20 * test_set.seed
    trained = tapes_of_all_lengths(task, test_set.count, seed=seed)
    overall = score_batches(model, trained, slots)
    scores = {
        "bits per sequence": Measure(overall["bits per sequence"], "{:.3f}", "to correct the answer; 0 is best"),
        "exact sequences": Measure(overall["exact sequences"], note="percent without a wrong bit"),
        "bits right": Measure(overall["bits right"], "{:.3f}", "percent"),
    }
    if isinstance(task, NGrams):
        best = [task.best_bits(torch.cat([tapes.inputs, tapes.targets[:, -1:]], 1)) for tapes in trained]
        note = "bits per sequence of the best predictor, which counts"
        scores["best possible"] = Measure(float(torch.cat(best).mean()), "{:.3f}", note)
    table = []
    for length in lengths:
        tapes = tapes_of_length(task, length, test_set.per_length, seed=seed + 2**19 + length)
        table.append({"length": length, **score_batches(model, tapes, slots)})
    title = f"{counted(overall['tapes'], 'tape')} of {task.name}, {task.min_length} to {task.max_length} {task.unit}"
    return Report(name, title, scores, {"By length": table} if table else {})


@torch.inference_mode()
def score_batches(model: TuringMachine, batches: list[Tapes], slots: int = 0) -> dict[str, Any]:
    """The mean scores of all tapes; `slots` is the number of slots of the memory, 0 for as many as in training."""
    bits, wrong, counted = [], [], 0
    for tapes in batches:
        logits = model.network.unroll(tapes.inputs.to(model.device), slots=slots or None).logits.cpu()
        scored = score_tapes(logits, tapes)
        bits.append(scored.bits)
        wrong.append(scored.wrong)
        counted += scored.counted * len(logits)
    all_bits, all_wrong = torch.cat(bits), torch.cat(wrong)
    return {
        "tapes": len(all_bits),
        "bits per sequence": float(all_bits.mean()),
        "exact sequences": 100 * float((all_wrong == 0).double().mean()),
        "bits right": 100 * (1 - float(all_wrong.sum()) / max(1, counted)),
    }


def _default_lengths(model: TuringMachine, slots: int) -> tuple[int, ...]:
    """Multiples of the longest sequence of the training that the memory can hold."""
    task, config = model.task, model.config
    lengths = [multiple * task.max_length for multiple in MULTIPLES]
    if config.architecture != "ntm":
        return tuple(lengths)
    return tuple(length for length in lengths if task.slots(length) <= (slots or config.slots))
