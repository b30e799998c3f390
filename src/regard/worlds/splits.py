"""The split of a generated example, from a hash of its content: no example is in two splits, whatever the seed."""

from collections.abc import Callable
from hashlib import blake2b, sha256
from typing import NamedTuple

from regard.errors import OptionError

SPLITS = ("train", "valid", "test")


class Shares(NamedTuple):
    """How examples are divided: each has a number, and belongs to the first split whose bound is above it."""

    number: Callable[[bytes], int]
    bounds: dict[str, int]


NINETY = Shares(
    lambda key: int.from_bytes(blake2b(key, digest_size=4).digest()) % 100, {"train": 90, "valid": 95, "test": 100}
)
"""90 % train, 5 % valid, 5 % test."""
EIGHTY = Shares(lambda key: sha256(key).digest()[0], {"test": 26, "valid": 52, "train": 256})
"""80 % train, 10 % valid, 10 % test."""


def split_of(key: str, shares: Shares) -> str:
    """The split of the example with this key."""
    number = shares.number(key.encode())
    return next(split for split, bound in shares.bounds.items() if number < bound)


def check_split(world: str, split: str) -> None:
    """Refuse an unknown name of a split."""
    if split not in SPLITS:
        raise OptionError(f"{world} has no split {split!r}; choose from {', '.join(SPLITS)}.")
