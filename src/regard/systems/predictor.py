"""What answers: what an input is, the class of a result, the options of its verb, whatever computes it.

The verb of a translator is `translate`, that of a captioner `caption`, and so on. Nothing here needs torch.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from html import escape
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, Protocol, get_args, get_origin, overload

from typing_extensions import TypeVar

from regard.arguments import checked
from regard.config import Checked, PositiveInt, from_values
from regard.data.text import ByteStream
from regard.errors import OptionError
from regard.systems.config import Options
from regard.trace import Trace
from regard.viewing.view import MEASURED, view
from regard.work import proceed

Item = TypeVar("Item")
Input = TypeVar("Input", default=Any)
Output = TypeVar("Output", default=Any)
Chosen = TypeVar("Chosen", bound=Options, default=Any)
MAX_BATCH_COST = 64 * 128
"""Largest cost of a batch, its number of inputs times the largest of their costs: a bound on the memory it takes."""


class Asset(Protocol):
    """What a model needs beside its parameters, such as a tokenizer or the names of classes: one file of its folder."""

    def save(self, path: Any) -> Any:
        """Write it to a file."""

    @classmethod
    def load(cls, path: Any) -> Any:
        """Read it from a file."""


@dataclass(frozen=True)
class Result:
    """What a system answers for one input."""

    trace: Trace | None = field(default=None, repr=False, kw_only=True)
    """What was attended to; None for a model without attention."""

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON; the trace comes last, because it is long."""
        plain = {part.name: _as_plain(getattr(self, part.name)) for part in fields(self) if part.name != "trace"}
        return plain | {"trace": None if self.trace is None else self.trace.to_dict()}

    def _repr_html_(self) -> str:
        """The result as a notebook displays it: in one line, and what was attended to."""
        line = f"<p><code>{escape(repr(self))}</code></p>"
        return line if self.trace is None else line + view(self.trace)._repr_html_()


def _as_plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_as_plain(part) for part in value]
    return value.to_dict() if hasattr(value, "to_dict") else value


class Predictor(Generic[Input, Output, Chosen]):
    """What answers inputs with results; subclasses declare their kind and assets, and define `predict_batch`.

    Predicting changes nothing, so that many threads may share one predictor.
    """

    kind: ClassVar[str]
    """The name of the system in config.json and in recipes."""
    Config: ClassVar[type[Checked]]
    """The class of `config`."""
    Options: ClassVar[type[Options]] = Options
    """The options of the verb, which it takes as keywords: the third parameter of `Predictor`."""
    input_kind: ClassVar[Any] = Any
    """What an input is: the first parameter of `Predictor`."""
    Answer: ClassVar[type[Any]] = Result
    """The class of a result: the second parameter of `Predictor`."""
    assets: ClassVar[Mapping[str, Any]] = {}
    """What the model needs beside its parameters: name -> class (an Asset). Each is an attribute, an argument of the
    constructor, and a file of the model's folder."""
    parameter_uses: ClassVar[int] = 1
    """How often a step uses each parameter for one input: once, or about 100 times with convolutions over an image."""
    names_view: ClassVar[bool] = False
    """Whether a view in the terminal begins with the text of the result, which a command then need not repeat."""
    max_batch: ClassVar[int] = 64
    """Maximum number of inputs in a batch."""
    takes_images: ClassVar[bool] = False
    """Whether inputs are images; a line of a text file of inputs then names one."""
    json_input: ClassVar[Literal["text", "pair", "rows"]] = "text"
    """What an input that is no image is in JSON: a text; or also a pair of texts, or rows of numbers."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        for base in vars(cls).get("__orig_bases__", ()):
            if isinstance(origin := get_origin(base), type) and issubclass(origin, Predictor):
                cls.input_kind, cls.Answer, cls.Options = get_args(base)

    config: Checked
    """The settings of the model."""
    metrics: dict[str, Any]
    """Scores that were measured when the model was trained, as in metrics.json."""
    card: str
    """The text of MODEL_CARD.md."""

    @overload
    def predict(self, inputs: Input, options: Chosen | None = None, /, **keywords: Any) -> Output: ...

    @overload
    def predict(self, inputs: Iterable[Input], options: Chosen | None = None, /, **keywords: Any) -> list[Output]: ...

    def predict(self, inputs: Any, options: Chosen | None = None, /, **keywords: Any) -> Any:
        """The result for one input, or a list of results for several.

        Options are given as keywords, the fields of `Options`, or as an instance of it. `stream` does the same for an
        iterable of any length.
        """
        chosen = self.options(keywords, options)
        if self.is_one(inputs):
            return self.answer([inputs], chosen)[0]
        return self.answer(list(inputs), chosen)

    @classmethod
    def is_one(cls, given: Any) -> bool:
        """Whether this is one input rather than several: a text, a mapping, an array, or what cannot be iterated."""
        return (
            isinstance(given, str | bytes | bytearray | Mapping)
            or hasattr(given, "__array__")
            or not isinstance(given, Iterable)
        )

    def answer(self, inputs: Sequence[Input], options: Chosen) -> list[Output]:
        """The results for any number of inputs, in order, with options that are checked already."""
        results = self.predict_all(inputs, options)
        return [self.with_attention_quality(result) for result in results]

    def predict_all(self, inputs: Sequence[Input], options: Chosen) -> list[Output]:
        """The results for any number of inputs, in order: those of batches of inputs of like cost."""
        results: dict[int, Output] = {}
        for indices in batches_by_cost(self.costs(inputs), max_batch=self.max_batch):
            proceed()
            with self.computing(len(indices) * getattr(options, "num_hypotheses", 1)):
                batch = self.predict_batch([inputs[index] for index in indices], options)
            results.update(zip(indices, batch, strict=True))
        return [results[index] for index in range(len(inputs))]

    @contextmanager
    def computing(self, rows: int) -> Iterator[None]:
        """Compute a batch in this block, with as many CPU threads as suit so many rows."""
        yield

    def predict_batch(self, inputs: Sequence[Input], options: Chosen) -> list[Output]:
        """The results for one batch of inputs, in order."""
        raise TypeError(f"{type(self).__name__} does not define predict_batch(inputs, options).")

    def costs(self, inputs: Sequence[Input]) -> list[int]:
        """The size of each input, such as its number of tokens; inputs of like size go together in a batch."""
        return [1] * len(inputs)

    def with_attention_quality(self, result: Any) -> Any:
        """The result, whose trace says how accurate the attention of this model is, where its metrics say so."""
        measured, trace = self.metrics.get(MEASURED), getattr(result, "trace", None)
        if not measured or trace is None:
            return result
        return replace(result, trace=replace(trace, extras={**trace.extras, MEASURED: str(measured)}))

    @checked
    def stream(
        self,
        inputs: Iterable[Input],
        options: Chosen | None = None,
        /,
        *,
        read_ahead: PositiveInt = 256,
        **keywords: Any,
    ) -> Iterator[Output]:
        """A result for each input, in order, from an iterable of any length; `read_ahead` inputs are read at a time."""
        chosen = self.options(keywords, options)
        return (result for group in in_groups(inputs, read_ahead) for result in self.answer(group, chosen))

    def stream_some(
        self, inputs: Iterable[Input | None], options: Chosen, *, read_ahead: int = 256
    ) -> Iterator[tuple[Input | None, Output | None]]:
        """Each input with its result, in order; None, such as a blank line, stands for no input and has no result."""
        for group in in_groups(inputs, read_ahead):
            results = iter(self.answer([one for one in group if one is not None], options))
            yield from ((one, None if one is None else next(results)) for one in group)

    def parse(self, line: str, options: Any) -> Any:
        """The input that a line of a text file stands for; None where it stands for none."""
        if self.takes_images:
            return Path(line) if line.strip() else None
        return line

    def read_arguments(self, given: Sequence[str], arguments: Any, options: Any, pipe: ByteStream) -> list[Any] | None:
        """The inputs that stand on the command line; None where each line of the pipe is one.

        `given` are the words of the command, and `arguments` the options that belong to the command alone.
        """
        inputs = [self.parse(text, options) for text in given]
        if self.takes_images and None in inputs:
            raise OptionError(f"Expected the name of an image; got {given[inputs.index(None)]!r}.")
        return inputs or None

    def as_text(self, result: Any, options: Any) -> str:
        """A result as commands print it: one line, or a line with its score for each of several alternatives."""
        if getattr(options, "nbest", 1) == 1:
            return str(result.text if hasattr(result, "text") else result)
        return "\n".join(f"{one.score:.4f}\t{one.text}" for one in (result, *result.alternatives))

    def as_detail(self, result: Any, options: Any) -> str:
        """A result as a command prints it that has this one alone: with what else is worth knowing."""
        return self.as_text(result, options)

    def save_files(self, given: Any, result: Any, arguments: Any) -> None:
        """Write the files that options of the command ask for beside the result, `arguments.writes`."""

    def line(self, option: str, result: Any) -> str:
        """The line for a result in the file that an option of the command names, one of `arguments.line_files`."""
        raise TypeError(f"{type(self).__name__} does not define line(option, result), for {option}.")

    @classmethod
    def options(cls, keywords: Mapping[str, Any], given: Any = None) -> Any:
        """The options of the verb: from keywords, which are checked, or an instance, which has been."""
        if given is None:
            return from_values(cls.Options, keywords, cls.__name__)
        if keywords or not isinstance(given, cls.Options):
            raise OptionError(
                f"{cls.__name__} takes options as keywords or as one {cls.Options.__name__}; got {given!r:.80}"
                f"{' and ' + ', '.join(keywords) if keywords else ''}."
            )
        return given


def batches_by_cost(costs: Sequence[int], *, max_batch: int, max_cost: int = MAX_BATCH_COST) -> Iterator[list[int]]:
    """The indices of inputs of like cost, the most costly first: rows x largest cost <= max_cost, or a single row."""
    order = sorted(range(len(costs)), key=lambda index: costs[index], reverse=True)
    while order:
        rows = max(1, min(max_batch, max_cost // max(1, costs[order[0]])))
        yield order[:rows]
        order = order[rows:]


def in_groups(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """The items in lists of at most `size`."""
    waiting = iter(items)
    while group := list(islice(waiting, size)):
        yield group
