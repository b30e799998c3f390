"""The world stories: every link is right, and nothing simple finds it."""

from itertools import islice

import pytest

from regard.worlds.stories import NONE, NOUNS, PREDICATES, Noun, is_noun, plural_of, statistics, stories

FORMS = {
    form: Noun(form, kind, form != word)
    for kind, words in NOUNS.items()
    for word in words
    for form in (word, plural_of(word))
}


@pytest.fixture(scope="module")
def sample():
    return list(islice(stories(seed=5), 300))


def test_a_noun_has_one_kind_and_a_predicate_says_which():
    words = [word for kind in NOUNS.values() for word in kind]
    assert len(FORMS) == 2 * len(set(words)) == 2 * len(words)
    kinds = [word for kind, predicates in PREDICATES.items() if kind != "woman" for word in predicates]
    assert len(set(kinds)) == len(kinds)
    assert [plural_of(word) for word in ("goose", "curry", "bench", "monkey", "dog")] == [
        "geese", "curries", "benches", "monkeys", "dogs",
    ]  # fmt: skip


def test_only_the_antecedent_fits_at_the_place_where_it_is_known(sample):
    for story in sample:
        link, nouns = story.link, [index for index, word in enumerate(story.words) if is_noun(word)]
        assert link.antecedent in nouns
        assert link.antecedent < link.word <= link.known_at
        if link.kind == "pronoun":
            pronoun, predicate = story.words[link.word], story.words[link.word + 3]
            by_number = [index for index in nouns if FORMS[story.words[index]].pronoun == pronoun]
            fitting = [index for index in by_number if FORMS[story.words[index]].fits(predicate)]
            assert fitting == [link.antecedent]
            assert (link.known_at == link.word) == (len(by_number) == 1)
            assert link.known_at in (link.word, link.word + 3)
        else:
            plural = story.words[link.word] == "are"
            assert [index for index in nouns if FORMS[story.words[index]].plural == plural] == [link.antecedent]


def test_tags_name_the_antecedent_once_where_the_direction_allows(sample):
    for story in sample:
        for direction in ("forward", "both"):
            tags = story.tags(direction)
            index = story.link.position(direction)
            assert tags[index] == story.words[story.link.antecedent]
            assert set(tags[:index] + tags[index + 1 :]) == {NONE}


def test_the_example_of_the_lecture_is_of_this_world():
    known = {word for story in islice(stories(), 1500) for word in story.words}
    example = "the animal did n't cross the street because it was too tired . wide"
    assert known.issuperset(example.split())


def test_simple_rules_fail():
    numbers = statistics(count=300)
    assert numbers.nearest_noun < 0.5
    assert numbers.first_noun < 0.7
    assert numbers.known_later > 0.4
    assert numbers.mean_distance > 5
    assert numbers.test_overlap == 0
    assert {row.name for row in numbers.rows()} >= {"known_later", "nearest_noun"}
