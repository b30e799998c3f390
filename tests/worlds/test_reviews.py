"""The world of reviews: what decides is marked, and nothing else does."""

from itertools import islice

import pytest

from regard.errors import OptionError
from regard.worlds.reviews import ADJECTIVES, LABELS, VERBS, reviews, statistics

SIDES = {word: side for words in (ADJECTIVES, VERBS) for side in (0, 1) for word in words[side]}


def test_the_marked_words_alone_give_the_label():
    for review in islice(reviews("train"), 300):
        for index in review.decisive:
            marked = [review.sentences[sentence][word] for sentence, word in review.words if sentence == index]
            opinion = [SIDES[word] for word in marked if word in SIDES]
            assert len(opinion) == 1
            assert set(marked) <= {*SIDES, "not"}
            side = 1 - opinion[0] if "not" in marked else opinion[0]
            assert LABELS[side] == review.label
            assert review.sentences[index][0] in ("i", "for", "in")


@pytest.mark.usefixtures("unchecked")
def test_counting_words_is_not_enough():
    found = statistics(1500)
    assert found.test_overlap == 0
    assert 0.45 < found.positive < 0.55
    assert found.counting_accuracy < 0.75
    assert found.chance_sentence < 0.3
    assert {row.name for row in found.rows()} >= {"vocabulary", "counting_accuracy"}


def test_the_number_of_sentences_can_be_chosen():
    lengths = {len(review.sentences) for review in islice(reviews(min_sentences=2, max_sentences=4), 100)}
    assert lengths == {2, 3, 4}
    with pytest.raises(OptionError, match="1 to 60 sentences"):
        reviews(min_sentences=5, max_sentences=4)
