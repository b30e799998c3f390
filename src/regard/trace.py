"""Trace: what a result carries and every view reads."""

import json
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from regard.errors import NonFiniteError, RegardError, ShapeError

VERSION = 1
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

    def __post_init__(self) -> None:
        self._check("weights", self.weights)
        for number, table in enumerate(self.heads, 1):
            self._check(f"weights of head {number}", table)
        if len(self.heads) != len(self.head_names):
            raise ShapeError(
                f"A trace needs a name for each head: {len(self.heads)} heads here, but head_names are "
                f"{list(self.head_names)}."
            )
        if self.scores is not None and len(self.scores) != len(self.target):
            raise ShapeError(
                f"A trace needs one score per target: {len(self.target)} targets here, but {len(self.scores)} scores."
            )
        # JSON has no NaN, and a browser would refuse the whole file.
        if not all(map(math.isfinite, self.scores or ())):
            raise NonFiniteError(f"The scores of a trace must be finite; got {self.scores}.")

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
            scores = fields.get("scores")
            return cls(
                tuple(fields["source"]),
                tuple(fields["target"]),
                _map(fields["weights"]),
                fields["kind"],
                fields["extras"],
                tuple(_map(table) for table in fields.get("heads", ())),
                tuple(fields.get("head_names", ())),
                None if scores is None else tuple(float(score) for score in scores),
                fields.get("source_text"),
                fields.get("target_text"),
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


def _plain(numbers: Any) -> Any:
    return numbers.tolist() if hasattr(numbers, "tolist") else numbers


def _map(rows: Iterable[Iterable[Any]]) -> Map:
    return tuple(tuple(float(weight) for weight in row) for row in rows)


def _mean(heads: Sequence[Map]) -> Map:
    return tuple(
        tuple(math.fsum(weights) / len(heads) for weights in zip(*rows, strict=True))
        for rows in zip(*heads, strict=True)
    )
