"""Ambiguity: meanings that one language expresses by the same sentence and another language does not.

    ambiguous(meaning)  =  some neighbour has the same source sentence and another target sentence

A neighbour is a meaning that differs in one attribute: the reference of a pronoun, number, determiner, tense, modality,
polarity, an adverb, a preposition, a conjunction, or the role of the gap in a relative clause. Other words need no
neighbours, since no two interchangeable words share a form in any language.
"""

from collections.abc import Iterator

from regard.worlds.babel.adjectives import FREQUENCIES, TIMES
from regard.worlds.babel.meaning import (
    COMPANIONS,
    MODALS,
    NUMERALS,
    OWN,
    PLACES,
    PRONOUNS,
    TENSES,
    Clause,
    Period,
    Phrase,
    Sentence,
)
from regard.worlds.babel.sampling import is_negatable, is_possible

_DEFINITE = ("the", "this", *OWN)


def neighbours(meaning: Sentence) -> Iterator[Sentence]:
    """Yield the meanings that differ from this one in one attribute."""
    for index, period in enumerate(meaning):
        for other in _periods(period):
            yield (*meaning[:index], other, *meaning[index + 1 :])


def _periods(period: Period) -> Iterator[Period]:
    if period.lead:
        yield period._replace(lead="but" if period.lead == "and" else "and")
    # The conjunction fixes the tenses of a condition, and simultaneous events share a tense.
    tied = period.link not in ("", "that")
    for clause in _clauses(period.clause, tied):
        yield period._replace(clause=clause)
    if period.other is None:
        return
    if period.link in ("because", "when", "while") and _plain(period.clause) and _plain(period.other.clause):
        for link in ("because", "when", "while"):
            if link != period.link:
                yield period._replace(link=link)
    if tied:
        for clause in _clauses(period.other.clause, tied):
            yield period._replace(other=period.other._replace(clause=clause))
    else:
        for other in _periods(period.other):
            yield period._replace(other=other)


def _plain(clause: Clause) -> bool:
    """Whether a clause can follow any conjunction: it is in the present tense and has no modal verb."""
    return clause.tense == "present" and not clause.modal


def _clauses(clause: Clause, tied: bool, antecedent: Phrase | None = None) -> Iterator[Clause]:
    changed = _changed(clause, tied, antecedent)
    return (each for each in changed if not each.negative or is_negatable(each))


def _changed(clause: Clause, tied: bool, antecedent: Phrase | None) -> Iterator[Clause]:
    yield clause._replace(negative=not clause.negative)
    if clause.predicate:
        yield clause._replace(very=not clause.very)
    if not tied:
        yield from _times(clause)
    if clause.verb and clause.tense == "present" and not tied:
        yield from (clause._replace(modal=modal) for modal in ("", *MODALS) if modal != clause.modal)
    if clause.often:
        yield from (clause._replace(often=often) for often in FREQUENCIES if often is not clause.often)
    if clause.place:
        before, where = clause.place
        choices = PLACES if before in PLACES else COMPANIONS
        yield from (clause._replace(place=(other, where)) for other in choices if other != before)
        yield from (clause._replace(place=(before, other)) for other in _phrases(where))
    yield from _parts(clause)
    if antecedent:
        yield from _exchanged(clause, antecedent)


def _times(clause: Clause) -> Iterator[Clause]:
    if clause.time:
        times = TIMES[clause.tense]
        yield from (clause._replace(time=time) for time in times if time is not clause.time)
    elif not clause.modal:
        tenses = TENSES if clause.verb else TENSES[:2]
        yield from (clause._replace(tense=tense) for tense in tenses if tense != clause.tense)


def _parts(clause: Clause) -> Iterator[Clause]:
    if clause.subject:
        yield from (clause._replace(subject=other) for other in _phrases(clause.subject))
    if clause.direct:
        yield from (clause._replace(direct=other) for other in _phrases(clause.direct))
    if clause.indirect:
        yield from (clause._replace(indirect=other) for other in _phrases(clause.indirect))


def _exchanged(clause: Clause, antecedent: Phrase) -> Iterator[Clause]:
    """Yield the relative clause with its roles exchanged: who saw the man, whom the man saw."""
    if clause.gap == "subject" and clause.direct and is_possible(clause.verb, clause.direct, antecedent):
        yield clause._replace(gap="object", subject=clause.direct, direct=None)
    if clause.gap == "object" and clause.subject and is_possible(clause.verb, antecedent, clause.subject):
        yield clause._replace(gap="subject", direct=clause.subject, subject=None)


def _phrases(phrase: Phrase) -> Iterator[Phrase]:
    if phrase.pronoun:
        yield from (phrase._replace(pronoun=other) for other in PRONOUNS if other != phrase.pronoun)
        return
    yield from _determined(phrase)
    if phrase.owner:
        yield from (phrase._replace(owner=other) for other in _phrases(phrase.owner))
    if phrase.second:
        yield from (phrase._replace(second=other) for other in _phrases(phrase.second))
    if phrase.relative:
        yield from (phrase._replace(relative=other) for other in _clauses(phrase.relative, False, phrase))


def _determined(phrase: Phrase) -> Iterator[Phrase]:
    """Yield the phrase in the other number or with another determiner; if owned or modified, it stays definite."""
    if phrase.determiner in _DEFINITE:
        yield phrase._replace(plural=not phrase.plural)
    if phrase.owner or phrase.relative:
        return
    for determiner in (*_DEFINITE, "a", *NUMERALS):
        if determiner != phrase.determiner:
            plural = phrase.plural if determiner in _DEFINITE else determiner in NUMERALS
            yield phrase._replace(determiner=determiner, plural=plural)
