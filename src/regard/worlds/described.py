"""Statistics whose numbers carry a description, so that they can be printed with an explanation."""

from dataclasses import field, fields
from typing import Any, NamedTuple

from regard.errors import OptionError


class Row(NamedTuple):
    """One number with its name and description."""

    name: str
    value: int | float
    description: str


def described(text: str) -> Any:
    """Declare a dataclass field with a description."""
    return field(metadata={"description": text})


def check_count(count: int) -> None:
    """Refuse statistics of nothing."""
    if count < 1:
        raise OptionError(f"statistics needs at least one example to measure; got count={count}.")


class Described:
    """Base of dataclasses whose fields are declared with `described`."""

    def rows(self) -> list[Row]:
        """Return each number with its name and description."""
        own: Any = self
        return [Row(each.name, getattr(self, each.name), each.metadata["description"]) for each in fields(own)]
