"""What a language model expects in the place of each word."""

import pytest

import regard
from regard.errors import OptionError
from regard.systems.read.inspection import expected_words


def test_expectations_have_the_probability_that_surprisals_say():
    model = regard.load("reader-en", device="cpu")
    text = "the man is reading a book ."
    reading, expected = model.read(text), expected_words(model, text, top=20)
    assert len(expected) == len(reading.words) + 1, "the last is about what follows"
    found = 0
    for word, bits, row in zip(reading.words, reading.surprisals, expected, strict=False):
        assert [one.probability for one in row] == sorted((one.probability for one in row), reverse=True)
        for one in row:
            if one.word == word:
                assert one.probability == pytest.approx(2**-bits, rel=1e-4)
                found += 1
    assert found >= 4
    assert expected[-1][0].word == "</s>"
    with pytest.raises(OptionError, match="top must be"):
        expected_words(model, text, top=0)


def test_a_reader_in_training_mode_is_refused():
    model = regard.load("reader-en", device="cpu").train()
    with pytest.raises(OptionError, match="in training mode"):
        expected_words(model, "The dog is running.")
