"""The elements of a Trace: axes, maps over two axes, series along one axis, and boxes in an image."""

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from typing import Any, Literal, TypeVar

import numpy as np
from jaxtyping import Float32

from regard.errors import DataError, DtypeError, NonFiniteError, OptionError, ShapeError
from regard.trace.subwords import Words, is_mark, words_of

AXIS_KINDS = ("tokens", "words", "sentences", "cells", "slots", "steps", "features", "classes")
"""What the positions of an axis can be."""
MAX_CELLS = 2**20
"""Maximum number of cells of an image's grid."""
SIGNIFICANT_DIGITS = 6
"""Digits to which numbers are written and compared: the most that a float32 always keeps."""
T = TypeVar("T")
_WRITTEN = ("tokens", "words", "sentences")
# Fields that the JSON of an axis has for viewers; Python computes them from the others.
_DERIVED = ("words", "special", "direction")
# Those that float64 represents exactly.
_POWERS_OF_TEN = np.array([float(f"1e{power}") for power in range(23)])


@dataclass(frozen=True, repr=False)
class Axis:
    """A named sequence of positions: the tokens of a sentence, the cells of an image, the slots of a memory."""

    name: str
    kind: str
    """One of AXIS_KINDS."""
    labels: tuple[str, ...]
    """A label for each position."""
    grid: tuple[int, int] | None = None
    """Rows and columns of an image's cells, which are numbered row by row. Only, and always, for kind "cells"."""
    text: str | None = None
    """The text before it was split into labels."""

    def __post_init__(self) -> None:
        _check_text("name of an axis", self.name)
        if not isinstance(self.kind, str) or self.kind not in AXIS_KINDS:
            raise OptionError(
                f"Axis {self.name!r:.60} has kind {self.kind!r:.60}; choose from {', '.join(AXIS_KINDS)}."
            )
        if isinstance(self.labels, str) or not isinstance(self.labels, Iterable):
            raise DtypeError(f"The labels of axis {self.name!r:.60} must be a list of texts; got {self.labels!r:.60}.")
        labels = tuple(self.labels)
        for label in labels:
            _check_text(f"label of axis {self.name!r}", label, empty=True)
        object.__setattr__(self, "labels", labels)
        if self.text is not None:
            _check_text(f"text of axis {self.name!r}", self.text, empty=True)
        if self.grid is not None or self.kind == "cells":
            self._check_grid()

    @classmethod
    def from_dict(cls, written: Any, where: str) -> "Axis":
        """Read an axis that `to_dict` wrote; `where` is its place in the file, for errors."""
        if isinstance(written, Mapping):
            written = {name: value for name, value in written.items() if name not in _DERIVED}
            if "grid" in written:
                written["grid"] = _grid(written["grid"], where)
                written.setdefault("labels", cls.from_grid(where, written["grid"]).labels)
            if not isinstance(labels := written.get("labels", ()), list | tuple):
                raise DataError(f"Not a trace: the labels of {where} must be a list; got {labels!r:.60}.")
            written |= {"labels": tuple(labels)} if "labels" in written else {}
        return construct(cls, written, where)

    @classmethod
    def from_grid(cls, name: str, grid: tuple[int, int]) -> "Axis":
        """The cells of an image, labelled "row,column" from "1,1" on."""
        rows, columns = _grid(grid, name)
        labels = (f"{row},{column}" for row in range(1, rows + 1) for column in range(1, columns + 1))
        return cls(name, "cells", tuple(labels), (rows, columns))

    @cached_property
    def words(self) -> Words | None:
        """The words that the tokens form, each with its number of tokens; None if every token is a word."""
        return words_of(self.labels, self.text) if self.kind == "tokens" else None

    @property
    def special(self) -> tuple[int, ...]:
        """The positions of tokens that do not occur in the text, such as the end mark."""
        return tuple(index for index, label in enumerate(self.labels) if is_mark(label))

    @property
    def direction(self) -> Literal["ltr", "rtl"]:
        """The direction in which most of the labels are written."""
        return "rtl" if self.kind in _WRITTEN and right_to_left(self.labels) else "ltr"

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        shown = " ".join(self.labels[:6]) + (" ..." if len(self) > 6 else "")
        return f"Axis({self.name!r}, {self.kind!r}, {len(self)} positions: {shown})"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, with the words, special tokens and direction that viewers need.

        The labels of a grid are left out if they are those of `from_grid`.
        """
        written = _without_none(self)
        if self.kind in _WRITTEN:
            derived = {"words": self.words, "special": self.special, "direction": self.direction}
            written |= {name: value for name, value in derived.items() if value and value != "ltr"}
        if self.grid is not None and self.labels == Axis.from_grid(self.name, self.grid).labels:
            del written["labels"]
        return written

    def _check_grid(self) -> None:
        if self.kind != "cells" or self.grid is None:
            raise ShapeError(
                f"Axis {self.name!r} has kind {self.kind!r} and grid {self.grid}: an axis of cells needs "
                "grid=(rows, columns), and no other kind has a grid."
            )
        grid = _grid(self.grid, self.name)
        if math.prod(grid) != len(self):
            raise ShapeError(f"Axis {self.name!r} has {len(self)} labels, but a grid of {grid[0]} x {grid[1]} cells.")
        object.__setattr__(self, "grid", grid)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Map:
    """A named matrix over two axes, usually attention weights: one row per output, one column per input."""

    name: str
    rows: str
    """The name of the axis of the rows."""
    columns: str
    """The name of the axis of the columns."""
    weights: Float32[np.ndarray, "rows columns"]
    """Read-only."""
    layer: int | None = None
    """The number of the layer, counted from 1."""
    head: int | None = None
    """The number of the head, counted from 1."""

    def __init__(
        self, name: str, rows: str, columns: str, weights: Any, layer: int | None = None, head: int | None = None
    ) -> None:
        _check_text("name of a map", name)
        _check_text(f"name of the rows of map {name!r:.60}", rows)
        _check_text(f"name of the columns of map {name!r:.60}", columns)
        for side, number in (("layer", layer), ("head", head)):
            if number is not None and not (_is_integer(number) and number >= 1):
                raise OptionError(f"The {side} of map {name!r} is counted from 1; got {number!r}.")
        table = to_array(weights, f"The weights of map {name!r}")
        if not table.size and table.ndim != 2:
            table = table.reshape(0, 0)
        if table.ndim != 2:
            raise ShapeError(f"Map {name!r} needs (rows, columns) weights; got shape {table.shape}.")
        with np.errstate(over="ignore"):
            table = np.array(table, dtype=np.float32, order="C")
        if len(wrong := np.argwhere(~np.isfinite(table))):
            raise NonFiniteError(
                f"The weights of map {name!r} must be finite float32 numbers; row {wrong[0][0] + 1} has "
                f"{table[tuple(wrong[0])]}."
            )
        table.setflags(write=False)
        layer, head = (None if number is None else int(number) for number in (layer, head))
        vars(self).update(name=name, rows=rows, columns=columns, weights=table, layer=layer, head=head)

    def __eq__(self, other: object) -> bool:
        return self.to_dict() == other.to_dict() if isinstance(other, Map) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        # Arrays lose their read-only flag when they are pickled; constructing the map again restores it.
        return Map, (self.name, self.rows, self.columns, self.weights, self.layer, self.head)

    def __repr__(self) -> str:
        number = "".join(f", {side}={getattr(self, side)}" for side in ("layer", "head") if getattr(self, side))
        size = " x ".join(map(str, self.weights.shape))
        return f"Map({self.name!r}, {self.rows} x {self.columns}: {size}{number})"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, the weights rounded to SIGNIFICANT_DIGITS."""
        return _without_none(self) | {
            "weights": [[weight or 0 for weight in row] for row in _rounded(self.weights).tolist()]
        }

    def with_size(self, size: tuple[int, int]) -> "Map":
        """This map, checked to have (rows, columns) weights. Empty weights take any size without cells."""
        if self.weights.shape == size:
            return self
        if self.weights.size == math.prod(size) == 0 and len(self.weights) in (0, size[0]):
            return Map(self.name, self.rows, self.columns, np.zeros(size), self.layer, self.head)
        got = " x ".join(map(str, self.weights.shape))
        raise ShapeError(
            f"Map {self.name!r} needs {size[0]} x {size[1]} weights, one row per {self.rows!r} and one column per "
            f"{self.columns!r}; got {got}."
        )


@dataclass(frozen=True, init=False, eq=False)
class Series:
    """A named number for each position of an axis: a log-probability, a gate, a surprisal, a chosen cell."""

    name: str
    axis: str
    """The name of the axis."""
    values: tuple[float | int, ...]
    """Whole numbers stay whole, as the indices of chosen cells are."""

    def __init__(self, name: str, axis: str, values: Any) -> None:
        _check_text("name of a series", name)
        _check_text(f"axis of series {name!r:.60}", axis)
        numbers = to_array(values, f"The values of series {name!r}")
        if numbers.ndim != 1:
            raise ShapeError(f"Series {name!r} needs one number per position; got shape {numbers.shape}.")
        # JSON has no NaN, and a browser would refuse the whole file.
        if not np.isfinite(numbers).all():
            raise NonFiniteError(f"The values of series {name!r} must be finite; got {tuple(numbers.tolist())}.")
        vars(self).update(name=name, axis=axis, values=tuple(numbers.tolist()))

    def __eq__(self, other: object) -> bool:
        return self.to_dict() == other.to_dict() if isinstance(other, Series) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, rounded to SIGNIFICANT_DIGITS."""
        return _without_none(self) | {"values": _rounded(np.array(self.values)).tolist()}


@dataclass(frozen=True)
class Box:
    """A rectangle of the image that belongs to one position of an axis: what a glimpse sees at a step."""

    axis: str
    position: int
    left: float | int
    top: float | int
    right: float | int
    bottom: float | int
    """Edges are fractions of the image's width and height, from 0 to 1."""

    def __post_init__(self) -> None:
        if not (_is_integer(self.position) and self.position >= 0):
            raise OptionError(f"The position of a box is counted from 0; got {self.position!r}.")
        object.__setattr__(self, "position", int(self.position))
        for low, high in (("left", "right"), ("top", "bottom")):
            edges = to_array([getattr(self, low), getattr(self, high)], f"{low} and {high} of a box")
            if edges.shape != (2,) or not 0 <= edges[0] < edges[1] <= 1:
                raise OptionError(
                    f"A box needs 0 <= {low} < {high} <= 1, fractions of the image; got {low}={getattr(self, low)!r}, "
                    f"{high}={getattr(self, high)!r}."
                )
            for side, edge in zip((low, high), _rounded(edges.astype(np.float64)).tolist(), strict=True):
                object.__setattr__(self, side, edge)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return _without_none(self)


def construct(kind: type[T], written: Any, where: str) -> T:
    """Build an element from a dictionary, which must have all required fields of its class and no unknown ones."""
    if not isinstance(written, Mapping):
        raise DataError(f"Not a trace: {where} must be an object; got {written!r:.60}.")
    known = {each.name: each.default is MISSING and each.default_factory is MISSING for each in fields(kind)}  # type: ignore[arg-type]
    if unknown := sorted(set(written) - set(known)):
        raise DataError(f"Not a trace: {where} has an unknown field {unknown[0]!r:.60}; known are {', '.join(known)}.")
    if missing := [name for name, is_required in known.items() if is_required and name not in written]:
        raise DataError(f"Not a trace: {where} has no {missing[0]!r}.")
    return kind(**written)


def right_to_left(words: Iterable[str]) -> bool:
    """Whether most letters of the words belong to a right-to-left script, such as Persian or Hebrew."""
    kinds = Counter(map(unicodedata.bidirectional, "".join(words)))
    return kinds["R"] + kinds["AL"] > kinds["L"]


def to_array(numbers: Any, name: str) -> np.ndarray:
    """Numbers from a tensor, an array or nested lists of either; text, ragged lists and other types are refused."""
    try:
        array = np.asarray(_plain(numbers))
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise ShapeError(f"{name} must be a rectangular array of numbers; got {_described(numbers)}.") from None
    if array.dtype.kind not in "fiu" and array.size:
        kind = "text" if array.dtype.kind == "U" else array.dtype
        raise DtypeError(f"{name} must be real numbers; got {_described(numbers)} of {kind}.")
    return array.astype(np.float64) if array.dtype.kind not in "iu" else array


def _plain(numbers: Any) -> Any:
    if hasattr(numbers, "detach"):
        numbers = numbers.detach().cpu()
        # NumPy has no bfloat16.
        return numbers.double().numpy() if numbers.is_floating_point() else numbers.numpy()
    if isinstance(numbers, list | tuple):
        return [_plain(each) if hasattr(each, "__len__") or hasattr(each, "detach") else each for each in numbers]
    return numbers


def _described(numbers: Any) -> str:
    shape = getattr(numbers, "shape", None)
    return type(numbers).__name__ if shape is None else f"{type(numbers).__name__} of shape {tuple(shape)}"


def _rounded(numbers: np.ndarray) -> np.ndarray:
    """Numbers with SIGNIFICANT_DIGITS; those below 1e-17 keep fewer, those above 1e27 more."""
    if numbers.dtype.kind in "iu":
        return numbers
    numbers = numbers.astype(np.float64)
    magnitudes = np.abs(numbers)
    exponents = np.floor(np.log10(np.where(magnitudes > 0, magnitudes, 1))).astype(int)
    shifts = SIGNIFICANT_DIGITS - 1 - exponents
    up, down = _POWERS_OF_TEN[shifts.clip(0, 22)], _POWERS_OF_TEN[(-shifts).clip(0, 22)]
    # Integers over exact powers of ten, so that each result is the float nearest to a short decimal number.
    return np.asarray(np.round(numbers * up / down) / up * down)


def _grid(grid: Any, name: str) -> tuple[int, int]:
    sides = list(grid) if isinstance(grid, list | tuple) else []
    if len(sides) != 2 or not all(_is_integer(side) and side >= 1 for side in sides) or math.prod(sides) > MAX_CELLS:
        raise ShapeError(
            f"The grid of axis {name!r} is two positive integers, (rows, columns), of at most {MAX_CELLS:,} cells "
            f"together; got {grid!r:.100}."
        )
    return int(sides[0]), int(sides[1])


def _is_integer(number: Any) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool)


def _check_text(name: str, text: Any, *, empty: bool = False) -> None:
    if not isinstance(text, str) or not (text or empty):
        raise DtypeError(f"The {name} must be {'text' if empty else 'non-empty text'}; got {text!r:.100}.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DtypeError(f"The {name} is not valid Unicode (it has half of a surrogate pair): {text!r:.100}.") from None


def _without_none(element: Any) -> dict[str, Any]:
    values = {field.name: getattr(element, field.name) for field in fields(element)}
    return {name: value for name, value in values.items() if value is not None}
