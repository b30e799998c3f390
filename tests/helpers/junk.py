"""Wrong values in JSON: every way to replace one value of a right one, or to leave out one field."""

import copy
import json
from collections.abc import Iterator
from typing import Any

DEEP = json.loads("[" * 500 + "]" * 500)
JUNK = (
    *(None, True, 3, -1, 1e300, 2**70, float("nan"), "text", "0.5", [], {}, [[]], ["0.5"], [[["a"]]], [None], {"a": 1}),
    DEEP,
)
_LEFT_OUT = object()


def wrong_values(written: Any) -> Iterator[Any]:
    """Replace each value by junk of every type, and leave out each field."""
    for path in _places(written):
        for value in JUNK:
            yield with_value(written, path, value)
        if path and isinstance(path[-1], str):
            yield with_value(written, path, _LEFT_OUT)


def with_value(written: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy with another value at a path of keys and indices."""
    if not path:
        return value
    changed = copy.deepcopy(written)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    if value is _LEFT_OUT:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return changed


def _places(written: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of each value in nested dictionaries and lists."""
    yield path
    children = written.items() if isinstance(written, dict) else enumerate(written) if isinstance(written, list) else ()
    for key, value in children:
        yield from _places(value, (*path, key))
