"""Random sampling of meanings: which subjects, verbs and objects combine, in all four languages."""

from random import Random
from typing import TypeVar

from regard.worlds.babel import meaning as m
from regard.worlds.babel.adjectives import FIELDS, FREQUENCIES, ORIGINS, QUALITIES, TIMES
from regard.worlds.babel.lexicon import Adjective, Adverb, Noun, Verb
from regard.worlds.babel.meaning import Clause, Period, Phrase, Sentence
from regard.worlds.babel.nouns import NOUNS
from regard.worlds.babel.verbs import DITRANSITIVE, INTRANSITIVE, SAYING, STATIVE, TRANSITIVE

_Item = TypeVar("_Item")
_ALL = {noun.name: noun for nouns in NOUNS.values() for noun in nouns}
_KINDS = tuple(NOUNS)


def _nouns(takes: tuple[str, ...]) -> tuple[Noun, ...]:
    return tuple(dict.fromkeys(noun for each in takes for noun in (NOUNS[each] if each in NOUNS else (_ALL[each],))))


_TRANSITIVE = tuple((verb, _nouns(takes)) for verb, takes in TRANSITIVE)
_STATIVE = tuple((verb, _nouns(takes)) for verb, takes in STATIVE)
_DITRANSITIVE = tuple((verb, _nouns(takes)) for verb, takes in DITRANSITIVE)
_PEOPLE, _LIVING, _PLACES = NOUNS["person"], NOUNS["person"] + NOUNS["animal"], NOUNS["place"]
# The transitive verbs that each noun can be the object of, for relative clauses.
_VERBS_WITH_OBJECT: dict[Noun, tuple[Verb, ...]] = {
    noun: tuple(verb for verb, takes in _TRANSITIVE if noun in takes) for noun in _ALL.values()
}


def is_negatable(clause: Clause) -> bool:
    """Whether "not" means the same in every language: no numeral, no coordination, no indefinite subject."""
    subject, direct = clause.subject, clause.direct
    if subject and (subject.indefinite or subject.second):
        return False
    return direct is None or (direct.second is None and direct.determiner not in m.NUMERALS)


class Sampler:
    """Samples sentences from a random generator."""

    def __init__(self, random: Random) -> None:
        self._uniform = random.random
        self._node = m.STRIDE

    def sentence(self, clauses: int) -> Sentence:
        """Sample a sentence with this many clauses, relative clauses included."""
        self._node = m.STRIDE
        periods: list[Period] = []
        while clauses > 0:
            size = min(clauses, 1 + self._below(3))
            clauses -= size
            lead = "" if not periods else "and" if self._uniform() < 0.6 else "but"
            periods.append(self._period(lead, size))
        return tuple(periods)

    def _period(self, lead: str, size: int) -> Period:
        if size == 1:
            return Period(lead, self._clause(timed=True))
        kind = self._below(3)
        if kind == 0:
            return Period(lead, self._clause(timed=True, relatives=1), *self._rest(size - 2))
        if kind == 1:
            return self._saying(lead, size)
        link = self._pick(m.LINKS)
        tense, modal = ("past" if self._uniform() < 0.5 else "present"), None
        if link == "while":
            tense, modal = "present", ""
        elif link == "if":
            main = self._clause(relatives=size - 2, tense="future")
            return Period(lead, main, link, Period("", self._clause(tense="present", modal="")))
        main = self._clause(relatives=size - 2, tense=tense, modal=modal)
        return Period(lead, main, link, Period("", self._clause(tense=tense, modal=modal)))

    def _rest(self, size: int) -> tuple[str, Period | None]:
        """Sample what follows a clause with a relative clause in a period."""
        return ("because", Period("", self._clause(tense="present"))) if size else ("", None)

    def _saying(self, lead: str, size: int) -> Period:
        verb = self._pick(SAYING)[0]
        clause = Clause(self._number(), verb, self._subject(_PEOPLE))
        if size > 2 and self._uniform() < 0.4:
            return Period(lead, clause, "that", self._saying("", size - 1))
        return Period(lead, clause, "that", Period("", self._clause(relatives=size - 2)))

    def _clause(
        self, *, timed: bool = False, relatives: int = 0, tense: str | None = None, modal: str | None = None
    ) -> Clause:
        kind = self._uniform()
        if kind < 0.14 and tense != "future":
            return self._state(relatives, tense)
        if kind < 0.28:
            return self._finish(self._intransitive(relatives), timed, tense, modal)
        if kind < 0.42:
            return self._finish(self._ditransitive(relatives), timed, tense, modal)
        if kind < 0.48 and tense in (None, "present"):
            clause = self._transitive(relatives, _STATIVE)
            return clause._replace(place=None, negative=is_negatable(clause) and self._uniform() < 0.3)
        return self._finish(self._transitive(relatives, _TRANSITIVE), timed, tense, modal)

    def _state(self, relatives: int, tense: str | None) -> Clause:
        kind = self._pick(_KINDS)
        subject = self._definite(NOUNS[kind]) if self._uniform() < 0.8 else self._pronoun()
        if relatives and not subject.pronoun:
            subject = self._with_relative(subject)
        predicate = self._pick(QUALITIES["person" if subject.pronoun else kind])
        # A predicative "new" is another word in French, and "the old house is old" says nothing.
        while predicate.english == "new" or predicate in subject.adjectives:
            predicate = self._pick(QUALITIES["person" if subject.pronoun else kind])
        return Clause(
            self._number(),
            subject=subject,
            predicate=predicate,
            very=self._uniform() < 0.3,
            tense=tense or self._pick(m.TENSES[:2]),
            negative=self._uniform() < 0.25,
        )

    def _intransitive(self, relatives: int) -> Clause:
        verb, takes = self._pick(INTRANSITIVE)
        subject = self._subject(_PEOPLE if takes[0] == "person" else _LIVING, relatives)
        return Clause(self._number(), verb, subject, place=self._place(0.5))

    def _transitive(self, relatives: int, verbs: tuple[tuple[Verb, tuple[Noun, ...]], ...]) -> Clause:
        verb, takes = self._pick(verbs)
        on_object = relatives > 0 and self._uniform() < 0.6
        subject = self._subject(_PEOPLE, 0 if on_object else relatives)
        noun = self._pick(takes)
        if on_object:
            direct = self._with_relative(self._definite((noun,)))
        elif noun.kind == "person" and self._uniform() < 0.4:
            direct = self._pronoun(subject)
        else:
            direct = self._object(noun, subject)
        place = None if on_object or noun.kind == "place" else self._place(0.3)
        return Clause(self._number(), verb, subject, direct, place=place)

    def _ditransitive(self, relatives: int) -> Clause:
        verb, takes = self._pick(_DITRANSITIVE)
        subject = self._subject(_PEOPLE, relatives)
        indirect = self._definite(_PEOPLE, adjectives=1, own=not subject.pronoun)
        return Clause(self._number(), verb, subject, self._object(self._pick(takes), subject, two=False), indirect)

    def _finish(self, clause: Clause, timed: bool, tense: str | None, modal: str | None) -> Clause:
        """Add tense, modality, polarity and adverbs to a clause."""
        if modal is None and tense in (None, "present") and self._uniform() < 0.3:
            tense, modal = "present", self._pick(m.MODALS)
        tense = tense or self._pick(m.TENSES)
        chance = self._uniform()
        negative = chance < 0.22 and is_negatable(clause)
        # French has a separate tense for habits in the past.
        often = self._pick(FREQUENCIES) if chance > 0.75 and tense != "past" else None
        time: Adverb | None = None
        if timed and not (clause.direct and clause.direct.relative) and self._uniform() < 0.5 and not often:
            # Some languages distinguish "not every day" from "every day not", and others do not.
            time = self._pick(TIMES["present"][:2] if negative and tense == "present" else TIMES[tense])
        return clause._replace(tense=tense, modal=modal or "", negative=negative, often=often, time=time)

    def _subject(self, nouns: tuple[Noun, ...], relatives: int = 0) -> Phrase:
        chance = self._uniform()
        if relatives:
            return self._with_relative(self._definite(nouns))
        if chance < 0.25:
            return self._pronoun()
        if chance < 0.4:
            return self._indefinite(self._pick(nouns))
        first = self._definite(nouns)
        if chance > 0.9 and not first.owner:
            return first._replace(second=self._other(first, nouns))
        return first

    def _object(self, noun: Noun, subject: Phrase, *, two: bool = True) -> Phrase:
        if self._uniform() < 0.45:
            return self._indefinite(noun)
        first = self._definite((noun,), own=not subject.pronoun)
        if two and not first.owner and self._uniform() < 0.15:
            return first._replace(second=self._other(first, NOUNS[noun.kind]))
        return first

    def _other(self, first: Phrase, nouns: tuple[Noun, ...]) -> Phrase:
        """Sample a phrase with another noun, to coordinate with the first."""
        return self._definite(tuple(noun for noun in nouns if noun is not first.noun), adjectives=1)

    def _pronoun(self, other: Phrase | None = None) -> Phrase:
        """Sample a pronoun that refers to someone else than `other`."""
        choices: tuple[str, ...] = m.PRONOUNS
        if other and other.pronoun:
            choices = m.PRONOUNS[1:3] if other.pronoun in ("I", "we", "they") else ("I", "we", "they")
        return Phrase(self._number(), pronoun=self._pick(choices))

    def _indefinite(self, noun: Noun) -> Phrase:
        determiner = "a" if self._uniform() < 0.6 else self._pick(m.NUMERALS)
        return Phrase(self._number(), "", noun, determiner, determiner != "a", self._adjectives(noun, 3))

    def _definite(self, nouns: tuple[Noun, ...], *, adjectives: int = 3, own: bool = False) -> Phrase:
        noun, chance = self._pick(nouns), self._uniform()
        determiner = "this" if chance < 0.15 else self._pick(m.OWN) if chance < 0.3 and own else "the"
        phrase = Phrase(self._number(), "", noun, determiner, self._uniform() < 0.3, self._adjectives(noun, adjectives))
        if determiner == "the" and adjectives > 1 and chance > 0.75:
            return phrase._replace(adjectives=phrase.adjectives[:1], owner=self._owner(noun))
        return phrase

    def _owner(self, noun: Noun) -> Phrase | None:
        if noun.kind in ("thing", "device", "animal") or (noun.kind == "text" and self._uniform() < 0.5):
            return self._definite(_PEOPLE, adjectives=1)
        if noun.kind in ("text", "institution"):
            owners = tuple(each for each in NOUNS["institution"][:5] if each is not noun)
            return self._definite(owners, adjectives=1)
        return None

    def _adjectives(self, noun: Noun, limit: int) -> tuple[Adjective, ...]:
        chance, kind = self._uniform(), noun.kind
        adjectives = []
        if chance < 0.35:
            adjectives.append(self._pick(QUALITIES[kind]))
        if 0.2 < chance < 0.6 and kind in ORIGINS:
            adjectives.append(self._pick(ORIGINS[kind]))
        if 0.3 < chance < 0.8 and kind in FIELDS:
            adjectives.append(self._pick(FIELDS[kind]))
        return tuple(adjectives[:limit])

    def _with_relative(self, phrase: Phrase) -> Phrase:
        """Add a relative clause to a phrase, which becomes definite, with at most one adjective."""
        noun = phrase.head
        phrase = phrase._replace(determiner="the", owner=None, second=None, adjectives=phrase.adjectives[:1])
        if noun.kind == "person" and self._uniform() < 0.5:
            verb, takes = self._pick(_TRANSITIVE)
            direct = self._definite((self._pick(takes),), adjectives=2)
            clause = Clause(self._number(), verb, None, direct, gap="subject")
        else:
            subject = self._pronoun() if self._uniform() < 0.4 else self._definite(_PEOPLE, adjectives=1)
            clause = Clause(self._number(), self._pick(_VERBS_WITH_OBJECT[noun]), subject, gap="object")
        chance = self._uniform()
        modal = self._pick(m.MODALS) if chance < 0.2 else ""
        tense = "present" if modal else self._pick(m.TENSES)
        negative = chance > 0.85
        return phrase._replace(relative=clause._replace(tense=tense, modal=modal, negative=negative))

    def _place(self, probability: float) -> tuple[str, Phrase] | None:
        if self._uniform() >= probability:
            return None
        if self._uniform() < 0.7:
            return self._pick(m.PLACES), self._definite(_PLACES, adjectives=2)
        return self._pick(m.COMPANIONS), self._definite(_PEOPLE, adjectives=1)

    def _number(self) -> int:
        node = self._node
        self._node += m.STRIDE
        return node

    def _pick(self, items: tuple[_Item, ...]) -> _Item:
        return items[int(self._uniform() * len(items))]

    def _below(self, limit: int) -> int:
        return int(self._uniform() * limit)
