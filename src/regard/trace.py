"""Trace: what a result carries and every view reads."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.errors import RegardError, ShapeError

VERSION = 1


@dataclass(frozen=True)
class Trace:
    """Which input each output attended to: weights[t][i] is the weight of source i for target t.

    The JSON form is versioned, so that a trace written today can be read by later viewers.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: tuple[tuple[float, ...], ...]
    kind: str = "text"
    extras: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        widths = {len(row) for row in self.weights}
        if len(self.weights) != len(self.target) or widths - {len(self.source)}:
            raise ShapeError(
                f"A trace needs one row of weights per target and one weight per source: {len(self.target)} x "
                f"{len(self.source)} here, but the weights are {len(self.weights)} x {sorted(widths)}."
            )

    @classmethod
    def of(
        cls, source: Sequence[str], target: Sequence[str], weights: Any, *, kind: str = "text", **extras: Any
    ) -> "Trace":
        """A trace of any model: weights is a (target, source) tensor, array or nested list."""
        rows = weights.tolist() if hasattr(weights, "tolist") else weights
        try:
            table = tuple(tuple(float(weight) for weight in row) for row in rows)
        except TypeError:
            raise ShapeError(
                f"A trace needs (target, source) weights, here {len(target)} x {len(source)}; got "
                f"{getattr(weights, 'shape', type(weights).__name__)}. Pick one head and one example first."
            ) from None
        return cls(tuple(source), tuple(target), table, kind, extras)

    def to_json(self) -> str:
        """One JSON object; `Trace.from_json` reads it back."""
        fields = {"version": VERSION, "kind": self.kind, "source": self.source, "target": self.target}
        return json.dumps(fields | {"weights": self.weights, "extras": self.extras}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Trace":
        """The trace that `to_json` wrote."""
        try:
            fields = json.loads(text)
            version = fields["version"]
        except (json.JSONDecodeError, TypeError, KeyError) as error:
            raise RegardError(f"Not a trace: {error!r}. A trace is the JSON that Trace.to_json() writes.") from error
        if version != VERSION:
            raise RegardError(f"This trace has version {version}; this regard reads version {VERSION}.")
        return cls.of(fields["source"], fields["target"], fields["weights"], kind=fields["kind"], **fields["extras"])

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
