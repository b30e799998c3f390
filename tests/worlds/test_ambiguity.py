"""No sentence of babel in English or Persian means two things, so that a translator can always be right."""

from itertools import combinations
from random import Random

import pytest

from regard.worlds.babel import LANGUAGES
from regard.worlds.babel.adjectives import FIELDS, ORIGINS, QUALITIES
from regard.worlds.babel.corpus import RENDERERS, link
from regard.worlds.babel.lexicon import Adjective, Noun, Verb
from regard.worlds.babel.meaning import STRIDE, Clause, Period, Phrase
from regard.worlds.babel.nouns import NOUNS
from regard.worlds.babel.sampling import Sampler
from regard.worlds.babel.verbs import DITRANSITIVE, INTRANSITIVE, SAYING, STATIVE, TRANSITIVE

# Where sentences come by the thousand, checking each signature would take most of the time.
in_bulk = pytest.mark.usefixtures("as_a_user")


def translate(meaning, source: str, target: str):
    return link(RENDERERS[source](meaning), RENDERERS[target](meaning))


class FewWords(Sampler):
    """Samples with a handful of words, so that sentences recur."""

    def _pick(self, things):
        return super()._pick(things[:: 1 + len(things) // 2] if len(things) > 5 else things)


def sentence_of(language: str, pronoun: str) -> str:
    """That he, she, ... hears a man."""
    (verb,) = [verb for verb, _ in TRANSITIVE if verb.english[0] == "hear"]
    direct = Phrase(2 * STRIDE, noun=NOUNS["person"][0])
    clause = Clause(3 * STRIDE, verb, Phrase(STRIDE, pronoun=pronoun), direct)
    return " ".join(translate((Period("", clause),), language, "en").source)


def test_persian_tells_he_from_she_by_saying_that_man_and_that_woman():
    assert sentence_of("fa", "he") == "آن مرد مرد را می\u200cشنود ."
    assert sentence_of("fa", "she") == "آن زن مرد را می\u200cشنود ."
    assert sentence_of("fa", "they") == "مرد را می\u200cشنوند ."


@in_bulk
@pytest.mark.parametrize("source", ["en", "fa"])
def test_with_few_words_no_sentence_means_two_things(source):
    sampler = FewWords(Random(5))  # noqa: S311
    drawn = [sampler.sentence(1 + (each % 4 == 0)) for each in range(20_000)]
    for target in LANGUAGES:
        found: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
        for meaning in drawn:
            pair = translate(meaning, source, target)
            found.setdefault(pair.source, set()).add(pair.target)
        assert len(found) < 0.95 * len(drawn), "so few words that sentences come again"
        assert not [each for each, targets in found.items() if len(targets) > 1]


def noun_forms(noun: Noun) -> set[tuple[str, str]]:
    forms = {"en": noun.english, "fr": noun.french, "de": noun.german, "fa": noun.persian}
    return {(language, form) for language, each in forms.items() for form in each}


def adjective_forms(word: Adjective) -> set[tuple[str, str]]:
    forms = {"en": (word.english,), "fr": word.french, "de": (word.german_stem,), "fa": (word.persian,)}
    return {(language, form) for language, each in forms.items() for form in each}


def verb_forms(verb: Verb) -> set[tuple[str, str]]:
    forms = {
        "en": (f"{form} {verb.english_particle}" for form in verb.english),
        "fr": (*verb.french, verb.french_infinitive, verb.french_participle, verb.french_future),
        "de": (
            *(f"{form} {verb.german_prefix}" for form in verb.german),
            verb.german_infinitive,
            verb.german_participle,
        ),
        "fa": (f"{verb.persian_word} {stem}" for stem in (verb.persian_past, verb.persian_present)),
    }
    return {(language, form) for language, each in forms.items() for form in each}


def test_no_two_interchangeable_words_share_a_form():
    nouns = [noun_forms(noun) for table in NOUNS.values() for noun in table]
    tables = [nouns]
    tables += [
        [adjective_forms(each) for each in words] for table in (QUALITIES, ORIGINS, FIELDS) for words in table.values()
    ]
    tables += [[verb_forms(verb) for verb, _ in TRANSITIVE + STATIVE]]
    tables += [[verb_forms(verb) for verb, _ in table] for table in (INTRANSITIVE, DITRANSITIVE, SAYING)]
    assert not [one & other for table in tables for one, other in combinations(table, 2) if one & other]
