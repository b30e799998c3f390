"""Splits of a data set for training, validation and testing, and how examples are held out by a hash of their keys."""

import hashlib
import heapq
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from regard.errors import OptionError

Train = TypeVar("Train")
HeldOut = TypeVar("HeldOut")
Item = TypeVar("Item")
AnyStream = TypeVar("AnyStream", bound="Stream[Any]")


@dataclass(frozen=True)
class Splits(Generic[Train, HeldOut]):
    """The three parts of a data set. The training part may be of another type, such as a stream."""

    train: Train
    """Examples to train on."""
    valid: HeldOut
    """Examples to validate with after each epoch."""
    test: HeldOut | None
    """Examples to score the trained model with; None if there are none."""


class Stream(Generic[Item]):
    """Items that can be read again and again: each pass reads them anew, so that none has to be kept.

    `key` is the text by which items are left out, with their duplicates.
    """

    def __init__(self, read: Callable[[], Iterable[Item]], key: Callable[[Item], str]) -> None:
        self._read, self._key = read, key
        self._without: frozenset[str] = frozenset()

    def __iter__(self) -> Iterator[Item]:
        return (item for item in self._read() if self._key(item) not in self._without)

    def leaving_out(self: AnyStream, items: Iterable[Any]) -> AnyStream:
        """Return the stream without the items that have the keys of these."""
        fewer = copy(self)
        fewer._without = self._without | {self._key(item) for item in items}
        return fewer


class HashHoldOut(Generic[Item]):
    """Hold out validation and test items by a hash of their keys, in one pass over a stream of any length.

    The items whose keys have the smallest SHA-256 are held out, each key with the first item that has it: first the
    test items, then the validation items. Each part has the requested number of items, but at most a tenth of the
    remaining keys, plus one. The choice does not depend on the order of the items or on how often a key occurs, and
    hardly changes when other items are added. Memory is bounded: about ten times as many items are kept during
    the pass as are requested, which is enough to know whether a tenth of all keys is less.
    """

    def __init__(self, key: Callable[[Item], str], *, valid: int, test: int) -> None:
        if min(valid, test) < 0:
            raise OptionError(f"valid and test are numbers of items, 0 or more; got valid={valid}, test={test}.")
        self.count = 0
        """Number of items seen so far."""
        self._key, self._valid, self._test = key, valid, test
        self._capacity = 10 * (test + valid) + test
        self._largest: list[int] = []  # negated hashes, since heapq keeps the smallest first
        self._smallest: dict[int, Item] = {}

    @classmethod
    def from_items(
        cls, items: Iterable[Item], key: Callable[[Item], str], *, valid: int = 0, test: int = 0
    ) -> "HashHoldOut[Item]":
        """Make the pass over `items`."""
        held = cls(key, valid=valid, test=test)
        for item in items:
            held.add(item)
        return held

    def add(self, item: Item) -> None:
        """Count an item, and keep it if its hash is among the smallest so far."""
        self.count += 1
        if not self._capacity:
            return
        number = int.from_bytes(hashlib.sha256(self._key(item).encode("utf-8", "surrogatepass")).digest())
        if number in self._smallest:
            return
        if len(self._largest) < self._capacity:
            heapq.heappush(self._largest, -number)
        elif number < -self._largest[0]:
            del self._smallest[-heapq.heapreplace(self._largest, -number)]
        else:
            return
        self._smallest[number] = item

    def held_out(self, *, name: str = "examples") -> tuple[list[Item], list[Item]]:
        """Return the validation items and the test items, each sorted by key. `name` is what errors call the items."""
        order = sorted(self._smallest)
        test = min(self._test, len(order) // 10 + 1)
        valid = min(self._valid, (len(order) - test) // 10 + 1)
        # When the capacity is used up, there may be more keys than were kept.
        if len(order) < self._capacity and test + valid >= len(order):
            raise OptionError(
                f"{len(order)} different {name} are too few to hold out validation or test data from. Give the "
                "validation data separately, or more training data."
            )
        chosen = [self._smallest[number] for number in order[: test + valid]]
        return sorted(chosen[test:], key=self._key), sorted(chosen[:test], key=self._key)
