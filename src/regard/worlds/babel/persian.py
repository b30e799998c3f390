"""Persian: verb-final, dropped subject pronouns, no articles; the ezafe links a noun to its modifiers.

Persian has one pronoun for he and she. Where the difference matters, "that man" and "that woman" are used.
"""

# Persian letters are intended, not mistyped Latin ones.
# ruff: noqa: RUF001

from functools import partial

from regard.worlds.babel import meaning as m
from regard.worlds.babel.closed_words import AddClause, Word, add_period, closed_words, render_sentence, timed
from regard.worlds.babel.lexicon import ZWNJ, Verb, join_persian
from regard.worlds.babel.meaning import Clause, Period, Phrase, Sentence

_WORDS = closed_words("fa")
_PRONOUNS = {"I": "من", "we": "ما", "they": "آن‌ها", "my": "من", "our": "ما"}
_PEOPLE = {"he": "مرد", "she": "زن"}
_DETERMINERS = {"a": "یک", "this": "این"} | {name: _WORDS[name][0] for name in m.NUMERALS}
_PRESENT = ("م", "د", "یم", "ند")
_PAST = ("م", "", "یم", "ند")
_BE = {
    "present": ("هستم", "است", "هستیم", "هستند"),
    "past": ("بودم", "بود", "بودیم", "بودند"),
    "subjunctive": ("باشم", "باشد", "باشیم", "باشند"),
}
_NOT_BE = {"present": ("نیستم", "نیست", "نیستیم", "نیستند")}
_MODALS = {"can": "توان", "want": "خواه"}
# Words whose last letter is a consonant here, though it can also stand for a vowel.
_CONSONANTS = ("گاو", "گروه", "کنجکاو")


def render(sentence: Sentence) -> list[Word]:
    """Return the words of a sentence in order."""
    return render_sentence(sentence, "fa", _period)


def _period(out: list[Word], period: Period) -> None:
    first: dict[str, AddClause] = {"if": partial(_clause, mood="subjunctive"), "when": _clause}
    add_period(out, period, "fa", _clause, first=first)


def _clause(out: list[Word], clause: Clause, antecedent: Phrase | None = None, mood: str = "") -> None:
    node = clause.node
    subject = clause.subject or antecedent
    if subject is None:
        raise LookupError("A clause has a subject, or belongs to a phrase.")
    drops = clause.subject is not None and clause.subject.pronoun in _PRONOUNS
    dropped = (subject.node + m.HEAD,) if drops else ()
    if clause.time:
        out += timed(clause.time.words["fa"], node + m.TIME)
    if clause.subject and not drops:
        _phrase(out, clause.subject)
    if clause.often:
        out += [(form, (node + m.OFTEN,), ()) for form, _ in clause.often.words["fa"]]
    negation = (node + m.NEGATION,) if clause.negative else ()
    if clause.modal:
        supported = () if clause.modal == "must" else dropped
        out.append((_modal(clause, subject.person), (node + m.MODAL, *negation), supported))
        negation = ()
    _complements(out, clause)
    if clause.verb is None:
        form = _copula(mood or clause.tense, clause.negative)[subject.person]
        out.append((form, (node + m.VERB, *negation), dropped))
        return
    tense = "subjunctive" if clause.modal else mood or clause.tense
    # In a compound verb the noun has the meaning, and the light verb supports it as an auxiliary does.
    says: tuple[int, ...] = (node + m.VERB,)
    serves: tuple[int, ...] = ()
    if clause.verb.persian_word:
        out.append((clause.verb.persian_word, says, ()))
        says, serves = serves, says
    forms = _finite(clause.verb, tense, clause.negative and not clause.modal, subject.person)
    if len(forms) > 1:
        first = (node + m.TENSE,) if tense == "future" else says
        out.append((forms[0], (*first, *negation), (node + m.VERB, *dropped)))
        negation = dropped = ()
    out.append((forms[-1], (*says, *negation), (*serves, *dropped)))


def _complements(out: list[Word], clause: Clause) -> None:
    """Append objects, place and predicate: definite phrases first, indefinite ones next to the verb."""
    node, direct = clause.node, clause.direct
    first = direct is not None and not direct.indefinite
    if direct and first:
        _phrase(out, direct, marked=True)
    if clause.indirect:
        out.append(("به", (node + m.TO,), (clause.indirect.node + m.HEAD,)))
        _phrase(out, clause.indirect)
    if clause.place:
        out.append((_WORDS[clause.place[0]][0], (node + m.PLACE,), (clause.place[1].node,)))
        _phrase(out, clause.place[1])
    if direct and not first:
        _phrase(out, direct, marked=not (clause.verb and clause.verb.persian_bare), none=clause.negative)
    if clause.predicate:
        if clause.very:
            out.append(("خیلی", (node + m.VERY,), (node + m.PREDICATE,)))
        out.append((clause.predicate.persian, (node + m.PREDICATE,), ()))


def _copula(tense: str, negative: bool) -> tuple[str, ...]:
    if not negative:
        return _BE[tense]
    return _NOT_BE.get(tense) or tuple("ن" + form for form in _BE[tense])


def _modal(clause: Clause, person: int) -> str:
    if clause.modal == "must":
        return "نباید" if clause.negative else "باید"
    return ("نمی" if clause.negative else "می") + ZWNJ + _MODALS[clause.modal] + _PRESENT[person]


def _finite(verb: Verb, tense: str, negative: bool, person: int) -> tuple[str, ...]:
    """Return the words of a finite verb, two in the future; "to have" (in "to love") is irregular."""
    past, present, no = verb.persian_past, verb.persian_present, "ن" if negative else ""
    if tense == "future":
        return no + "خواه" + _PRESENT[person], past
    if tense == "past":
        return (_prefixed(no, past) + _PAST[person],)
    if present == "دار":
        return (no + present + _PRESENT[person],) if tense == "present" else (no + "داشته", _BE["subjunctive"][person])
    if tense == "present":
        return (no + "می" + ZWNJ + present + _PRESENT[person],)
    if negative:
        return (_prefixed(no, present) + _PRESENT[person],)
    bare = verb.persian_word != "" and present in ("کن", "شو")
    return (_prefixed("" if bare else "ب", present) + _PRESENT[person],)


def _prefixed(prefix: str, stem: str) -> str:
    if prefix and stem[0] == "آ":
        return prefix + "یا" + stem[1:]
    return prefix + "ی" + stem[1:] if prefix and stem[0] == "ا" else prefix + stem


def _phrase(out: list[Word], phrase: Phrase, *, marked: bool = False, none: bool = False) -> None:
    """Append a phrase; `marked` adds the object marker, and `none` is for "not any"."""
    node = phrase.node
    last = phrase
    if phrase.pronoun in _PEOPLE:
        out += [("آن", (), (node + m.HEAD,)), (_PEOPLE[phrase.pronoun], (node + m.HEAD,), ())]
    elif phrase.pronoun:
        out.append((_PRONOUNS[phrase.pronoun], (node + m.HEAD,), ()))
    else:
        _nominal(out, phrase, none)
        if phrase.second:
            out.append(("و", (node + m.AND,), ()))
            _nominal(out, phrase.second, False)
            last = phrase.second
    if marked:
        out.append(("را", (), (last.node + m.HEAD,)))
    if phrase.relative:
        out.append(("که", (node + m.RELATIVE,), (node + m.HEAD,)))
        _clause(out, phrase.relative, phrase)


def _nominal(out: list[Word], phrase: Phrase, none: bool) -> None:
    """Append determiner, noun, adjectives from the innermost outwards, and owner, all but the last with ezafe."""
    node = phrase.node
    if phrase.determiner in _DETERMINERS and not none:
        out.append((_DETERMINERS[phrase.determiner], (node + m.DETERMINER,), (node + m.HEAD,)))
    counted = phrase.plural and phrase.determiner in _DETERMINERS and phrase.determiner != "this"
    chain: list[Word] = [(phrase.head.persian[phrase.plural and not counted], (node + m.HEAD,), ())]
    for index in range(len(phrase.adjectives) - 1, -1, -1):
        chain.append((phrase.adjectives[index].persian, (node + m.ADJECTIVE + index,), ()))
    owned = phrase.owner is not None or phrase.determiner in m.OWN
    for index, (form, core, near) in enumerate(chain):
        if owned or index < len(chain) - 1:
            form = _ezafe(form)
        elif none or phrase.relative:
            form = _yeh(form)
        out.append((form, core, near))
    if phrase.owner:
        _nominal(out, phrase.owner, False)
    elif owned:
        out.append((_PRONOUNS[phrase.determiner], (node + m.DETERMINER,), (node + m.HEAD,)))


def _silent(form: str) -> bool:
    return form[-1] == "ه" and form[-2] != "ا" and form not in _CONSONANTS


def _vowel(form: str) -> bool:
    return form[-1] in "او" and form not in _CONSONANTS


def _ezafe(form: str) -> str:
    """Add the ezafe, which links a word to the next, where it is written: خانهٔ, دانشجوی."""
    return form + "ٔ" if _silent(form) else form + "ی" if _vowel(form) else form


def _yeh(form: str) -> str:
    """Add the ending of a noun with a relative clause, or of one that is negated: خانه‌ای, دانشجویی, کتابی."""
    if _silent(form) or form[-1] == "ی":
        return join_persian(form, "ای")
    return form + ("یی" if _vowel(form) else "ی")
