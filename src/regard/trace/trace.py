"""Trace: the attention of a result, which every view draws."""

import csv
import io
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float32

from regard.arguments import checked
from regard.errors import DataError, OptionError, RegardError, ShapeError
from regard.extras import require
from regard.files import read_text, write_text
from regard.trace.data_uri import check_data_uri, to_data_uri
from regard.trace.elements import Axis, Box, Map, Series, construct, to_array
from regard.trace.transformers_output import axes_and_maps
from regard.trace.words import join_subwords

VERSION = 3
"""The version of the JSON form."""
MIN_USED = 0.05
"""Smallest weight at which a slot counts as used by a head."""
COLUMNS = ("map", "layer", "head", "row", "row_label", "column", "column_label", "weight")
"""The columns of a table of all weights; layer and head are empty for maps that have none."""
Element = TypeVar("Element", Axis, Map)
_ELEMENTS: dict[str, Callable[[Any, str], Any]] = {
    "axes": Axis.from_dict,
    "maps": partial(construct, Map),
    "series": partial(construct, Series),
    "boxes": partial(construct, Box),
}


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """The attention of one result: named maps over named axes, with numbers along the axes, boxes and the image.

    `maps[0]` is the main map, which views draw first: its rows are the outputs, its columns the inputs. By convention
    the axes of text are called "source" and "target", the cells of an image "cells"; the series of an output are
    "log_prob" (log-probabilities), "gate" (Xu et al. 2015, section 4.2.1), "choice" (the index of the input that hard
    attention chose) and "surprisal".

    Traces are immutable and compare by value, to the six significant digits that their JSON keeps.
    """

    kind: str
    """What the trace shows ("text", "translation", "caption", ...); it decides which view draws the trace."""
    axes: tuple[Axis, ...]
    maps: tuple[Map, ...]
    series: tuple[Series, ...] = ()
    boxes: tuple[Box, ...] = ()
    image: str | None = None
    """The image as a data URI (PNG or JPEG), so that a trace can be drawn wherever it is sent."""
    extras: Mapping[str, Any] = field(default_factory=dict)
    """Anything else that JSON can hold."""

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or not self.kind:
            raise OptionError(f"The kind of a trace is a word such as 'text' or 'caption'; got {self.kind!r:.100}.")
        for name, kind in {"axes": Axis, "maps": Map, "series": Series, "boxes": Box}.items():
            given = getattr(self, name)
            if not isinstance(given, tuple | list) or set(map(type, given)) - {kind}:
                raise OptionError(f"The {name} of a trace must be a list of {kind.__name__}; got {given!r:.100}.")
            object.__setattr__(self, name, tuple(given))
        for name, elements in (("axes", self.axes), ("maps", self.maps), ("series", self.series)):
            names = [element.name for element in elements]
            if repeated := [each for each in names if names.count(each) > 1]:
                raise OptionError(f"The {name} of a trace need different names; {repeated[0]!r} comes twice.")
        sized = (each.with_size((len(self.axis(each.rows)), len(self.axis(each.columns)))) for each in self.maps)
        object.__setattr__(self, "maps", tuple(sized))
        for each in self.series:
            self._check_series(each)
        for box in self.boxes:
            if box.position >= len(self.axis(box.axis)):
                count = len(self.axis(box.axis))
                raise ShapeError(f"Axis {box.axis!r} has {count} positions, but a box has position {box.position}.")
        if self.image is not None:
            if not isinstance(self.image, str):
                raise DataError(f"The image of a trace must be a data URI, a text; got {self.image!r:.60}.")
            check_data_uri(self.image)
        object.__setattr__(self, "extras", MappingProxyType(_json_copy(self.extras)))

    @classmethod
    @checked
    def from_weights(
        cls,
        source: Sequence[str],
        target: Sequence[str],
        weights: Any,
        *,
        kind: str = "text",
        names: Sequence[str] | None = None,
        log_probs: Any = None,
        source_text: str | None = None,
        target_text: str | None = None,
        **extras: Any,
    ) -> "Trace":
        """Build a trace from the weights of any model: a tensor, an array or nested lists.

        `weights` is (target, source), or (heads, target, source): then the main map is their mean, followed by one map
        per head. `names` has a name per map, or per head ("head 1", ... by default). `log_probs` has one number per
        target.
        """
        source, target = tuple(source), tuple(target)
        axes = (
            Axis("source", "tokens", source, text=source_text),
            Axis("target", "tokens", target, text=target_text),
        )
        maps = _maps(weights, "target", "source", (len(target), len(source)), names)
        series = () if log_probs is None else (Series("log_prob", "target", log_probs),)
        return cls(kind, axes, maps, series, extras=extras)

    @classmethod
    @checked
    def from_image(
        cls,
        image: Any,
        words: Sequence[str],
        weights: Any,
        *,
        grid: tuple[int, int] | None = None,
        names: Sequence[str] | None = None,
        gates: Any = None,
        choices: Any = None,
        log_probs: Any = None,
        text: str | None = None,
        **extras: Any,
    ) -> "Trace":
        """Build a trace of a caption from (words, cells) weights, or (heads, words, cells), the cells row by row.

        `image` is a Pillow image, a uint8 (h, w, 3) array, or None to leave it out. `grid` is (rows, columns) of the
        cells, and may be left out where it is square. `gates`, `choices` and `log_probs` have one number per word;
        `text` is the whole caption.
        """
        if grid is None:
            cells = np.atleast_1d(to_array(weights, "The weights of a trace")).shape[-1]
            grid = (math.isqrt(cells), math.isqrt(cells))
            if math.prod(grid) != cells or not cells:
                raise ShapeError(f"{cells} cells do not make a square grid: give grid=(rows, columns).")
        cells_axis, words_axis = Axis.from_grid("cells", grid), Axis("target", "words", tuple(words), text=text)
        maps = _maps(weights, "target", "cells", (len(words_axis), len(cells_axis)), names)
        numbers = {"log_prob": log_probs, "gate": gates, "choice": choices}
        series = tuple(Series(name, "target", values) for name, values in numbers.items() if values is not None)
        uri = None if image is None else to_data_uri(image)
        return cls("caption", (cells_axis, words_axis), maps, series, image=uri, extras=extras)

    @classmethod
    @checked
    def from_transformers(
        cls, output: Any, inputs: Any, tokenizer: Any = None, *, target: Any = None, example: int = 0
    ) -> "Trace":
        """Build a trace from the attention of a Hugging Face model: every layer and head, after their mean.

        `output` is what the model or its `generate` returned with `output_attentions=True`, or a tuple of one (batch,
        heads, rows, columns) tensor per layer. `inputs` is what the model was given, with its attention mask, or ids,
        or tokens as text; ids need the `tokenizer`. A model with an encoder and a decoder also needs `target`: the
        labels, or the ids that `generate` returned. `example` is the number of the example in the batch.
        """
        axes, maps = axes_and_maps(output, inputs, tokenizer, target, example)
        return cls("text", axes, maps)

    @property
    def main(self) -> Map:
        """The map that views draw first."""
        if not self.maps:
            raise OptionError(f"This trace of kind {self.kind!r} has no maps, so it has no main map.")
        return self.maps[0]

    @property
    def source(self) -> tuple[str, ...]:
        """The labels of the main map's columns: what is attended to."""
        return self.axis(self.main.columns).labels

    @property
    def target(self) -> tuple[str, ...]:
        """The labels of the main map's rows: what attends."""
        return self.axis(self.main.rows).labels

    @property
    def weights(self) -> Float32[np.ndarray, "target source"]:
        """The weights of the main map."""
        return self.main.weights

    @checked
    def axis(self, name: str) -> Axis:
        """The axis of this name."""
        return _named(name, self.axes, "axis")

    @checked
    def map(self, name: str) -> Map:
        """The map of this name."""
        return _named(name, self.maps, "map")

    @checked
    def values(self, name: str) -> tuple[float | int, ...] | None:
        """The values of the series of this name, or None if the trace has no such series."""
        return next((each.values for each in self.series if each.name == name), None)

    @checked
    def select(self, *, layer: int | None = None, head: int | None = None, name: str | None = None) -> "Trace":
        """A trace with only the maps of this layer, head and name; None takes all.

        `name` is a map's whole name or its first words: "encoder" selects "encoder 1.1", "encoder 1.2", ...
        """
        maps = [
            each
            for each in self.maps
            if layer in (None, each.layer)
            and head in (None, each.head)
            and (name is None or each.name == name or each.name.startswith(f"{name} "))
        ]
        if not maps:
            asked = {"layer": layer, "head": head, "name": name}
            asked = {key: value for key, value in asked.items() if value is not None}
            raise OptionError(f"This trace has no map with {_listed(asked)}. It has {_summary(self.maps)}.")
        return replace(self, maps=tuple(maps))

    def by_words(self) -> "Trace":
        """This trace with the subwords of each word joined: rows are averaged, columns are added.

        Words are found in the text of an axis, or by the marks of common subword tokenizers. Of log-probabilities and
        surprisals a word has the sum, of other series the mean.
        """
        return join_subwords(self)

    @property
    def used_slots(self) -> tuple[int, int] | None:
        """The first slot and the number of slots of the shortest stretch of a memory with all that its heads used.

        The slots are a circle. The heads are the maps "read 1", "write 1", ...; None where none used a slot.
        """
        memories = [axis for axis in self.axes if axis.kind == "slots"]
        heads = [
            each.weights.max(0, initial=0)
            for each in self.maps
            if memories and each.columns == memories[0].name and each.name.startswith(("read ", "write "))
        ]
        used = np.flatnonzero(np.max(heads, axis=0, initial=0) >= MIN_USED) if heads else np.zeros(0)
        if not len(used):
            return None
        slots = len(memories[0])
        gaps = np.diff(used, append=used[0] + slots)
        # Of several longest gaps the last, so that a memory that is used as a whole begins at its first slot.
        last = len(gaps) - 1 - int(gaps[::-1].argmax())
        return int(used[(last + 1) % len(used)]), slots - int(gaps[last]) + 1

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, version 3, without empty fields.

        The layout that viewers need is written too: the words that tokens form, special tokens, the direction of an
        axis, and the slots that were used. `from_dict` computes it again, also for version 2, which lacks it.
        """
        written: dict[str, Any] = {"version": VERSION, "kind": self.kind}
        for name in ("axes", "maps", "series", "boxes"):
            if elements := getattr(self, name):
                written[name] = [element.to_dict() for element in elements]
        if self.image is not None:
            written["image"] = self.image
        if (used := self.used_slots) is not None:
            written["used_slots"] = used
        return written | ({"extras": _json_copy(self.extras)} if self.extras else {})

    def to_json(self) -> str:
        """One line of compact JSON, its numbers rounded to six significant digits; `Trace.from_json` reads it."""
        return json.dumps(self.to_dict(), ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_dict(cls, fields: Any) -> "Trace":
        """Build a trace from what `to_dict` returned, or from a result's dict that has a trace."""
        if not isinstance(fields, Mapping):
            raise DataError(f"Not a trace: it is a {type(fields).__name__}; give what Trace.to_dict() returned.")
        if "version" not in fields and "trace" in fields:
            if fields["trace"] is None:
                raise DataError("This result has no trace: its model has no attention to show.")
            return cls.from_dict(fields["trace"])
        if "version" not in fields:
            raise DataError("Not a trace: it has no 'version'. A trace is the JSON that Trace.to_json() writes.")
        if fields["version"] not in (2, VERSION):
            raise DataError(f"This trace has version {fields['version']!r:.50}; this regard reads versions 2 and 3.")
        if not isinstance(kind := fields.get("kind", ""), str):
            raise DataError(f"Not a trace: its kind must be a word such as 'text' or 'caption'; got {kind!r:.60}.")
        arguments = {name: value for name, value in fields.items() if name not in ("version", "used_slots")}
        try:
            for name, element in _ELEMENTS.items():
                rows = fields.get(name, [])
                if not isinstance(rows, list):
                    raise DataError(f"Not a trace: {name!r} must be a list; got {rows!r:.60}.")
                arguments[name] = tuple(element(row, f"{name}[{index}]") for index, row in enumerate(rows))
            return construct(cls, arguments, "it")
        except RegardError:
            raise
        except (TypeError, KeyError, AttributeError, ValueError, RecursionError) as error:
            raise DataError(f"Not a trace: {type(error).__name__} {error}.") from None

    @classmethod
    @checked
    def from_json(cls, text: str) -> "Trace":
        """Read the JSON of a trace, or that of a result with a trace, as `--json` prints it."""
        try:
            parsed = json.loads(text)
        except json.JSONDecodeError as error:
            if error.msg == "Extra data":
                raise DataError("Not a trace: it holds several JSON values. Take one of its lines.") from None
            raise DataError(f"Not a trace: it is not JSON ({error}).") from None
        except (ValueError, RecursionError) as error:
            raise DataError(f"Not a trace: {error}.") from None
        return cls.from_dict(parsed)

    @classmethod
    @checked
    def load(cls, path: str | os.PathLike[str]) -> "Trace":
        """Read a file that `save` wrote."""
        try:
            return cls.from_json(read_text(path))
        except OSError as error:
            raise DataError(f"{path}: {error.strerror or error}. Give a file that Trace.save wrote.") from error
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: Not a trace: it is not UTF-8 text ({error}).") from error
        except RegardError as error:
            raise DataError(f"{path}: {error}") from error

    @checked
    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the JSON to a file, whole or not at all."""
        return write_text(path, self.to_json())

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        """Every weight of every map, one at a time: the values of COLUMNS."""
        for each in self.maps:
            down, across = self.axis(each.rows).labels, self.axis(each.columns).labels
            for (row, column), weight in np.ndenumerate(each.weights):
                yield each.name, each.layer, each.head, row, down[row], column, across[column], float(f"{weight:.6g}")

    @checked
    def to_csv(self, path: str | os.PathLike[str]) -> Path:
        """Write every weight to a CSV file, a line for each, under the names of COLUMNS; positions count from 0."""
        stream = io.StringIO()
        lines = csv.writer(stream, lineterminator="\n")
        lines.writerow(COLUMNS)
        lines.writerows(self._rows())
        return write_text(path, stream.getvalue())

    def to_dataframe(self) -> Any:
        """Every weight as a row of a pandas data frame with the columns COLUMNS; positions count from 0."""
        pandas = require("A data frame", "pandas", instead="Trace.to_csv writes the same rows without it.")
        return pandas.DataFrame(self._rows(), columns=list(COLUMNS))

    def __eq__(self, other: object) -> bool:
        return self.to_dict() == other.to_dict() if isinstance(other, Trace) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(axis)} {axis.name}" for axis in self.axes)
        return f"Trace({self.kind!r}: {sizes}; {_summary(self.maps)})"

    def _repr_html_(self) -> str:
        # Through the public name, since views stand above traces in the order of imports.
        import regard

        return regard.view(self)._repr_html_()

    def __reduce__(self) -> tuple[Any, ...]:
        # A read-only mapping cannot be pickled.
        return Trace, (self.kind, self.axes, self.maps, self.series, self.boxes, self.image, dict(self.extras))

    def _check_series(self, series: Series) -> None:
        count = len(self.axis(series.axis))
        if len(series.values) != count:
            raise ShapeError(
                f"Series {series.name!r} needs one number per {series.axis!r}, {count} here; got {len(series.values)}."
            )
        if series.name != "choice":
            return
        cells = len(self.source)
        if wrong := [each for each in series.values if not (isinstance(each, int) and 0 <= each < cells)]:
            raise ShapeError(
                f"Series 'choice' holds indices of {self.main.columns!r}, integers from 0 to {cells - 1}; got "
                f"{wrong[0]}."
            )


def _maps(weights: Any, rows: str, columns: str, size: tuple[int, int], names: Sequence[str] | None) -> tuple[Map, ...]:
    """One map, or the mean of several heads followed by each of them."""
    try:
        table = to_array(weights, "The weights of a trace")
    except ShapeError as error:
        raise _wrong_shape(size, rows, columns, str(error)) from None
    if table.ndim not in (2, 3) and table.size:
        raise _wrong_shape(size, rows, columns, f"Got shape {table.shape}.")
    if table.ndim < 3:
        (name,) = _head_names(names, 1, "attention")
        return (Map(name, rows, columns, table).with_size(size),)
    heads = [
        Map(name, rows, columns, each, head=number).with_size(size)
        for number, (name, each) in enumerate(zip(_head_names(names, len(table), "head"), table, strict=True), 1)
    ]
    mean = Map("mean", rows, columns, table.mean(0) if len(table) else np.zeros(size))
    return mean.with_size(size), *heads


def _head_names(names: Sequence[str] | None, count: int, name: str) -> Sequence[str]:
    if names is None:
        return [name] if name == "attention" else [f"{name} {number}" for number in range(1, count + 1)]
    names = tuple(names)
    if len(names) != count:
        raise ShapeError(f"A trace needs one name per map: {count} maps here, but names={list(names)}.")
    return names


def _wrong_shape(size: tuple[int, int], rows: str, columns: str, reason: str) -> ShapeError:
    return ShapeError(
        f"A trace needs ({rows}, {columns}) weights, here {size[0]} x {size[1]}, or (heads, {rows}, {columns}). "
        f"{reason} Pick one example and one layer first."
    )


def _named(name: str, elements: Sequence[Element], what: str) -> Element:
    for element in elements:
        if element.name == name:
            return element
    known = ", ".join(repr(element.name) for element in elements) or "none"
    raise OptionError(f"This trace has no {what} {name!r}; it has {known}.")


def _listed(pairs: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value!r}" for key, value in pairs.items())


def _summary(maps: Sequence[Map]) -> str:
    names = ", ".join(each.name for each in maps[:5]) + (", ..." if len(maps) > 5 else "")
    return f"{len(maps)} map{'' if len(maps) == 1 else 's'}{': ' if maps else ''}{names}"


def _json_copy(extras: Any) -> dict[str, Any]:
    """A deep copy as JSON gives it back; arrays and tensors become lists."""
    if not isinstance(extras, Mapping):
        raise OptionError(f"The extras of a trace are a dictionary; got {extras!r:.100}.")
    try:
        copy: dict[str, Any] = json.loads(
            json.dumps(dict(extras), allow_nan=False, default=lambda value: value.tolist())
        )
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise OptionError(f"The extras of a trace hold what JSON can: {error}. Got {dict(extras)!r:.200}.") from None
    return copy
