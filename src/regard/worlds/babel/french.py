"""French: most adjectives after the noun, in reverse order; agreement; ne ... pas; object pronouns before the verb."""

from regard.worlds.babel import meaning as m
from regard.worlds.babel.closed_words import Word, add_period, closed_words, render_sentence, timed
from regard.worlds.babel.meaning import Clause, Period, Phrase, Sentence

_WORDS = closed_words("fr")
_SUBJECTS = {"I": "je", "he": "il", "she": "elle", "we": "nous", "they": "ils"}
_OBJECTS = {"I": "me", "he": "le", "she": "la", "we": "nous", "they": "les"}
_BE = {"present": ("suis", "est", "sommes", "sont"), "past": ("étais", "était", "étions", "étaient")}
_HAVE = ("ai", "a", "avons", "ont")
_FUTURE = ("ai", "a", "ons", "ont")
_MODALS = {
    "can": ("peux", "peut", "pouvons", "peuvent"),
    "must": ("dois", "doit", "devons", "doivent"),
    "want": ("veux", "veut", "voulons", "veulent"),
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
    return _elide(render_sentence(sentence, "fr", _period))


def _period(out: list[Word], period: Period) -> None:
    add_period(out, period, "fr", _clause, first={"if": _clause})


def _elide(words: list[Word]) -> list[Word]:
    for index in range(len(words) - 1):
        form, core, near = words[index]
        following = words[index + 1][0]
        if form in _ELIDED and following.startswith(_VOWELS) and following != "huit":
            words[index] = (_ELIDED[form], core, near)
        elif form == "si" and following in ("il", "ils"):
            words[index] = ("s'", core, near)
    return words


def _clause(out: list[Word], clause: Clause, antecedent: Phrase | None = None) -> None:
    node = clause.node
    subject = clause.subject or antecedent
    if subject is None:
        raise LookupError("A clause needs a subject or a phrase that it modifies.")
    if clause.time:
        out += [*timed(clause.time.words["fr"], node + m.TIME), (",", (), (node + m.TIME,))]
    if clause.subject:
        _phrase(out, clause.subject)
    _verb(out, clause, subject, antecedent if clause.gap == "object" else None)
    if clause.direct and not clause.direct.pronoun:
        _phrase(out, clause.direct, none=clause.negative and clause.direct.determiner == "a")
    if clause.indirect:
        _phrase(out, clause.indirect, "à", node + m.TO)
    if clause.predicate:
        if clause.very:
            out.append(("très", (node + m.VERY,), (node + m.PREDICATE,)))
        out.append((clause.predicate.french[_agreement(subject)], (node + m.PREDICATE,), ()))
    if clause.place:
        out += [(form, (node + m.PLACE,), (clause.place[1].node,)) for form in _WORDS[clause.place[0]]]
        _phrase(out, clause.place[1])


def _verb(out: list[Word], clause: Clause, subject: Phrase, before: Phrase | None) -> None:
    """Append the finite verb inside ne ... pas, the adverb, and the participle or infinitive.

    `before` is the object that a relative pronoun refers to: a participle agrees with a preceding object.
    """
    node = clause.node
    finite, end = _parts(clause, subject, before)
    pronoun: list[Word] = []
    if clause.direct and clause.direct.pronoun:
        pronoun = [(_OBJECTS[clause.direct.pronoun], (clause.direct.node + m.HEAD,), ())]
    if clause.negative:
        out.append(("ne", (node + m.NEGATION,), ()))
    if not clause.modal:
        out += pronoun
    out.append(finite)
    if clause.negative:
        out.append(("pas", (node + m.NEGATION,), ()))
    if clause.often:
        out += [(form, (node + m.OFTEN,), ()) for form, _ in clause.often.words["fr"]]
    if clause.modal:
        out += pronoun
    if end:
        out.append((end, (node + m.VERB,), ()))


def _parts(clause: Clause, subject: Phrase, before: Phrase | None) -> tuple[Word, str]:
    node, verb, person = clause.node, clause.verb, subject.person
    if verb is None:
        return (_BE[clause.tense][person], (node + m.VERB,), ()), ""
    if clause.modal:
        return (_MODALS[clause.modal][person], (node + m.MODAL,), (node + m.VERB,)), verb.french_infinitive
    if clause.tense == "future":
        return (verb.french_future + _FUTURE[person], (node + m.VERB,), (node + m.TENSE,)), ""
    if clause.tense == "present":
        return (verb.french[person], (node + m.VERB,), ()), ""
    auxiliary = (_BE["present"] if verb.french_etre else _HAVE)[person]
    if verb.french_etre:
        before = subject
    elif clause.direct and clause.direct.pronoun:
        before = clause.direct
    agreement = _agreement(before) if before else 0
    participle = verb.french_participle
    ending = ("", "e", "" if participle.endswith("s") else "s", "es")[agreement]
    return (auxiliary, (node + m.TENSE,), (node + m.VERB,)), participle + ending


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
        out.append((_SUBJECTS[phrase.pronoun], (node + m.HEAD,), ()))
        return
    noun, feminine, plural = phrase.head, phrase.head.french_feminine, phrase.plural
    words: list[Word] = []
    after: list[Word] = []
    agreement = feminine + 2 * plural
    for index, adjective in enumerate(phrase.adjectives):
        form = adjective.french[agreement]
        if adjective.french_before:
            alone = agreement == 0 and noun.french[0].startswith(_VOWELS)
            words.append((adjective.french_before_vowel if alone else form, (node + m.ADJECTIVE + index,), ()))
        else:
            after.insert(0, (form, (node + m.ADJECTIVE + index,), ()))
    words.append((noun.french[plural], (node + m.HEAD,), ()))
    if none:
        out.append(("de", (), (node + m.DETERMINER, node + m.HEAD)))
    else:
        _determine(out, phrase, words[0][0], preposition, role)
    out += words + after
    if phrase.owner:
        _phrase(out, phrase.owner, "de", node + m.OWNER)
    if phrase.relative:
        form = "qui" if phrase.relative.gap == "subject" else "que"
        out.append((form, (node + m.RELATIVE,), (node + m.HEAD,)))
        _clause(out, phrase.relative, phrase)
    if phrase.second:
        out.append(("et", (node + m.AND,), ()))
        _phrase(out, phrase.second, preposition, role)


def _determine(out: list[Word], phrase: Phrase, following: str, preposition: str, role: int) -> None:
    node = phrase.node
    if phrase.determiner in m.NUMERALS:
        (form,) = _WORDS[phrase.determiner]
    else:
        forms = _DETERMINERS[phrase.determiner]
        form = forms[2 if phrase.plural else phrase.head.french_feminine]
        if not phrase.plural and forms[3] and following.startswith(_VOWELS) and form != "cette":
            form = forms[3]
    if (preposition, form) in _CONTRACTED:
        out.append((_CONTRACTED[preposition, form], (role, node + m.DETERMINER), (node + m.HEAD,)))
        return
    if preposition:
        out.append((preposition, (role,), (node + m.HEAD,)))
    out.append((form, (node + m.DETERMINER,), (node + m.HEAD,)))
