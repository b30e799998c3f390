"""Questions to a memory machine: what it does on random tapes of a length, also beyond the lengths of its training."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import torch
from msgspec import Meta

from regard.errors import OptionError
from regard.search.options import Seed
from regard.systems.endpoint import Streamed, endpoint
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


@dataclass(frozen=True)
class RandomTape:
    """The answer to a random tape, and what lengths the machine knows."""

    task: str
    unit: str
    """What a length counts."""
    length: int
    shortest: int
    """Length of the shortest sequence that the task is defined for."""
    trained: tuple[int, int]
    """Lengths of the shortest and the longest sequence of the training."""
    longest: int
    """Length of the longest sequence that may be asked for."""
    slots: int
    """Slots of the memory, which grows with a long sequence."""
    result: Tape


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


@endpoint("random", example={"length": 40})
def answer_random(
    model: TuringMachine, length: int | None = None, *, seed: Seed = 1, slots: Annotated[int, Meta(ge=0, le=512)] = 0
) -> RandomTape:
    """Answer a random tape of any length, also beyond the lengths of the training.

    Parameters
    ----------
    length
        Length of the sequence; none for the longest of the training.
    seed
        Seed of the sequence.
    slots
        Slots of the memory; 0 for as many as in training, or more where the sequence needs them.
    """
    task = model.task
    longest = LONGEST * task.max_length
    length = task.max_length if length is None else length
    if length > longest:
        raise OptionError(f"Tapes of this machine have at most {longest} {task.unit} here; got {length}.")
    slots = slots or needed_slots(model, length)
    found = random_tape(model, length, seed=seed, slots=slots)
    trained = task.min_length, task.max_length
    return RandomTape(task.name, task.unit, length, task.shortest, trained, longest, slots, found)


@endpoint("lengths", answer="scores", example={"per_length": 4})
def measure_lengths(
    model: TuringMachine, *, per_length: Annotated[int, Meta(ge=1)] = 8, seed: Seed = 1
) -> Streamed[LengthScore]:
    """Measure random tapes of several lengths, from the longest of the training to multiples of it.

    Parameters
    ----------
    per_length
        Number of tapes of each length.
    """
    lengths = default_lengths(model)
    scores = (length_scores(model, [length], per_length=per_length, seed=seed)[0] for length in lengths)
    return Streamed(len(lengths), scores)
