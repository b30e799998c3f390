"""One abuse case, how it may end, and the judgement of what it did: the kinds of failure that `make abuse` counts."""

import inspect
import re
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from regard.errors import RegardError

FINE = ("refused", "answered")
FAILURES = ("traceback", "silent", "unclear", "destroyed", "hang", "memory")
"""A raw error; a wrong value that is taken; a message without a way out; a file of the user that is gone or changed;
more than the time allowed; more than 2 GiB."""
MINE = "years of work"
"""The content of the file of the user that stands in the folder of every case."""
_WAY_OUT = re.compile(
    r"\b(must|takes?|needs?|at most|at least|use|give|choose|create|call|try|move|add|remove|set|make|name|train|check|"
    r"download|convert|one of|there is no|is missing|are missing|is not|are not|instead|expected|allowed|cannot|reads?|"
    r"has no|have no|holds|pass|should|larger|smaller|pip install|unknown|invalid|unexpected|requires|"
    r"such as|; got|is it the right|is empty, but|"
    r"are no|multiple times|longer than|did you mean|see|truncated|damaged|differ|belongs?|"
    r"is for|exists|may|does not)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Verdict:
    """How a case ended: one of FINE or FAILURES, with what it said."""

    kind: str
    detail: str = ""


@dataclass(frozen=True)
class Case:
    """Something to try in an empty folder with one file of the user."""

    group: str
    name: str
    run: Callable[[Path], Verdict]
    seconds: float = 20.0


def judged(call: Callable[[], Any], *, must_refuse: bool = False, python: type[Exception] | tuple[()] = ()) -> Verdict:
    """What a call of the library does: it answers, or raises a RegardError that shows a way out."""
    try:
        call()
    except RegardError as error:
        return judged_message(str(error))
    except python:
        raise
    except MemoryError as error:
        return Verdict("memory", str(error))
    except Exception as error:
        if "allocate memory" in str(error) or "not enough memory" in str(error):
            return Verdict("memory", str(error)[:200])
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(last.filename).name}:{last.lineno}"
        return Verdict("traceback", f"{type(error).__name__}: {str(error)[:160]} ({place})")
    return Verdict("silent", "a wrong value is taken") if must_refuse else Verdict("answered")


def judged_message(message: str) -> Verdict:
    """Whether a message is one that a user can act on."""
    if len(message) < 10 or "Traceback" in message or "[Errno" in message or not _WAY_OUT.search(message):
        return Verdict("unclear", message[:300])
    return Verdict("refused", message[:300])


def conforms(value: Any, kind: Any) -> bool:
    """Whether a value is of the kind that an annotation declares; true where the annotation says too little."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in (Any, inspect.Parameter.empty) or isinstance(kind, TypeVar | str):
        return True
    if origin is Annotated:
        metas = arguments[1:]
        return conforms(value, arguments[0]) and all(_in_range(value, meta) for meta in metas)
    if origin in (Union, UnionType):
        return any(conforms(value, part) for part in arguments)
    if origin is Literal:
        return isinstance(value, str | int) and value in arguments
    if kind in (None, NoneType):
        return value is None
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and value - value == 0
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if kind is str:
        return isinstance(value, str)
    if hasattr(kind, "dim_str"):  # an array of jaxtyping
        return isinstance(value, kind.array_type)
    if origin in (Sequence, list, tuple, Iterable) and arguments:
        return isinstance(value, Iterable) and not (
            isinstance(value, list | tuple) and any(not conforms(part, arguments[0]) for part in value)
        )
    if origin in (Mapping, dict):
        return isinstance(value, Mapping)
    if origin is Callable or kind is Callable or origin is type(Callable):
        return callable(value)
    plain = origin or kind
    if getattr(plain, "__module__", "") == "collections.abc" and plain.__name__ == "Callable":
        return callable(value)
    return isinstance(value, plain) if isinstance(plain, type) else True


def _in_range(value: Any, meta: Any) -> bool:
    if accepts := getattr(meta, "accepts", None):
        return isinstance(value, str) and bool(accepts(value))
    if not isinstance(value, int | float):
        return True
    bounds = (
        ("ge", lambda b: value >= b),
        ("gt", lambda b: value > b),
        ("le", lambda b: value <= b),
        ("lt", lambda b: value < b),
    )
    return all(getattr(meta, name, None) is None or holds(getattr(meta, name)) for name, holds in bounds)
