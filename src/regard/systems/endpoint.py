"""Endpoints: functions of a system that the server offers below its verb, such as `/v1/translate/inspect`.

A system marks them in its `inspection.py`; request, answer and documentation are generated from the signature, the
docstrings and the dataclasses that they name. Nothing here knows of a server.

    @endpoint("expected", input="text", answer="expected", example={"text": "The dog is running."})
    def expected_words(model: Reader, text: str, *, top: int = 5) -> list[tuple[Expected, ...]]: ...
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])
Value = TypeVar("Value")
NOT_SENT = {"sent": False}
"""The metadata of a field of an answer that is for Python alone."""


@dataclass(frozen=True)
class Endpoint:
    """What a function declares about its route. Parameters that are a System are named by `model` and the like."""

    name: str
    """The last part of the route."""
    input: str = ""
    """The parameter that requests call `input`, as they do for the verb."""
    answer: str = ""
    """The field of the answer that holds the value, where the value is no dataclass."""
    example: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of a request that is answered, for those without a default."""


@dataclass(frozen=True)
class Streamed(Generic[Value]):
    """Values that take long, each of which may be sent as soon as it is there."""

    count: int
    values: Iterator[Value]


def endpoint(name: str, **declared: Any) -> Callable[[Function], Function]:
    """Mark a function as an endpoint; keywords are the fields of `Endpoint`. A function without parameters is a GET."""

    def mark(function: Function) -> Function:
        function.endpoint = Endpoint(name, **declared)  # type: ignore[attr-defined]
        return function

    return mark
