"""French: most adjectives after the noun, in reverse order; agreement; ne ... pas; object pronouns before the verb."""

from regard.worlds.babel.meaning import (
    ADJECTIVE,
    AND,
    DETERMINER,
    HEAD,
    LINK,
    MODAL,
    NEGATION,
    OFTEN,
    OWNER,
    PLACE,
    PREDICATE,
    RELATIVE,
    STOP,
    TENSE,
    TIME,
    TO,
    VERB,
    VERY,
    Clause,
    Period,
    Phrase,
    Sentence,
)
from regard.worlds.babel.words import Word, comma, reduce_commas, timed

_SUBJECTS = {"I": "je", "he": "il", "she": "elle", "we": "nous", "they": "ils"}
_OBJECTS = {"I": "me", "he": "le", "she": "la", "we": "nous", "they": "les"}
_LEADS = {"and": "et", "but": "mais"}
_LINKS = {
    "because": ("parce", "que"),
    "when": ("quand",),
    "while": ("pendant", "que"),
    "if": ("si",),
    "that": ("que",),
}
_BE = {"present": ("suis", "est", "sommes", "sont"), "past": ("étais", "était", "étions", "étaient")}
_HAVE = ("ai", "a", "avons", "ont")
_FUTURE = ("ai", "a", "ons", "ont")
_MODALS = {
    "can": ("peux", "peut", "pouvons", "peuvent"),
    "must": ("dois", "doit", "devons", "doivent"),
    "want": ("veux", "veut", "voulons", "veulent"),
}
_PLACES = {
    "in": ("dans",),
    "behind": ("derrière",),
    "in front of": ("devant",),
    "with": ("avec",),
    "for": ("pour",),
}
_NUMERALS = {
    "two": "deux",
    "three": "trois",
    "four": "quatre",
    "five": "cinq",
    "six": "six",
    "seven": "sept",
    "eight": "huit",
    "nine": "neuf",
    "ten": "dix",
    "several": "plusieurs",
}
# Masculine, feminine, plural, and before a vowel.
_DETERMINERS = {
    "the": ("le", "la", "les", "l'"),
    "a": ("un", "une", "", ""),
    "this": ("ce", "cette", "ces", "cet"),
    "my": ("mon", "ma", "mes", "mon"),
    "our": ("notre", "notre", "nos", "notre"),
}
_CONTRACTED = {("de", "le"): "du", ("de", "les"): "des", ("à", "le"): "au", ("à", "les"): "aux"}
_ELIDED = {"je": "j'", "me": "m'", "le": "l'", "la": "l'", "ne": "n'", "que": "qu'", "de": "d'"}
_VOWELS = tuple("aeiouâàéèêîôûœh")


def render(sentence: Sentence) -> list[Word]:
    """Return the words of a sentence in order."""
    out: list[Word] = []
    for period in sentence:
        if period.lead:
            node = period.clause.node
            out += [comma(node)] if period.lead == "but" else []
            out.append((_LEADS[period.lead], (node + LINK,), ()))
        _period(out, period)
    out.append((".", (STOP,), ()))
    return _elide(reduce_commas(out))


def _elide(words: list[Word]) -> list[Word]:
    for index in range(len(words) - 1):
        form, core, near = words[index]
        following = words[index + 1][0]
        if form in _ELIDED and following.startswith(_VOWELS) and following != "huit":
            words[index] = (_ELIDED[form], core, near)
        elif form == "si" and following in ("il", "ils"):
            words[index] = ("s'", core, near)
    return words


def _period(out: list[Word], period: Period) -> None:
    other = period.other
    if other is None:
        _clause(out, period.clause)
        return
    node = other.clause.node
    link: list[Word] = [(form, (node + LINK,), ()) for form in _LINKS[period.link]]
    if period.link == "if":
        out += link
        _period(out, other)
        out.append(comma(node))
        _clause(out, period.clause)
    else:
        _clause(out, period.clause)
        out += link
        _period(out, other)


def _clause(out: list[Word], clause: Clause, antecedent: Phrase | None = None) -> None:
    node = clause.node
    subject = clause.subject or antecedent
    if subject is None:
        raise LookupError("A clause needs a subject or a phrase that it modifies.")
    if clause.time:
        out += [*timed(clause.time.words["fr"], node + TIME), (",", (), (node + TIME,))]
    if clause.subject:
        _phrase(out, clause.subject)
    _verb(out, clause, subject, antecedent if clause.gap == "object" else None)
    if clause.direct and not clause.direct.pronoun:
        _phrase(out, clause.direct, none=clause.negative and clause.direct.determiner == "a")
    if clause.indirect:
        _phrase(out, clause.indirect, "à", node + TO)
    if clause.predicate:
        if clause.very:
            out.append(("très", (node + VERY,), (node + PREDICATE,)))
        out.append((clause.predicate.french[_agreement(subject)], (node + PREDICATE,), ()))
    if clause.place:
        out += [(form, (node + PLACE,), (clause.place[1].node,)) for form in _PLACES[clause.place[0]]]
        _phrase(out, clause.place[1])


def _verb(out: list[Word], clause: Clause, subject: Phrase, before: Phrase | None) -> None:
    """Append the finite verb inside ne ... pas, the adverb, and the participle or infinitive.

    `before` is the object that a relative pronoun refers to: a participle agrees with a preceding object.
    """
    node = clause.node
    finite, end = _parts(clause, subject, before)
    pronoun: list[Word] = []
    if clause.direct and clause.direct.pronoun:
        pronoun = [(_OBJECTS[clause.direct.pronoun], (clause.direct.node + HEAD,), ())]
    if clause.negative:
        out.append(("ne", (node + NEGATION,), ()))
    if not clause.modal:
        out += pronoun
    out.append(finite)
    if clause.negative:
        out.append(("pas", (node + NEGATION,), ()))
    if clause.often:
        out += [(form, (node + OFTEN,), ()) for form, _ in clause.often.words["fr"]]
    if clause.modal:
        out += pronoun
    if end:
        out.append((end, (node + VERB,), ()))


def _parts(clause: Clause, subject: Phrase, before: Phrase | None) -> tuple[Word, str]:
    node, verb, person = clause.node, clause.verb, subject.person
    if verb is None:
        return (_BE[clause.tense][person], (node + VERB,), ()), ""
    if clause.modal:
        return (_MODALS[clause.modal][person], (node + MODAL,), (node + VERB,)), verb.french_infinitive
    if clause.tense == "future":
        return (verb.french_future + _FUTURE[person], (node + VERB,), (node + TENSE,)), ""
    if clause.tense == "present":
        return (verb.french[person], (node + VERB,), ()), ""
    auxiliary = (_BE["present"] if verb.french_etre else _HAVE)[person]
    if verb.french_etre:
        before = subject
    elif clause.direct and clause.direct.pronoun:
        before = clause.direct
    agreement = _agreement(before) if before else 0
    participle = verb.french_participle
    ending = ("", "e", "" if participle.endswith("s") else "s", "es")[agreement]
    return (auxiliary, (node + TENSE,), (node + VERB,)), participle + ending


def _feminine(phrase: Phrase) -> bool:
    if phrase.pronoun:
        return phrase.pronoun == "she"
    return phrase.head.french_feminine and (phrase.second is None or _feminine(phrase.second))


def _agreement(phrase: Phrase) -> int:
    """Return 0 for masculine, 1 for feminine, 2 and 3 for their plurals."""
    return _feminine(phrase) + 2 * (phrase.person > 1)


def _phrase(out: list[Word], phrase: Phrase, preposition: str = "", role: int = 0, *, none: bool = False) -> None:
    """Append a phrase, with a preposition that may contract with its article; `none` is for "pas de"."""
    node = phrase.node
    if phrase.pronoun:
        out.append((_SUBJECTS[phrase.pronoun], (node + HEAD,), ()))
        return
    noun, feminine, plural = phrase.head, phrase.head.french_feminine, phrase.plural
    words: list[Word] = []
    after: list[Word] = []
    agreement = feminine + 2 * plural
    for index, adjective in enumerate(phrase.adjectives):
        form = adjective.french[agreement]
        if adjective.french_before:
            alone = agreement == 0 and noun.french[0].startswith(_VOWELS)
            words.append((adjective.french_before_vowel if alone else form, (node + ADJECTIVE + index,), ()))
        else:
            after.insert(0, (form, (node + ADJECTIVE + index,), ()))
    words.append((noun.french[plural], (node + HEAD,), ()))
    if none:
        out.append(("de", (), (node + DETERMINER, node + HEAD)))
    else:
        _determine(out, phrase, words[0][0], preposition, role)
    out += words + after
    if phrase.owner:
        _phrase(out, phrase.owner, "de", node + OWNER)
    if phrase.relative:
        form = "qui" if phrase.relative.gap == "subject" else "que"
        out.append((form, (node + RELATIVE,), (node + HEAD,)))
        _clause(out, phrase.relative, phrase)
    if phrase.second:
        out.append(("et", (node + AND,), ()))
        _phrase(out, phrase.second, preposition, role)


def _determine(out: list[Word], phrase: Phrase, following: str, preposition: str, role: int) -> None:
    node = phrase.node
    if phrase.determiner in _NUMERALS:
        form = _NUMERALS[phrase.determiner]
    else:
        forms = _DETERMINERS[phrase.determiner]
        form = forms[2 if phrase.plural else phrase.head.french_feminine]
        if not phrase.plural and forms[3] and following.startswith(_VOWELS) and form != "cette":
            form = forms[3]
    if (preposition, form) in _CONTRACTED:
        out.append((_CONTRACTED[preposition, form], (role, node + DETERMINER), (node + HEAD,)))
        return
    if preposition:
        out.append((preposition, (role,), (node + HEAD,)))
    out.append((form, (node + DETERMINER,), (node + HEAD,)))
