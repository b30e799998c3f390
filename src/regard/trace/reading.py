"""Reading traces from JSON: version 2, version 1, and the traces inside printed results."""

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from regard.errors import DataError, RegardError
from regard.trace.elements import VERSION, Axis, Box, Map, Series

_ELEMENTS: dict[str, type[Axis] | type[Map] | type[Series] | type[Box]] = {
    "axes": Axis,
    "maps": Map,
    "series": Series,
    "boxes": Box,
}
_OPTIONAL = {"layer", "head"}


def parse(text: str) -> dict[str, Any]:
    """The JSON object in a text; whatever is wrong with it is a DataError."""
    try:
        parsed = json.loads(text)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            raise DataError("Not a trace: it holds several JSON values. Take one of its lines.") from None
        raise DataError(f"Not a trace: it is not JSON ({error}).") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"Not a trace: {error}.") from None
    if not isinstance(parsed, dict):
        raise DataError(f"Not a trace: it is a {type(parsed).__name__}, not the object that Trace.to_json() writes.")
    return parsed


def constructor_arguments(written: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of Trace from a version 1 or version 2 dictionary."""
    if not isinstance(written, Mapping):
        raise DataError(f"Not a trace: it is a {type(written).__name__}, not what Trace.to_dict() returns.")
    if "version" not in written and "trace" in written:
        if written["trace"] is None:
            raise DataError("This result has no trace: its model has no attention to show.")
        return constructor_arguments(written["trace"])
    if "version" not in written:
        raise DataError("Not a trace: it has no 'version'. A trace is the JSON that Trace.to_json() writes.")
    version = written["version"]
    if version not in (1, VERSION) or isinstance(version, bool):
        raise DataError(f"This trace has version {version!r:.50}; this regard reads versions 1 and {VERSION}.")
    try:
        return _version_1(written) if version == 1 else _version_2(written)
    except (TypeError, KeyError, AttributeError, ValueError, RecursionError) as error:
        if isinstance(error, RegardError):
            raise
        raise DataError(f"Not a trace: {type(error).__name__} {error}.") from None


def _version_2(written: Mapping[str, Any]) -> dict[str, Any]:
    known = {"version", "kind", "image", "extras", *_ELEMENTS}
    if unknown := sorted(set(written) - known):
        raise DataError(f"Not a trace: unknown field {unknown[0]!r:.60}; a trace has {', '.join(sorted(known))}.")
    if "kind" not in written:
        raise DataError("Not a trace: it has no 'kind'.")
    arguments = {name: written[name] for name in ("kind", "image", "extras") if name in written}
    for name, element in _ELEMENTS.items():
        rows = written.get(name, [])
        if not isinstance(rows, list):
            raise DataError(f"Not a trace: {name!r} must be a list; got {rows!r:.60}.")
        arguments[name] = tuple(_element(element, each, f"{name}[{place}]") for place, each in enumerate(rows))
    return arguments


def _element(element: type[Any], written: Any, where: str) -> Any:
    """An axis, map, series or box from its dictionary, with every field checked to be known and present."""
    if not isinstance(written, dict):
        raise DataError(f"Not a trace: {where} must be an object; got {written!r:.60}.")
    if element is Axis:
        written = {name: tuple(value) if isinstance(value, list) else value for name, value in written.items()}
        if "labels" not in written and "grid" in written:
            written["labels"] = Axis.from_grid(where, written["grid"]).labels
    known = {each.name: each.default is MISSING and each.name not in _OPTIONAL for each in fields(element)}
    if unknown := sorted(set(written) - set(known)):
        raise DataError(f"Not a trace: {where} has an unknown field {unknown[0]!r:.60}; known are {', '.join(known)}.")
    if missing := [name for name, required in known.items() if required and name not in written]:
        raise DataError(f"Not a trace: {where} has no {missing[0]!r}.")
    if element is Axis and not isinstance(written["labels"], tuple):
        raise DataError(f"Not a trace: the labels of {where} must be a list; got {written['labels']!r:.60}.")
    return element(**written)


def _version_1(written: Mapping[str, Any]) -> dict[str, Any]:
    """Version 1 had one map of tokens or cells, its heads, and an optional field for everything else."""
    for name in ("kind", "source", "target", "weights", "extras"):
        if name not in written:
            raise DataError(f"Not a trace: it has no {name!r}.")
    grid = written.get("grid")
    columns = "source" if grid is None else "cells"
    inputs = {"name": columns, "kind": "tokens" if grid is None else "cells", "labels": written["source"]}
    optional = {"grid": grid, "text": written.get("source_text")}
    inputs |= {name: value for name, value in optional.items() if value is not None}
    outputs = {"name": "target", "kind": "tokens" if grid is None else "words", "labels": written["target"]}
    if written.get("target_text") is not None:
        outputs["text"] = written["target_text"]
    heads, names = written.get("heads", []), written.get("head_names", [])
    if not isinstance(heads, list) or not isinstance(names, list) or len(heads) != len(names):
        raise DataError("Not a trace: 'heads' and 'head_names' must be lists of the same length.")
    main = {"name": "mean" if heads else "attention", "weights": written["weights"]}
    maps = [main, *({"name": names[k], "weights": heads[k], "head": k + 1} for k in range(len(heads)))]
    series = {"log_prob": written.get("scores"), "gate": written.get("gates"), "choice": written.get("choices")}
    converted = {
        "kind": written["kind"] if grid is None else "caption",
        "axes": [inputs, outputs],
        "maps": [each | {"rows": "target", "columns": columns} for each in maps],
        "series": [
            {"name": name, "axis": "target", "values": values} for name, values in series.items() if values is not None
        ],
        "extras": written["extras"],
    }
    if written.get("picture") is not None:
        converted["image"] = written["picture"]
    return _version_2(converted)
