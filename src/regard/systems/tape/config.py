"""The settings of a memory machine: its parts, options, data, training and test set."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from msgspec import Meta

from regard.config import Checked, Count, Fraction, Names, NonNegativeFloat, PositiveFloat, PositiveInt, fields_of
from regard.errors import OptionError
from regard.systems.config import Arguments, Options
from regard.training.settings import TrainSettings

if TYPE_CHECKING:
    from regard.worlds.tapes import Task

ARCHITECTURES = ("ntm", "lstm", "attention")
SCORES = ("additive", "concat", "dot", "general", "mlp", "scaled_dot")
ALIGNMENTS = ("softmax", "sparsemax", "uniform")
_USED_BY = {
    **dict.fromkeys(("controller", "slots", "width", "read_heads", "write_heads", "max_shift"), ("ntm",)),
    "layers": ("lstm", "attention"),
    **dict.fromkeys(("score", "align"), ("attention",)),
}
MAX_NUMBERS = 2**24
"""Numbers in the largest memory; each tape of a batch has its own, at every step of training."""


@dataclass(frozen=True)
class TapeConfig(Checked):
    """The parts of a memory machine."""

    architecture: Annotated[str, Names(ARCHITECTURES)] = "ntm"
    """ntm (a controller with an external memory), a baseline: lstm (no external memory), attention (an LSTM that
    attends to all its inputs), or a custom network."""
    controller: Annotated[str, Names(("lstm", "feedforward"))] = "lstm"
    """ntm: the controller, which may be custom; a feedforward one remembers nothing but what it writes."""
    score: Annotated[str, Names(SCORES)] = "scaled_dot"
    """attention: how well a step matches another."""
    align: Annotated[str, Names(ALIGNMENTS)] = "softmax"
    """attention: how scores become attention weights."""
    hidden: PositiveInt = 100
    """Units of the controller, or of each layer of a baseline."""
    layers: PositiveInt = 1
    """lstm, attention: layers of LSTM."""
    slots: PositiveInt = 128
    """ntm: slots of the memory."""
    width: PositiveInt = 20
    """ntm: numbers in a slot."""
    read_heads: PositiveInt = 1
    """ntm: heads that read."""
    write_heads: PositiveInt = 1
    """ntm: heads that write."""
    max_shift: Count = 1
    """ntm: how many slots a head may move in one step, to each side."""

    def check(self) -> None:
        """Refuse settings that the architecture would ignore, and a shift around the whole memory."""
        defaults = {field.name: field.default for field in fields_of(TapeConfig)}
        for name, users in _USED_BY.items():
            if (
                self.architecture in ARCHITECTURES
                and self.architecture not in users
                and getattr(self, name) != defaults[name]
            ):
                raise OptionError(
                    f"The architecture {self.architecture} has no {name}; got {name} {getattr(self, name)!r}. "
                    "Remove it."
                )
        if self.slots * self.width > MAX_NUMBERS:
            raise OptionError(
                f"A memory has at most {MAX_NUMBERS:,} numbers; got {self.slots:,} slots of {self.width:,}."
            )
        if self.max_shift >= self.slots:
            raise OptionError(
                f"max_shift must be less than slots; got max_shift {self.max_shift} and slots {self.slots}."
            )


@dataclass(frozen=True)
class TapeOptions(Options):
    """Options of `tape`."""

    repeats: PositiveInt | None = None
    """repeat-copy: how many times to copy the sequence, by default 2."""
    query: PositiveInt | None = None
    """recall: which item is shown again, counted from 1 (the default); the answer is the item after it."""
    slots: Count = 0
    """Slots of the memory; 0 for as many as in training. A machine can use more than it was trained with."""


@dataclass(frozen=True)
class TapeArguments(Arguments):
    """What the command takes beside rows: how random ones are drawn."""

    length: Annotated[int | None, Parameter(alias="-n")] = None
    """Length of the random sequence; by default the longest of the training."""
    seed: int = 1
    """Seed of the random sequence."""


TASKS = ("copy", "repeat-copy", "recall", "priority-sort", "ngrams")
_NOT_OF_TASK = ("task", "valid_tapes", "valid_lengths")


@dataclass(frozen=True)
class TapeData(Checked):
    """Which tapes to learn from; fields that are not given have the values of the paper."""

    task: Annotated[str, Names(TASKS)] = "copy"
    """What to learn: one of the paper's tasks, or a custom one, a subclass of regard.worlds.tapes.Task."""
    bits: PositiveInt | None = None
    """Bits of a vector: 8, for recall 6."""
    min_length: Count | None = None
    """Length of the shortest sequences: 1; recall 2 items, priority-sort 20 vectors, ngrams 200 bits."""
    max_length: PositiveInt | None = None
    """Length of the longest sequences: 20; repeat-copy 10 vectors, recall 6 items, ngrams 200 bits."""
    max_repeats: PositiveInt | None = None
    """repeat-copy: the largest number of copies, 10."""
    item_length: PositiveInt | None = None
    """recall: vectors of an item, 3."""
    context: PositiveInt | None = None
    """ngrams: how many of the bits before it a bit depends on, 5."""
    valid_tapes: PositiveInt = 320
    """Number of tapes to validate with, of the lengths of the training; and of each of valid_lengths."""
    valid_lengths: tuple[Count, ...] = ()
    """Further lengths to validate with. The machine that is kept is the best on all of these tapes, so that one that
    also answers longer tapes than those of the training is preferred."""

    def check(self) -> None:
        """Refuse what the task does not have."""
        task = self.make_task()
        for length in self.valid_lengths:
            task.check_length(length)

    def make_task(self) -> "Task":
        """The task with these values."""
        from regard.worlds.tapes import find_task

        task = find_task(self.task)
        known = {field.name for field in fields_of(task)}
        names = [field.name for field in fields_of(TapeData) if field.name not in _NOT_OF_TASK]
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        if unused := [name for name in given if name not in known]:
            raise OptionError(
                f"The task {self.task} has no {unused[0]}; got {unused[0]} {given[unused[0]]}. Remove it."
            )
        return task(**given)


@dataclass(frozen=True)
class TapeTrain(TrainSettings):
    """How to train a memory machine."""

    learning_rate: PositiveFloat = 3e-3
    warmup: Fraction = 0.05
    gradient_clip: NonNegativeFloat = 0.3
    batch_size: PositiveInt = 64
    """Tapes in an update; all of them have the same length."""
    epoch_updates: PositiveInt = 500
    """Updates in an epoch, after which the machine is validated."""
    optimizer: Literal["adam", "rmsprop"] = "adam"
    """adam, or rmsprop with momentum, as in the paper."""
    momentum: Fraction = 0.9
    """rmsprop: momentum."""
    curriculum: Fraction = 0.0
    """Fraction of the training, at its beginning, in which sequences grow to max_length, and copies to max_repeats; 0
    for none."""


@dataclass(frozen=True)
class TapeTest(Checked):
    """What a memory machine is evaluated on: fresh tapes of its task."""

    count: PositiveInt = 1000
    """Number of tapes of the lengths that it was trained on, all lengths alike."""
    lengths: tuple[Count, ...] = ()
    """Further lengths; by default one, two, three and six times the longest of the training, as far as the slots of
    the memory suffice."""
    per_length: PositiveInt = 200
    """Number of tapes of each further length."""
    slots: Count = 0
    """Slots of the memory; 0 for as many as in training."""
    seed: Annotated[int, Meta(ge=0, le=2**32 - 1)] = 1
    """Seed of the tapes; training and validation use others."""
