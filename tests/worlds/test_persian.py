"""How the babel world writes Persian."""

# Persian letters are not Latin ones written wrong.
# ruff: noqa: RUF001

from itertools import islice

import pytest

from regard.worlds.babel import pairs
from regard.worlds.babel.nouns import NOUNS


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("man", "مرد مردها"),
        ("book", "کتاب کتاب\u200cها"),
        ("child", "بچه بچه\u200cها"),
    ],
)
def test_persian_plurals_keep_their_letters_apart_only_where_they_would_join(name, expected):
    (noun,) = [noun for nouns in NOUNS.values() for noun in nouns if noun.name == name]
    assert " ".join(noun.persian) == expected


@pytest.mark.usefixtures("as_a_user")
def test_persian_is_written_in_persian_letters():
    letters = {letter for pair in islice(pairs("fa", "en"), 2000) for word in pair.source for letter in word}
    assert not letters & set("يكىة0123456789")
    assert "\u200c" in letters
