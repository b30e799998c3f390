"""Splits: which items are held out depends on their keys alone."""

import hashlib
from operator import itemgetter

import pytest

from regard.data.splits import HashHoldOut, Splits
from regard.errors import OptionError

PAIRS = [(f"sentence {i % 400}", f"satz {i}") for i in range(2000)]
SOURCE = itemgetter(0)


def number(source: str) -> bytes:
    return hashlib.sha256(source.encode()).digest()


@pytest.mark.parametrize("items", [PAIRS, PAIRS[::-1], PAIRS * 3])
def test_the_keys_with_the_smallest_hashes_are_held_out_with_their_first_item(items):
    held = HashHoldOut.from_items(items, SOURCE, test=5, valid=7)
    valid, test = held.held_out()
    order = sorted({source for source, _ in PAIRS}, key=number)
    first = dict(reversed(items))
    assert held.count == len(items)
    assert test == sorted((source, first[source]) for source in order[:5])
    assert valid == sorted((source, first[source]) for source in order[5:12])


@pytest.mark.parametrize(("test", "valid"), [(0, 3), (5, 0), (5, 7), (39, 1), (40, 41), (100, 100), (1000, 1000)])
def test_at_most_a_tenth_plus_one_is_held_out(test, valid):
    held = HashHoldOut.from_items(PAIRS, SOURCE, test=test, valid=valid).held_out()
    num_test = min(test, 400 // 10 + 1)
    assert [len(part) for part in held] == [min(valid, (400 - num_test) // 10 + 1), num_test]


def test_items_of_any_type_can_be_held_out_by_a_key():
    items = [{"name": f"image {i}"} for i in range(97)]
    valid, test = HashHoldOut.from_items(items, itemgetter("name"), valid=3, test=2).held_out()
    names = [item["name"] for item in valid]
    assert names == sorted(names)
    assert len(names) == 3
    assert len(test) == 2
    assert not {item["name"] for item in test} & set(names)


def test_unpaired_surrogates_in_a_key_are_hashed_too():
    items = [f"\ud83d {i}" for i in range(50)]
    valid, _ = HashHoldOut.from_items(items, str, valid=2).held_out()
    assert len(valid) == 2


def test_too_few_keys_are_refused_by_name():
    with pytest.raises(OptionError, match="1 different source sentences are too few to hold out"):
        HashHoldOut.from_items([("a", "b")] * 9, SOURCE, valid=1).held_out(name="source sentences")
    with pytest.raises(OptionError, match="0 or more; got valid=-1, test=0"):
        HashHoldOut.from_items(PAIRS, SOURCE, valid=-1)


def test_splits_hold_any_types():
    splits = Splits(train=iter("abc"), valid=["d"], test=None)
    assert list(splits.train) == ["a", "b", "c"]
    assert splits.test is None
