"""Questions to a memory machine: what it does on random tapes of a length, also beyond the lengths of its training."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from regard.errors import OptionError
from regard.systems.tape.evaluation import score_batches, tapes_of_length
from regard.systems.tape.model import Tape, TuringMachine

MULTIPLES = (1, 2, 3, 4, 6, 8, 10)
LONGEST = MULTIPLES[-1]
"""Longest tapes that are asked for by default, in multiples of the longest of the training."""


@dataclass(frozen=True)
class LengthScore:
    """How well tapes of one length are answered."""

    length: int
    bits_right: float
    """Percent of the bits that are right."""
    exact: float
    """Percent of the tapes without a wrong bit."""
    bits: float
    """Bits that it takes to correct the answer to a tape, on average."""


def needed_slots(model: TuringMachine, length: int) -> int:
    """How many slots a memory takes for a sequence of this length: those of the training, or more where it is long."""
    return max(model.config.slots, model.task.slots(length))


def random_tape(model: TuringMachine, length: int, *, seed: int = 1, **options: Any) -> Tape:
    """Answer a random sequence of this length, with a memory that is large enough for it.

    Options are the fields of `TapeOptions`. The same seed and length give the same sequence.
    """
    model.task.check_length(length)
    rows = model.task.draw(1, length, torch.Generator().manual_seed(seed)).rows[0]
    if model.config.architecture == "ntm" and not options.get("slots"):
        options = {**options, "slots": needed_slots(model, length)}
    checked = model.options(options)
    only: Tape = model.answer([rows], checked)[0]
    return only


def default_lengths(model: TuringMachine) -> list[int]:
    """MULTIPLES of the longest sequence of the training."""
    return [multiple * model.task.max_length for multiple in MULTIPLES]


def length_scores(
    model: TuringMachine, lengths: Sequence[int] = (), *, per_length: int = 20, seed: int = 1
) -> list[LengthScore]:
    """Measure `per_length` random tapes of each length; by default the `default_lengths`."""
    model.check_mode()
    if per_length < 1:
        raise OptionError(f"per_length must be 1 or more; got {per_length}.")
    task = model.task
    lengths = lengths or default_lengths(model)
    for length in lengths:
        task.check_length(length)
    scores = []
    for length in lengths:
        slots = needed_slots(model, length) if model.config.architecture == "ntm" else 0
        found = score_batches(model, tapes_of_length(task, length, per_length, seed=seed + length), slots)
        scores.append(LengthScore(length, found["bits right"], found["exact sequences"], found["bits per sequence"]))
    return scores
