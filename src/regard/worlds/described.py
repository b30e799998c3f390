"""Statistics whose numbers carry a description, so that they can be printed with an explanation."""

from dataclasses import field, fields
from typing import Any, NamedTuple


class Row(NamedTuple):
    """One number with its name and description."""

    name: str
    value: int | float
    description: str


def described(text: str) -> Any:
    """Declare a dataclass field with a description."""
    return field(metadata={"description": text})


class Described:
    """Base of dataclasses whose fields are declared with `described`."""

    def rows(self) -> list[Row]:
        """Return each number with its name and description."""
        own: Any = self
        return [Row(each.name, getattr(self, each.name), each.metadata["description"]) for each in fields(own)]
