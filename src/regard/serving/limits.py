"""How much a request may ask for, by the names of its fields; the OpenAPI document quotes it."""

from typing import Any

from regard.bounds import BOUNDS

LARGEST = {name: in_request for name, (_, in_request) in BOUNDS.items() if in_request is not None}
"""The largest numbers, so that no request can monopolise the server."""
LONGEST = {
    "prefix": 500, "before": 500, "attention": 64, "heads": 256, "align": 40, "word": 100, "boxes": 8, "layers": 40,
    "removed": 20_000, "locations": 32, "text": 400, "example": 40, "source": 4000, "target": 4000, "direction": 40,
}  # fmt: skip
"""The most characters of a text, and the most entries of a list."""
NUMBER, ENTRIES, ROWS, COLUMNS = 1_000_000, 1000, 2000, 64
"""The limits of fields without a line above, numbers and lists; and of the rows and columns of an input of numbers."""


def described(inputs: int, characters: int, megapixels: int) -> str:
    """The limits in words."""
    named = ", ".join(f"`{name}` {largest:,}" for name, largest in LARGEST.items())
    long = ", ".join(f"`{name}` {longest:,}" for name, longest in LONGEST.items())
    return (
        f"A request has at most {inputs} inputs (`--max-inputs`), of {characters:,} characters (`--max-characters`) or "
        f"{megapixels} megapixels (`--max-megapixels`) each. Largest numbers: {named}; others {NUMBER:,}. Most "
        f"characters or entries: {long}; others {ENTRIES:,}."
    )


def largest(name: str, kind: Any, given: Any = None) -> Any:
    """The largest number of a field: its own bound `given`, or that of the table, whichever is less."""
    return kind(LARGEST.get(name, NUMBER) if given is None else min(given, LARGEST.get(name, given)))
