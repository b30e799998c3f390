"""Trace: what a result carries and every view reads."""

import base64
import io
import json
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from regard.errors import NonFiniteError, RegardError, ShapeError

VERSION = 1
# Pixels up to which a picture is kept exactly.
_SMALL = 128 * 128
Map = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Trace:
    """Which input each output attended to: weights[t][i] is the weight of source i for target t.

    The JSON form is versioned, so that a trace written today can be read by later viewers.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: Map
    kind: str = "text"
    extras: dict[str, Any] = field(default_factory=dict)
    heads: tuple[Map, ...] = ()
    """The map of each head, where there are several; `weights` is then their mean, or another map to show first."""
    head_names: tuple[str, ...] = ()
    """A name for each of `heads`."""
    scores: tuple[float, ...] | None = None
    """The log-probability of each target token."""
    source_text: str | None = None
    """The source as it was given, before it was cut into tokens."""
    target_text: str | None = None
    """The target as it is read, its tokens put together."""
    grid: tuple[int, int] | None = None
    """Of a picture: the rows and columns of its cells, which are the source, row by row."""
    picture: str | None = None
    """The picture itself, as a data URI (PNG or JPEG), so that a trace can be drawn wherever it is sent."""
    gates: tuple[float, ...] | None = None
    """How much of what it saw each target token let in: beta of Xu et al. 2015, section 4.2.1."""
    choices: tuple[int, ...] | None = None
    """Hard attention: the number of the source that was chosen for each target token; `weights` are its chances."""

    def __post_init__(self) -> None:
        self._check("weights", self.weights)
        for number, table in enumerate(self.heads, 1):
            self._check(f"weights of head {number}", table)
        if len(self.heads) != len(self.head_names):
            raise ShapeError(
                f"A trace needs a name for each head: {len(self.heads)} heads here, but head_names are "
                f"{list(self.head_names)}."
            )
        for name, each in (("score", self.scores), ("gate", self.gates), ("choice", self.choices)):
            if each is not None and len(each) != len(self.target):
                raise ShapeError(
                    f"A trace needs one {name} per target: {len(self.target)} targets here, but {len(each)} {name}s."
                )
            # JSON has no NaN, and a browser would refuse the whole file.
            if not all(map(math.isfinite, each or ())):
                raise NonFiniteError(f"The {name}s of a trace must be finite; got {each}.")
        if self.grid is not None and math.prod(self.grid) != len(self.source):
            raise ShapeError(
                f"The grid of a trace has a cell per source: {len(self.source)} here, but it is {self.grid}."
            )
        if wrong := [choice for choice in self.choices or () if not 0 <= choice < len(self.source)]:
            raise ShapeError(f"The choices of a trace are numbers from 0 to {len(self.source) - 1}; got {wrong[0]}.")

    @classmethod
    def of(
        cls,
        source: Sequence[str],
        target: Sequence[str],
        weights: Any,
        *,
        kind: str = "text",
        head_names: Sequence[str] | None = None,
        scores: Any = None,
        source_text: str | None = None,
        target_text: str | None = None,
        **extras: Any,
    ) -> "Trace":
        """A trace of any model: weights is a (target, source) or (heads, target, source) tensor, array or nested list.

        With heads, their mean becomes the map that views draw, and `head_names` names them ("head 1", ... otherwise).
        """
        try:
            rows = [_plain(row) for row in _plain(weights)]
            deep = any(hasattr(weight, "__len__") for row in rows for weight in row)
            heads = tuple(_map(table) for table in rows) if deep else ()
            table = _mean(heads) if deep else _map(rows)
        except (TypeError, ValueError):
            raise ShapeError(
                f"A trace needs (target, source) weights, here {len(target)} x {len(source)}, or (heads, target, "
                f"source); got {getattr(weights, 'shape', type(weights).__name__)}. Pick one example and one layer "
                "first."
            ) from None
        return cls(
            tuple(source),
            tuple(target),
            table,
            kind,
            extras,
            heads,
            tuple(head_names if head_names is not None else (f"head {n + 1}" for n in range(len(heads)))),
            None if scores is None else tuple(float(score) for score in _plain(scores)),
            source_text,
            target_text,
        )

    @classmethod
    def of_picture(
        cls,
        picture: Any,
        target: Sequence[str],
        weights: Any,
        *,
        grid: tuple[int, int] | None = None,
        gates: Any = None,
        choices: Any = None,
        **more: Any,
    ) -> "Trace":
        """A trace of a captioner: weights is (target, cells), the cells of the picture row by row.

        `picture` is a Pillow picture, a uint8 (h, w, 3) array, or None to leave it out. `grid` is (rows, columns), and
        may be left out where it is square. `more` is what `Trace.of` takes.
        """
        rows = [_plain(row) for row in _plain(weights)]
        cells = len(rows[0]) if rows and hasattr(rows[0], "__len__") else 0
        if not rows and grid is not None:
            # A caption without words: nothing was looked at, but the grid was there.
            cells = math.prod(grid)
        if grid is None:
            grid = (math.isqrt(cells), math.isqrt(cells))
        if math.prod(grid) != cells:
            raise ShapeError(f"{cells} cells do not make a grid of {grid[0]} x {grid[1]}: give grid=(rows, columns).")
        places = [f"{row},{column}" for row in range(1, grid[0] + 1) for column in range(1, grid[1] + 1)]
        return replace(
            cls.of(places, target, rows, kind="picture", **more),
            grid=(int(grid[0]), int(grid[1])),
            picture=None if picture is None else _data_uri(picture),
            gates=None if gates is None else tuple(float(gate) for gate in _plain(gates)),
            choices=None if choices is None else tuple(int(choice) for choice in _plain(choices)),
        )

    def by_head(self) -> list[tuple[str, "Trace"]]:
        """A trace of each head alone, under its name: what `picture.heat_maps` draws side by side."""
        return [
            (name, replace(self, weights=table, heads=(), head_names=()))
            for name, table in zip(self.head_names, self.heads, strict=True)
        ]

    def largest(self) -> float:
        """The weight that views draw darkest: 1, or the heaviest where all are light or some are above 1."""
        heaviest = max((weight for row in self.weights for weight in row), default=0.0)
        return heaviest if heaviest > 1 or 0 < heaviest < 0.5 else 1.0

    def to_json(self) -> str:
        """One JSON object; `Trace.from_json` reads it back. What a trace does not have is left out."""
        fields = {"version": VERSION, "kind": self.kind, "source": self.source, "target": self.target}
        fields |= {"weights": self.weights, "extras": self.extras}
        optional = {
            "heads": self.heads or None,
            "head_names": self.head_names or None,
            "scores": self.scores,
            "source_text": self.source_text,
            "target_text": self.target_text,
            "grid": self.grid,
            "picture": self.picture,
            "gates": self.gates,
            "choices": self.choices,
        }
        fields |= {name: value for name, value in optional.items() if value is not None}
        return json.dumps(fields, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Trace":
        """The trace that `to_json` wrote."""
        try:
            fields = json.loads(text)
            version = fields["version"]
            if version != VERSION:
                raise RegardError(f"This trace has version {version}; this regard reads version {VERSION}.")
            numbers = {name: fields.get(name) for name in ("scores", "gates", "choices", "grid")}
            scores, gates, choices, grid = (None if each is None else tuple(each) for each in numbers.values())
            return cls(
                tuple(fields["source"]),
                tuple(fields["target"]),
                _map(fields["weights"]),
                fields["kind"],
                fields["extras"],
                tuple(_map(table) for table in fields.get("heads", ())),
                tuple(fields.get("head_names", ())),
                None if scores is None else tuple(map(float, scores)),
                fields.get("source_text"),
                fields.get("target_text"),
                None if grid is None else (int(grid[0]), int(grid[1])),
                fields.get("picture"),
                None if gates is None else tuple(map(float, gates)),
                None if choices is None else tuple(map(int, choices)),
            )
        except (json.JSONDecodeError, TypeError, KeyError) as error:
            raise RegardError(f"Not a trace: {error!r}. A trace is the JSON that Trace.to_json() writes.") from error

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Trace":
        """The trace in a file that `save` wrote."""
        try:
            return cls.from_json(Path(path).read_text(encoding="utf-8"))
        except (RegardError, UnicodeDecodeError) as error:
            raise RegardError(f"{path}: {error}") from error

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the JSON to a temporary name, then rename, so that no half-written file is ever seen."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(path.name + ".tmp")
        draft.write_text(self.to_json(), encoding="utf-8")
        draft.replace(path)
        return path

    def _check(self, name: str, table: Map) -> None:
        widths = {len(row) for row in table}
        if len(table) != len(self.target) or widths - {len(self.source)}:
            raise ShapeError(
                f"A trace needs one row of weights per target and one weight per source: {len(self.target)} x "
                f"{len(self.source)} here, but the {name} are {len(table)} x {sorted(widths)}."
            )
        for word, row in zip(self.target, table, strict=True):
            if not all(map(math.isfinite, row)):
                raise NonFiniteError(f"The weights of a trace must be finite; for {word!r} the {name} are {row}.")


def _data_uri(picture: Any) -> str:
    """A small picture as PNG, exactly; a photograph as JPEG."""
    from PIL import Image

    image = picture if isinstance(picture, Image.Image) else Image.fromarray(picture)
    kind = "png" if image.width * image.height <= _SMALL else "jpeg"
    stream = io.BytesIO()
    image.convert("RGB").save(stream, kind, **({"quality": 90} if kind == "jpeg" else {}))
    return f"data:image/{kind};base64,{base64.b64encode(stream.getvalue()).decode()}"


def _plain(numbers: Any) -> Any:
    return numbers.tolist() if hasattr(numbers, "tolist") else numbers


def _map(rows: Iterable[Iterable[Any]]) -> Map:
    return tuple(tuple(float(weight) for weight in row) for row in rows)


def _mean(heads: Sequence[Map]) -> Map:
    return tuple(
        tuple(math.fsum(weights) / len(heads) for weights in zip(*rows, strict=True))
        for rows in zip(*heads, strict=True)
    )
