"""Meanings: what a sentence expresses, independent of language.

    Sentence = (period, period, ...)          joined by "and", "but"
    Period   = clause [link period]           "because", "when", "while", "if" + a clause, or "that" + a period
    Clause   = subject, verb, objects, ...    with tense, modality, polarity and adjuncts
    Phrase   = a pronoun, or determiner, adjectives and noun with an owner, a relative clause or a second phrase

Each phrase and clause has a unique number, and each part of it is a node: that number plus one of the constants below.
A language states for each of its words which nodes the word expresses; words that express the same node are linked.
"""

from typing import NamedTuple

from regard.worlds.babel.lexicon import Adjective, Adverb, Noun, Verb

STRIDE = 16
# The nodes of a phrase; its adjectives have ADJECTIVE, ADJECTIVE + 1, ...
HEAD, DETERMINER, OWNER, AND, RELATIVE, ADJECTIVE = range(6)
# The nodes of a clause. LINK is the conjunction before it, TO marks the recipient, TIME has two parts.
VERB, NEGATION, MODAL, TENSE, OFTEN, TIME, TIME_HEAD, PLACE, PREDICATE, VERY, TO, LINK, COMMA = range(13)
STOP = 0

PRONOUNS = ("I", "he", "she", "we", "they")
# Which of the four present forms (I, he, we, they) goes with each pronoun.
PERSONS = {"I": 0, "he": 1, "she": 1, "we": 2, "they": 3}
NUMERALS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "several")
OWN = ("my", "our")
MODALS = ("can", "must", "want")
TENSES = ("present", "past", "future")
LINKS = ("because", "when", "while", "if")
PLACES = ("in", "behind", "in front of")
COMPANIONS = ("with", "for")


class Phrase(NamedTuple):
    """A noun phrase or a pronoun."""

    node: int
    pronoun: str = ""
    noun: Noun | None = None
    determiner: str = "the"
    plural: bool = False
    adjectives: tuple[Adjective, ...] = ()
    owner: "Phrase | None" = None
    relative: "Clause | None" = None
    second: "Phrase | None" = None

    @property
    def head(self) -> Noun:
        """The noun of a phrase that is not a pronoun."""
        if self.noun is None:
            raise LookupError(f"{self.pronoun!r} is a pronoun and has no noun.")
        return self.noun

    @property
    def person(self) -> int:
        """Index of the present form (I, he, we, they) that a verb takes after the phrase."""
        if self.pronoun:
            return PERSONS[self.pronoun]
        return 3 if self.plural or self.second else 1

    @property
    def indefinite(self) -> bool:
        """Whether the phrase introduces something new."""
        return not self.pronoun and (self.determiner == "a" or self.determiner in NUMERALS)


class Clause(NamedTuple):
    """A clause; in a relative clause, `gap` ("subject" or "object") is the role of the phrase that it modifies."""

    node: int
    verb: Verb | None = None  # None for "to be"
    subject: Phrase | None = None
    direct: Phrase | None = None
    indirect: Phrase | None = None
    predicate: Adjective | None = None
    very: bool = False
    tense: str = "present"
    modal: str = ""
    negative: bool = False
    often: Adverb | None = None
    place: tuple[str, Phrase] | None = None
    time: Adverb | None = None
    gap: str = ""


class Period(NamedTuple):
    """A clause with its subordinate period; `lead` is the conjunction with the period before ("", "and", "but")."""

    lead: str
    clause: Clause
    link: str = ""
    other: "Period | None" = None


Sentence = tuple[Period, ...]


def key(sentence: Sentence) -> str:
    """Return the meaning as a string, the same for he, she and they, which not every language distinguishes."""
    return " + ".join(_period(period, lexical=True) for period in sentence)


def template(sentence: Sentence) -> str:
    """Return the structure of a meaning: its string without the nouns, adjectives, verbs, adverbs and numerals."""
    return " + ".join(_period(period, lexical=False) for period in sentence)


def _period(period: Period, *, lexical: bool) -> str:
    text = f"{period.lead} {_clause(period.clause, lexical)}"
    return f"{text} {period.link} ({_period(period.other, lexical=lexical)})" if period.other else text


def _clause(clause: Clause, lexical: bool) -> str:
    parts = [clause.gap, clause.tense, clause.modal, "not" if clause.negative else ""]
    parts += [_phrase(each, lexical) if each else "-" for each in (clause.subject, clause.direct, clause.indirect)]
    if clause.place:
        parts += [clause.place[0], _phrase(clause.place[1], lexical)]
    if lexical:
        parts.append(clause.verb.name if clause.verb else "be")
        parts += [each.name for each in (clause.predicate, clause.often, clause.time) if each]
    else:
        parts.append("do" if clause.verb else "be")
        slots = (("predicate", clause.predicate), ("often", clause.often), ("time", clause.time))
        parts += [name for name, each in slots if each]
    return " ".join([*parts, "very" if clause.very else ""])


def _phrase(phrase: Phrase, lexical: bool) -> str:
    if phrase.pronoun:
        return phrase.pronoun if phrase.pronoun in ("I", "we") else "he"
    determiner = phrase.determiner if lexical or phrase.determiner not in NUMERALS else "number"
    parts = [determiner, "many" if phrase.plural else "one"]
    parts += [adjective.name if lexical else "adjective" for adjective in phrase.adjectives]
    parts.append(phrase.head.name if lexical else "noun")
    if phrase.owner:
        parts.append(f"of [{_phrase(phrase.owner, lexical)}]")
    if phrase.relative:
        parts.append(f"who [{_clause(phrase.relative, lexical)}]")
    if phrase.second:
        parts.append(f"and [{_phrase(phrase.second, lexical)}]")
    return " ".join(parts)
