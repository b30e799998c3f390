"""Vocabularies of words, and how text is split."""

import json

import pytest

from regard.data.tokenizer import SPECIALS, UNKNOWN
from regard.data.vocabulary import Vocabulary, join_words, treebank_words
from regard.errors import DataError, OptionError


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The animal didn't cross.", "The animal did n't cross ."),
        ("It\u2019s 5 o'clock, isn't it?", "It 's 5 o'clock , is n't it ?"),
        ("a well-known U.S. firm rose 3.5%...", "a well-known U.S. firm rose 3.5 % ..."),
        ("did n't it 's <unk> .", "did n't it 's <unk> ."),
        ("we'll can't (they've)", "we 'll ca n't ( they 've )"),
        ("Ένα γάτο 猫 🙂!", "Ένα γάτο 猫 🙂 !"),
        ("", ""),
    ],
)
def test_text_is_split_as_in_treebanks(text, words):
    assert treebank_words(text) == words.split()


@pytest.mark.parametrize(
    "text",
    [
        "The animal didn't cross, and it's late: isn't it?",
        "a well-known U.S. firm (of 1851) rose 3.5%...",
        "We'll pay $5 [or more]; they've paid.",
        "",
    ],
)
def test_split_words_are_joined_again(text):
    assert join_words(treebank_words(text)) == text


def test_frequent_words_come_first_and_ties_are_sorted():
    vocabulary = Vocabulary.build([["b", "a", "b", "c", "<unk>"]])
    assert vocabulary.words == (*SPECIALS, "b", "a", "c")
    assert Vocabulary.build([["b", "a", "b"]], size=5).words == (*SPECIALS, "b")
    assert Vocabulary.build([["b", "a", "b"]], minimum_count=2).words == (*SPECIALS, "b")
    assert Vocabulary.build([["B", "b"]], lowercase=True).words == (*SPECIALS, "b")


def test_unknown_words_are_looked_up_in_lower_case_and_as_numbers():
    vocabulary = Vocabulary.build([["the", "cat", "N", "Paris"]])
    ids = dict(zip(vocabulary.words, range(len(vocabulary)), strict=True))
    assert vocabulary.encode(["The", "1,999", "Paris", "paris", "dog", "<unk>"]) == [
        ids["the"], ids["N"], ids["Paris"], UNKNOWN, UNKNOWN, UNKNOWN,
    ]  # fmt: skip
    assert vocabulary.encode(["<s>", "</s>", "<pad>"]) == [UNKNOWN] * 3, "special words are never read"
    assert vocabulary.decode([1, ids["cat"], UNKNOWN, 2]) == ["cat", "<unk>"]


def test_text_that_is_split_already_stays_as_it_is():
    vocabulary = Vocabulary.build([["u.s.", "stocks", "did", "n't", "rise", "N", "%"]])
    assert vocabulary.split("u.s. stocks did n't rise N %") == ["u.s.", "stocks", "did", "n't", "rise", "N", "%"]
    assert vocabulary.split("U.S. stocks didn't rise.") == ["U.S.", "stocks", "did", "n't", "rise"]
    assert vocabulary.split("!!! ...") == []


def test_a_saved_vocabulary_is_loaded_again(tmp_path):
    vocabulary = Vocabulary.build([["é", "b"]], lowercase=True)
    vocabulary.save(tmp_path / "words.json")
    assert Vocabulary.load(tmp_path / "words.json") == vocabulary
    (tmp_path / "bad.json").write_text(json.dumps({"words": "abc"}))
    with pytest.raises(DataError, match="it has no list of words"):
        Vocabulary.load(tmp_path / "bad.json")
    with pytest.raises(DataError, match="not a vocabulary that regard can read"):
        Vocabulary.load(tmp_path / "absent.json")


def test_what_cannot_be_a_vocabulary_is_refused():
    with pytest.raises(DataError, match="no words"):
        Vocabulary.build([[]])
    with pytest.raises(OptionError, match="Use 0 for all words"):
        Vocabulary.build([["a"]], size=3)
    with pytest.raises(DataError, match="begins with <pad>"):
        Vocabulary(["a", "b"])
    with pytest.raises(DataError, match="'a' comes twice"):
        Vocabulary([*SPECIALS, "a", "a"])
