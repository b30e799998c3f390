"""Tapes: sequences of bits to be copied, repeated, recalled, sorted or predicted (Graves et al. 2014, section 4).

A tape is what a machine reads, one vector at each step: first the sequence, then a mark, then nothing but zeros while
the machine answers. Tapes are generated on the device of a random generator, a batch of equal length at a time, and a
seed always gives the same tapes on one kind of device.

| task | the machine reads | it answers with |
|---|---|---|
| copy | n vectors of bits | the same vectors |
| repeat-copy | n vectors, and a number | the vectors so many times, then an end mark |
| recall | n items of some vectors each, and one of them again | the item that came after it |
| priority-sort | n vectors, each with a priority | those of the highest priorities, highest first |
| ngrams | n bits, each drawn with a probability that depends on the bits before it | at each step the next bit |
"""

import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.config import Checked, Count, Names, PositiveInt, from_values
from regard.errors import ModelError, OptionError
from regard.files import write_text
from regard.parts import find_part

MAX_LENGTH = 100_000
"""Length of the longest sequence."""
SORTED_FRACTION = 0.8
"""The fraction of the vectors that priority-sort asks for: 16 of 20, as in the paper."""


class Drawn(NamedTuple):
    """A batch of sequences of one length, before they are written on tapes."""

    rows: Float[Tensor, "b n r"]
    """The sequence: n vectors of bits, followed by a priority where the task has priorities."""
    number: Int[Tensor, "b"]
    """How often to repeat the sequence (repeat-copy), or which item is asked for, from 0 (recall); otherwise 0."""


class Tapes(NamedTuple):
    """A batch of tapes with as many steps each."""

    inputs: Float[Tensor, "b t c"]
    """The input of the machine at each step."""
    targets: Float[Tensor, "b t y"]
    """The bits that it should output; 0 at steps that do not count."""
    scored: Bool[Tensor, "t"]
    """The steps whose outputs count."""


@dataclass(frozen=True)
class Task(Checked):
    """A task on tapes; an asset of a model, which must know how to write a sequence on a tape."""

    name: ClassVar[str]
    """The name of the task in recipes and files."""
    shortest: ClassVar[int] = 0
    """Length of the shortest sequence that the task is defined for."""
    unit: ClassVar[str] = "vectors"
    """What a length counts."""

    bits: PositiveInt = 8
    """Bits of a vector."""
    min_length: Count = 1
    """Length of the shortest sequences to train on."""
    max_length: PositiveInt = 20
    """Length of the longest sequences to train on."""

    def check(self) -> None:
        """Raise an OptionError where fields contradict each other."""
        if not self.shortest <= self.min_length <= self.max_length:
            raise OptionError(
                f"{self.name}: min_length must be from {self.shortest} to max_length; got min_length "
                f"{self.min_length} and max_length {self.max_length}."
            )
        self.check_length(self.max_length)

    @property
    def import_path(self) -> str:
        """Where a custom task is found, package.module:Name; "" for those of this module."""
        kind = type(self)
        return "" if TASKS.get(self.name) is kind else f"{kind.__module__}:{kind.__qualname__}"

    @property
    def row_size(self) -> int:
        """Numbers in a row of a sequence."""
        return self.bits

    @property
    def input_size(self) -> int:
        """Numbers that the machine reads in a step."""
        raise OptionError(
            f"{type(self).__name__} must define the property input_size, the numbers in a step of inputs."
        )

    @property
    def output_size(self) -> int:
        """Bits that the machine answers with in a step."""
        return self.bits

    def slots(self, length: int) -> int:
        """How many slots a memory needs for a sequence of this length, one vector or item in each."""
        return length

    def draw(self, count: int, length: int, generator: torch.Generator) -> Drawn:
        """Draw sequences of random bits, on the device of the generator."""
        self.check_length(length)
        rows = self._bits((count, length, self.bits), generator)
        return Drawn(rows, torch.zeros(count, dtype=torch.int64, device=generator.device))

    def write(self, drawn: Drawn) -> Tapes:
        """Write sequences on tapes, with the right answers."""
        raise OptionError(f"{type(self).__name__} must define write(drawn) -> Tapes(inputs, targets, scored).")

    def sample(self, count: int, length: int, generator: torch.Generator) -> Tapes:
        """Draw sequences of this length and write them on tapes."""
        drawn = self.draw(count, length, generator)
        tapes = self.write(drawn)
        if type(self) not in TASKS.values():
            check_tapes(self, tapes, len(drawn.rows))
        return tapes

    def check_length(self, length: int) -> None:
        """Refuse a length that the task is not defined for, or above MAX_LENGTH."""
        if length < self.shortest:
            raise OptionError(f"The shortest sequence of {self.name} has {self.shortest} {self.unit}; got {length}.")
        if length > MAX_LENGTH:
            raise OptionError(f"A sequence of {self.name} has at most {MAX_LENGTH:,} {self.unit}; got {length:,}.")

    def to_dict(self) -> dict[str, Any]:
        """The name and the fields, as `load` reads them."""
        return {"task": self.import_path or self.name, **super().to_dict()}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the task as JSON."""
        return write_text(path, json.dumps(self.to_dict(), indent=2) + "\n")

    @staticmethod
    def load(path: str | os.PathLike[str]) -> "Task":
        """Read a task of any kind that `save` wrote; that of a custom one runs its code (see `custom_parts`)."""
        name, values = _stored(path)
        return from_values(find_task(name), values, str(path))

    @staticmethod
    def custom_parts(path: str | os.PathLike[str]) -> dict[str, str]:
        """The code that `load` would run: {"task": import path} of a custom task, or nothing."""
        name, _ = _stored(path)
        return {} if name in TASKS else {"task": name}

    def _bits(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        return torch.randint(2, shape, generator=generator, device=generator.device).float()


@dataclass(frozen=True)
class Copy(Task):
    """Copy a sequence of vectors (section 4.1).

    Step by step: the n vectors, a mark on a channel of its own, n steps of zeros in which the copy is due.
    """

    name: ClassVar[str] = "copy"

    @property
    def input_size(self) -> int:
        """The bits and the mark."""
        return self.bits + 1

    def write(self, drawn: Drawn) -> Tapes:
        """2 n + 1 steps."""
        rows = drawn.rows
        length = rows.shape[1]
        inputs, targets, scored = _blank(self, rows, 2 * length + 1)
        inputs[:, :length, : self.bits] = rows
        inputs[:, length, -1] = 1
        targets[:, length + 1 :] = rows
        scored[length + 1 :] = True
        return Tapes(inputs, targets, scored)


@dataclass(frozen=True)
class RepeatCopy(Task):
    """Copy a sequence several times, then answer with an end mark (section 4.2).

    The mark after the sequence comes with the number of copies on a channel of its own, scaled so that the numbers of
    the training have mean 0 and variance 1, as in the paper.
    """

    name: ClassVar[str] = "repeat-copy"

    max_length: PositiveInt = 10
    max_repeats: PositiveInt = 10
    """The largest number of copies to train on."""

    @property
    def input_size(self) -> int:
        """The bits, the mark and the number of copies."""
        return self.bits + 2

    @property
    def output_size(self) -> int:
        """The bits and the end mark."""
        return self.bits + 1

    def draw(self, count: int, length: int, generator: torch.Generator, *, repeats: int = 0) -> Drawn:
        """Draw sequences, and one number of copies for all of them unless it is given."""
        rows, number = super().draw(count, length, generator)
        if not repeats:
            repeats = int(torch.randint(1, self.max_repeats + 1, (), generator=generator, device=generator.device))
        # On the CPU, so that writing tapes need not ask a GPU for it.
        return Drawn(rows, torch.full_like(number, repeats, device="cpu"))

    def write(self, drawn: Drawn) -> Tapes:
        """n + 1 + n repeats + 1 steps; all sequences have the same number of copies."""
        rows, repeats = drawn.rows, int(drawn.number[0]) if len(drawn.number) else 1
        length, answer = rows.shape[1], rows.shape[1] * repeats
        inputs, targets, scored = _blank(self, rows, length + answer + 2)
        inputs[:, :length, : self.bits] = rows
        inputs[:, length, -2] = 1
        inputs[:, length, -1] = self._scaled(repeats)
        targets[:, length + 1 : -1, : self.bits] = rows.repeat(1, repeats, 1)
        targets[:, -1, -1] = 1
        scored[length + 1 :] = True
        return Tapes(inputs, targets, scored)

    def _scaled(self, repeats: int) -> float:
        """The number of copies, less the mean of 1 to max_repeats, divided by their standard deviation."""
        return (repeats - (self.max_repeats + 1) / 2) / math.sqrt(max(1, self.max_repeats**2 - 1) / 12)


@dataclass(frozen=True)
class Recall(Task):
    """Items in a row, and one of them again: answer with the item that came after it (section 4.3).

    An item is item_length vectors, with a mark before it. The item that is asked for stands between two marks on
    another channel. A length counts items.
    """

    name: ClassVar[str] = "recall"
    shortest: ClassVar[int] = 2
    unit: ClassVar[str] = "items"

    bits: PositiveInt = 6
    min_length: Count = 2
    max_length: PositiveInt = 6
    item_length: PositiveInt = 3
    """Vectors of an item."""

    @property
    def input_size(self) -> int:
        """The bits and two marks."""
        return self.bits + 2

    def draw(self, count: int, length: int, generator: torch.Generator) -> Drawn:
        """Draw items, and which of them is asked for: any but the last."""
        self.check_length(length)
        rows = self._bits((count, length * self.item_length, self.bits), generator)
        asked = torch.randint(length - 1, (count,), generator=generator, device=generator.device)
        return Drawn(rows, asked)

    def write(self, drawn: Drawn) -> Tapes:
        """n (item_length + 1) steps of items, item_length + 2 of the question, item_length of the answer."""
        size, (items, answers) = self.item_length, self._asked(drawn)
        count = items.shape[1]
        start = count * (size + 1)
        inputs, targets, scored = _blank(self, drawn.rows, start + 2 * size + 2)
        marked = inputs[:, :start].unflatten(1, (count, size + 1))
        marked[:, :, 0, -2] = 1
        marked[:, :, 1:, : self.bits] = items
        inputs[:, start, -1] = inputs[:, start + size + 1, -1] = 1
        inputs[:, start + 1 : start + size + 1, : self.bits] = answers[:, 0]
        targets[:, start + size + 2 :] = answers[:, 1]
        scored[start + size + 2 :] = True
        return Tapes(inputs, targets, scored)

    def _asked(self, drawn: Drawn) -> tuple[Tensor, Tensor]:
        """All items, and of each sequence the one that is asked for with the one after it."""
        items = drawn.rows.unflatten(1, (-1, self.item_length))
        numbers = torch.stack([drawn.number, drawn.number + 1], 1)
        index = numbers[:, :, None, None].expand(-1, -1, *items.shape[2:])
        return items, items.gather(1, index)


@dataclass(frozen=True)
class PrioritySort(Task):
    """Vectors, each with a priority from -1 to 1: answer with the first of them by priority (section 4.5).

    Of n vectors, four fifths are asked for, those of the highest priorities, in falling order.
    """

    name: ClassVar[str] = "priority-sort"

    min_length: Count = 20

    @property
    def row_size(self) -> int:
        """The bits and the priority."""
        return self.bits + 1

    @property
    def input_size(self) -> int:
        """The bits, the priority and a mark."""
        return self.bits + 2

    def draw(self, count: int, length: int, generator: torch.Generator) -> Drawn:
        """Draw vectors and their priorities."""
        rows, number = super().draw(count, length, generator)
        priorities = 2 * torch.rand(count, length, 1, generator=generator, device=generator.device) - 1
        return Drawn(torch.cat([rows, priorities], -1), number)

    def write(self, drawn: Drawn) -> Tapes:
        """n + 1 steps, and one for each vector of the answer."""
        rows = drawn.rows
        length = rows.shape[1]
        asked = math.ceil(SORTED_FRACTION * length)
        inputs, targets, scored = _blank(self, rows, length + 1 + asked)
        inputs[:, :length, : self.bits + 1] = rows
        inputs[:, length, -1] = 1
        order = rows[..., -1].argsort(dim=1, descending=True, stable=True)[:, :asked]
        targets[:, length + 1 :] = rows[..., : self.bits].gather(1, order.unsqueeze(-1).expand(-1, -1, self.bits))
        scored[length + 1 :] = True
        return Tapes(inputs, targets, scored)


@dataclass(frozen=True)
class NGrams(Task):
    """Predict each next bit of a sequence whose bits depend on the ones before (section 4.4, dynamic n-grams).

    Each sequence has its own table: for each of the 2^context contexts the probability of a 1, drawn from
    Beta(1/2, 1/2). The first bits, which have no whole context, are fair and not scored. A length counts bits.
    """

    name: ClassVar[str] = "ngrams"
    shortest: ClassVar[int] = 1
    unit: ClassVar[str] = "bits"

    bits: PositiveInt = 1
    min_length: Count = 200
    max_length: PositiveInt = 200
    context: PositiveInt = 5
    """How many of the bits before it a bit depends on: 5 for 6-grams."""

    def check(self) -> None:
        """A bit is a vector of one."""
        super().check()
        if self.bits != 1:
            raise OptionError(f"ngrams predicts single bits; got bits {self.bits}. Remove it.")

    @property
    def input_size(self) -> int:
        """The bit."""
        return 1

    def slots(self, length: int) -> int:
        """One for each context that a sequence can show."""
        return min(1 << self.context, length)

    def draw(self, count: int, length: int, generator: torch.Generator) -> Drawn:
        """Draw a table for each sequence, and its bits one after another."""
        self.check_length(length)
        device = generator.device
        uniform = torch.rand(count, 2**self.context, generator=generator, device=device)
        # The arcsine law: sin^2 of a uniform angle has the distribution Beta(1/2, 1/2).
        table = torch.sin(0.5 * math.pi * uniform).square()
        uniform = torch.rand(count, length, generator=generator, device=device)
        seen = torch.zeros(count, dtype=torch.int64, device=device)
        bits = []
        for step in range(length):
            probability = table.gather(1, seen.unsqueeze(1)).squeeze(1) if step >= self.context else 0.5
            bit = uniform[:, step] < probability
            bits.append(bit)
            seen = (2 * seen + bit) % 2**self.context
        return Drawn(torch.stack(bits, 1).float().unsqueeze(-1), torch.zeros_like(seen))

    def write(self, drawn: Drawn) -> Tapes:
        """n - 1 steps: each reads a bit and predicts the next."""
        rows = drawn.rows
        inputs, targets = rows[:, :-1].clone(), rows[:, 1:].clone()
        scored = torch.arange(inputs.shape[1], device=rows.device) >= self.context - 1
        return Tapes(inputs, targets.mul_(scored[:, None]), scored)

    def best_bits(self, rows: Float[Tensor, "b n 1"]) -> Float[Tensor, "b"]:
        """Bits per sequence of the best predictor, which counts: p(1) = (ones + 1/2) / (ones + zeros + 1).

        It is what no machine can be better than on average (Murphy 2012, as the paper cites).
        """
        bits = rows.squeeze(-1).long()
        counts = torch.full((len(bits), 2**self.context, 2), 0.5, dtype=torch.float64, device=bits.device)
        lost = torch.zeros(len(bits), dtype=torch.float64, device=bits.device)
        each, seen = torch.arange(len(bits), device=bits.device), torch.zeros_like(bits[:, 0])
        for step, bit in enumerate(bits.unbind(1)):
            if step >= self.context:
                of_context = counts[each, seen]
                lost -= (of_context[each, bit] / of_context.sum(1)).log2()
                counts[each, seen, bit] += 1
            seen = (2 * seen + bit) % 2**self.context
        return lost


TASKS: dict[str, type[Task]] = {task.name: task for task in (Copy, RepeatCopy, Recall, PrioritySort, NGrams)}
"""Every task by its name."""


def check_tapes(task: Task, tapes: Any, count: int) -> None:
    """Check the shapes of what the `write` of a custom task returned for so many sequences."""
    name = type(task).__name__
    if not isinstance(tapes, Tapes) or not all(isinstance(part, Tensor) for part in tapes):
        raise OptionError(f"{name}.write must return Tapes(inputs, targets, scored) of tensors; got {tapes!r:.80}.")
    steps = tapes.inputs.shape[1] if tapes.inputs.ndim > 1 else 0
    expected = {
        "inputs": (count, steps, task.input_size),
        "targets": (count, steps, task.output_size),
        "scored": (steps,),
    }
    for part, shape in expected.items():
        given = tuple(getattr(tapes, part).shape)
        if given != shape:
            raise OptionError(
                f"{name}.write returned {part} {given} for {count} sequences; expected {shape}: inputs "
                "(b, t, input_size), targets (b, t, output_size) and scored (t,), with the same steps t."
            )
    if tapes.scored.dtype != torch.bool:
        raise OptionError(f"{name}.write must return bools in scored; got {tapes.scored.dtype}.")


def find_task(name: str) -> type[Task]:
    """The task of this name, or the custom one at this import path, `package.module:Name`."""
    found = TASKS[name] if name in TASKS else find_part(name)
    if not (isinstance(found, type) and issubclass(found, Task)):
        raise OptionError(f"{name!r} is {found!r:.80}, and not a subclass of regard.worlds.tapes.Task.")
    return found


def _stored(path: str | os.PathLike[str]) -> tuple[str, dict[str, Any]]:
    """The name and the fields of a task that was saved."""
    try:
        values: Any = json.loads(Path(path).read_text(encoding="utf-8"))
        name = values.pop("task")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelError(f"{path} is not a task on tapes: {type(error).__name__}: {error!s:.200}.") from error
    if not (isinstance(name, str) and Names(tuple(TASKS)).accepts(name)):
        raise ModelError(f"{path}: task must be {Names(tuple(TASKS))}; got {name!r:.80}.")
    return name, values


def _blank(task: Task, rows: Tensor, steps: int) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs, targets and scored steps of tapes on which nothing is written yet."""
    inputs = rows.new_zeros(len(rows), steps, task.input_size)
    targets = rows.new_zeros(len(rows), steps, task.output_size)
    return inputs, targets, torch.zeros(steps, dtype=torch.bool, device=rows.device)
