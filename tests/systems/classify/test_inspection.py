"""A document without some of its words."""

import pytest

import regard
from regard.errors import OptionError
from regard.systems.classify.inspection import without_words

TEXT = "I loved this film. The music was awful. A wonderful story."


@pytest.fixture(scope="module")
def model():
    return regard.load("reviews-en", device="cpu")


def test_nothing_removed_is_the_classification_itself(model):
    found, whole = without_words(model, TEXT), model.classify(TEXT)
    assert found.before == found.after == pytest.approx(whole.probabilities, abs=1e-5)
    assert found.label == whole.label
    assert found.sentence_weights == pytest.approx([each.weight for each in whole.sentences], abs=1e-5)
    weights = [word.weight for each in whole.sentences for word in each.words]
    assert found.word_weights == pytest.approx(weights, abs=1e-5)


def test_a_removed_sentence_is_as_if_it_was_never_written(model):
    indices = [index for index, owner in enumerate(without_words(model, TEXT).sentences) if owner == 1]
    found, rest = without_words(model, TEXT, indices), model.classify("I loved this film. A wonderful story.")
    assert found.after == pytest.approx(rest.probabilities, abs=1e-5)
    assert found.sentence_weights[1] == 0
    assert found.sentence_weights[::2] == pytest.approx([each.weight for each in rest.sentences], abs=1e-5)
    assert sum(found.word_weights[index] for index in indices) == 0


def test_the_drop_of_a_sentence_is_what_removing_it_costs(model):
    whole = without_words(model, TEXT, [1])
    indices = [index for index, owner in enumerate(whole.sentences) if owner == 2]
    less = without_words(model, TEXT, [1, *indices])
    assert whole.sentence_drops[2] == pytest.approx(whole.after[whole.label] - less.after[whole.label], abs=1e-6)
    assert less.sentence_drops[2] == 0


def test_everything_may_be_removed_but_nothing_else(model):
    count = len(without_words(model, TEXT).words)
    empty = without_words(model, TEXT, range(count))
    assert sum(empty.after.values()) == pytest.approx(1)
    assert not any(empty.word_weights)
    with pytest.raises(OptionError, match=f"numbered 0 to {count - 1}; there is no word {count}"):
        without_words(model, TEXT, [count])
