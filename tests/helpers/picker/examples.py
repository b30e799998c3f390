"""Numbers to try."""

from dataclasses import dataclass


@dataclass(frozen=True)
class PickExample:
    """Numbers to try."""

    numbers: tuple[float, ...]


def examples() -> tuple[PickExample, ...]:
    return (PickExample((1.0, 3.0, 2.0)),)
