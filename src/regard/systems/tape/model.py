"""TuringMachine: bits on a tape in, bits out."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from regard.attention.attend import Attention
from regard.data.text import ByteStream
from regard.errors import OptionError
from regard.parts import build_part
from regard.systems.assembly import build_align, build_score
from regard.systems.predictor import Result
from regard.systems.system import System
from regard.systems.tape.config import TapeArguments, TapeConfig, TapeOptions
from regard.systems.tape.data import length_of, read_rows, step_labels
from regard.systems.tape.networks import AttentionNetwork, LSTMNetwork, TapeNetwork, TuringNetwork, UnrolledTape
from regard.trace import Axis, Map, Series, Trace
from regard.worlds.tapes import Drawn, PrioritySort, Recall, RepeatCopy, Tapes, Task

Rows = tuple[tuple[float | int, ...], ...]
TapeInput = str | Sequence[float] | Sequence[Sequence[float]] | np.ndarray | Tensor


@dataclass(frozen=True)
class Tape(Result):
    """The answer to one sequence."""

    text: str
    """The answer as text: rows of 0 and 1, separated by spaces."""
    wrong: int
    """The number of wrong bits."""
    bits: float
    """How far the answer is from certainty: the bits that it takes to correct it, 0 for a certain and right one."""
    sequence: Rows = field(repr=False)
    """The rows of the sequence."""
    output: Rows = field(repr=False)
    """The rows of the answer."""
    target: Rows = field(repr=False)
    """The rows of the right answer."""


class TuringMachine(System[TapeInput, Tape, TapeOptions]):
    """A network that answers tapes, and the task that says how a sequence is written on a tape.

    An input is a sequence: a list of rows, an array or a tensor (rows, numbers), or a text such as "0110 1001". A row
    is a vector of bits; for priority-sort a priority from -1 to 1 follows the bits. For recall, the rows of all items
    follow each other.
    """

    kind = "tape"
    Config = TapeConfig
    json_input = "rows"
    assets: ClassVar[Mapping[str, Any]] = {"task": Task}
    config: TapeConfig

    def __init__(self, config: TapeConfig, task: Task) -> None:
        super().__init__(config)
        self.task = task
        self.network = _build(config, task.input_size, task.output_size)

    def forward(self, inputs: Float[Tensor, "b t c"]) -> Float[Tensor, "b t y"]:
        """A logit for each bit of the answer, at each step of the tapes."""
        logits: Tensor = self.network(inputs)
        return logits

    def check_slots(self, length: int, slots: int = 0) -> None:
        """Refuse sequences that the memory cannot hold."""
        available, needed = slots or self.config.slots, self.task.slots(length)
        if self.config.architecture == "ntm" and needed > available:
            raise OptionError(
                f"{self.task.name} of {length} {self.task.unit} needs a memory of {needed} slots or more; this one has "
                f"{available}. Take more slots, or a shorter sequence."
            )

    tape = System.predict

    def read_arguments(
        self, given: Sequence[str], arguments: TapeArguments, options: TapeOptions, pipe: ByteStream
    ) -> list[Any] | None:
        """One sequence: its rows, or random ones."""
        if not given:
            length = self.task.max_length if arguments.length is None else arguments.length
            drawn = self.task.draw(1, length, torch.Generator().manual_seed(arguments.seed))
            return [drawn.rows[0]]
        if arguments.length is not None:
            raise OptionError("Give rows, or --length for random ones, not both.")
        return [self.parse(" ".join(given), options)]

    def parse(self, line: str, options: TapeOptions) -> str | None:
        """The rows of a sequence, separated by spaces."""
        for row in line.split():
            if not set(row) <= set("01"):
                raise OptionError(f"Rows are bits, such as 01101001; got {row!r:.80}. A model is named with -m.")
        if isinstance(self.task, PrioritySort):
            raise OptionError("Rows of priority-sort have priorities, which are given in Python; here, use --length.")
        return line if line.strip() else None

    def as_detail(self, result: Tape, options: TapeOptions) -> str:
        """The sequence, the answer, the right answer where it is another, and how many bits are right."""
        count = sum(map(len, result.target))
        lines = [f"in    {_written(result.sequence)}", f"out   {result.text}"]
        lines += [f"right {_written(result.target)}"] if result.wrong else []
        right = f"{count - result.wrong} of {count} bits right, {result.bits:.2f} bits to correct the answer"
        return "\n".join([*lines, right])

    @classmethod
    def is_one(cls, given: Any) -> bool:
        """Whether this is one sequence: a text, an array of at most two axes, numbers, or rows of numbers.

        An empty list holds no sequences; the empty sequence is "".
        """
        if hasattr(given, "ndim"):
            return bool(given.ndim < 3)
        first = next(iter(given), None) if isinstance(given, Sequence) else None
        if isinstance(first, Sequence) and not isinstance(first, str):
            first = next(iter(first), None)
        return isinstance(first, Real) or super().is_one(given)

    def costs(self, inputs: Sequence[Any]) -> list[int]:
        """The number of rows of each sequence."""
        return [len(read_rows(each, self.task)) for each in inputs]

    def predict_batch(self, inputs: Sequence[Any], options: TapeOptions) -> list[Tape]:
        """The answers to one batch of sequences; those with tapes of one length run together."""
        rows = [read_rows(each, self.task) for each in inputs]
        tapes = [self._write(each, options) for each in rows]
        results: dict[int, Tape] = {}
        for steps in sorted({tape.inputs.shape[1] for tape in tapes}):
            indices = [index for index, tape in enumerate(tapes) if tape.inputs.shape[1] == steps]
            together = torch.cat([tapes[index].inputs for index in indices])
            unrolled = self.network.unroll(together.to(self.device), slots=options.slots or None)
            for row, index in enumerate(indices):
                results[index] = _result(rows[index], tapes[index], unrolled.row(row), traces=options.traces != "none")
        return [results[index] for index in range(len(tapes))]

    def tape_of(self, sequence: Any, options: TapeOptions) -> Tapes:
        """The tape on which a sequence is written, as a batch of one."""
        return self._write(read_rows(sequence, self.task), options)

    def _write(self, rows: Float[Tensor, "n r"], options: TapeOptions) -> Tapes:
        """The tape of one sequence."""
        length = length_of(rows, self.task)
        self.task.check_length(length)
        self.check_slots(length, options.slots)
        number = self._number(length, options)
        return self.task.write(Drawn(rows.unsqueeze(0), torch.tensor([number])))

    def _number(self, length: int, options: TapeOptions) -> int:
        """How many copies are asked for, or which item (from 0), as far as the task has such a number."""
        for name, task in (("repeats", RepeatCopy), ("query", Recall)):
            if getattr(options, name) is not None and not isinstance(self.task, task):
                raise OptionError(
                    f"{name} is for a machine of {task.name}; this one is of {self.task.name}. Remove it."
                )
        if isinstance(self.task, RepeatCopy):
            return options.repeats or 2
        if not isinstance(self.task, Recall):
            return 0
        query = options.query or 1
        if query >= length:
            raise OptionError(f"query must be from 1 to {length - 1}, an item that another one follows; got {query}.")
        return query - 1


def _build(config: TapeConfig, inputs: int, outputs: int) -> TapeNetwork:
    if config.architecture == "ntm":
        return TuringNetwork(
            inputs,
            outputs,
            controller=config.controller,
            hidden=config.hidden,
            slots=config.slots,
            width=config.width,
            num_reads=config.read_heads,
            num_writes=config.write_heads,
            max_shift=config.max_shift,
        )
    if config.architecture == "lstm":
        return LSTMNetwork(inputs, outputs, hidden=config.hidden, layers=config.layers)
    sizes = {"query_dim": config.hidden, "key_dim": config.hidden, "dim": config.hidden}
    if config.architecture == "attention":
        score, align = build_score(config.score, sizes), build_align(config.align, sizes)
        return AttentionNetwork(
            inputs, outputs, hidden=config.hidden, layers=config.layers, attention=Attention(score, align)
        )
    built = build_part(
        config.architecture, {"inputs": inputs, "outputs": outputs, "hidden": config.hidden, "layers": config.layers}
    )
    if not isinstance(built, TapeNetwork):
        raise OptionError(f"{config.architecture!r} must be a subclass of {TapeNetwork.__module__}:TapeNetwork.")
    return built


def _result(rows: Float[Tensor, "n r"], tape: Tapes, unrolled: UnrolledTape, *, traces: bool) -> Tape:
    logits, targets = unrolled.logits[0], tape.targets[0]
    lost = functional.binary_cross_entropy_with_logits(logits, targets, reduction="none") / math.log(2)
    lost = lost.sum(-1) * tape.scored
    output, target = (logits[tape.scored] > 0).int(), targets[tape.scored].int()
    trace = _trace(tape, unrolled, lost) if traces and unrolled.weights else None
    return Tape(
        text=" ".join("".join(map(str, row)) for row in output.tolist()),
        wrong=int((output != target).sum()),
        bits=float(lost.sum()),
        sequence=_as_rows(rows),
        output=_as_rows(output),
        target=_as_rows(target),
        trace=trace,
    )


def _written(rows: Rows) -> str:
    """Rows of bits without spaces; numbers that are no bits stand apart."""
    return " ".join("".join(f"{number:g}" if number in (0, 1) else f"({number:.2f})" for number in row) for row in rows)


def _as_rows(tensor: Tensor) -> Rows:
    """Rows of numbers; whole numbers as int."""
    return tuple(tuple(int(number) if number == int(number) else number for number in row) for row in tensor.tolist())


def _trace(tape: Tapes, unrolled: UnrolledTape, lost: Float[Tensor, "t"]) -> Trace:
    """Where the heads were and why, what they read and added, how the memory filled, and what it holds at last."""
    steps = Axis("steps", "steps", step_labels(tape))
    axes = [steps, _numbered("channels", "features", tape.inputs), _numbered("bits", "features", tape.targets)]
    over = "steps" if unrolled.memory is None else "slots"
    maps = [Map(name, "steps", over, weights[0]) for name, weights in unrolled.weights.items()]
    maps.append(Map("input", "steps", "channels", tape.inputs[0]))
    maps.append(Map("output", "steps", "bits", unrolled.logits[0].sigmoid()))
    maps.append(Map("target", "steps", "bits", tape.targets[0]))
    if unrolled.memory is not None:
        axes += [_numbered("slots", "slots", unrolled.memory.mT), _numbered("features", "features", unrolled.memory)]
        maps += [Map(name, "steps", "features", vectors[0]) for name, vectors in unrolled.vectors.items()]
        maps.append(Map("memory", "slots", "features", unrolled.memory[0]))
    if unrolled.slot_sizes is not None:
        maps.append(Map("slot sizes", "steps", "slots", unrolled.slot_sizes[0]))
    series = [Series("bits lost", "steps", lost), Series("scored", "steps", tape.scored.int())]
    series += [Series(name, "steps", values[0]) for name, values in unrolled.controls.items()]
    return Trace("tape", tuple(axes), tuple(maps), tuple(series))


def _numbered(name: str, kind: str, tensor: Tensor) -> Axis:
    """An axis whose positions are those of the last dimension, numbered from 1."""
    return Axis(name, kind, tuple(str(number) for number in range(1, tensor.shape[-1] + 1)))
