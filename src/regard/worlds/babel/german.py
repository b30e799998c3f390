"""German: four cases; the verb second in a main clause and last in a subordinate one; separated verb parts."""

from regard.worlds.babel import meaning as m
from regard.worlds.babel.closed_words import Word, closed_words, comma, render_sentence, timed
from regard.worlds.babel.lexicon import CASES
from regard.worlds.babel.meaning import Clause, Period, Phrase, Sentence

_WORDS = closed_words("de")
_PRONOUNS = {
    "nom": {"I": "ich", "he": "er", "she": "sie", "we": "wir", "they": "sie"},
    "acc": {"I": "mich", "he": "ihn", "she": "sie", "we": "uns", "they": "sie"},
}
_BE = {"present": ("bin", "ist", "sind", "sind"), "past": ("war", "war", "waren", "waren")}
_HAVE = ("habe", "hat", "haben", "haben")
_WILL = ("werde", "wird", "werden", "werden")
_MODALS = {
    "can": ("kann", "kann", "können", "können"),
    "must": ("muss", "muss", "müssen", "müssen"),
    "must not": ("darf", "darf", "dürfen", "dürfen"),
    "want": ("will", "will", "wollen", "wollen"),
}
# By case: masculine, feminine, neuter, plural.
_THE = {
    "nom": ("der", "die", "das", "die"),
    "acc": ("den", "die", "das", "die"),
    "dat": ("dem", "der", "dem", "den"),
    "gen": ("des", "der", "des", "der"),
}
_ENDINGS_OF_THIS = {
    "nom": ("er", "e", "es", "e"),
    "acc": ("en", "e", "es", "e"),
    "dat": ("em", "er", "em", "en"),
    "gen": ("es", "er", "es", "er"),
}
_ENDINGS_OF_A = _ENDINGS_OF_THIS | {"nom": ("", "e", "", "e"), "acc": ("en", "e", "", "e")}
_WEAK = {
    "nom": ("e", "e", "e", "en"),
    "acc": ("en", "e", "e", "en"),
    "dat": ("en", "en", "en", "en"),
    "gen": ("en", "en", "en", "en"),
}
_MIXED = _WEAK | {"nom": ("er", "e", "es", "en"), "acc": ("en", "e", "es", "en")}
_STRONG_PLURAL = {"nom": "e", "acc": "e", "dat": "en", "gen": "er"}
_STEMS = {"a": "ein", "my": "mein", "our": "unser", "no": "kein"}


def render(sentence: Sentence) -> list[Word]:
    """Return the words of a sentence in order."""
    return render_sentence(sentence, "de", lambda out, period: _period(out, period, "second"))


def _period(out: list[Word], period: Period, order: str) -> None:
    other = period.other
    if other is None:
        _clause(out, period.clause, order)
        return
    node = other.clause.node
    form = "als" if period.link == "when" and other.clause.tense == "past" else _WORDS[period.link][0]
    link: Word = (form, (node + m.LINK,), ())
    if period.link in ("if", "when"):
        out.append(link)
        _clause(out, other.clause, "last")
        out.append(comma(node))
        _clause(out, period.clause, "first")
    else:
        _clause(out, period.clause, order)
        out += [comma(node), link]
        _period(out, other, "last")
        out.append(comma(node))


def _clause(out: list[Word], clause: Clause, order: str, antecedent: Phrase | None = None) -> None:
    """Append a clause with its finite verb first, second or last; relative clauses of the object follow the verb."""
    node, direct = clause.node, clause.direct
    subject = clause.subject or antecedent
    if subject is None:
        raise LookupError("A clause has a subject, or belongs to a phrase.")
    finite, end = _parts(clause, subject.person)
    if clause.time:
        out += timed(clause.time.words["de"], node + m.TIME)
        order = "first"
    if order == "first":
        out.append(finite)
    if clause.subject:
        _phrase(out, clause.subject, "nom")
    if order == "second":
        out.append(finite)
    after = direct is not None and direct.relative is not None and (order == "last" or end != "")
    _middle(out, clause, direct._replace(relative=None) if direct and after else direct)
    if order != "last":
        if end:
            out.append((end, (node + m.VERB,), ()))
    elif clause.verb and clause.verb.german_prefix == end and end:
        out.append((end + finite[0], finite[1], finite[2]))
    else:
        if end:
            out.append((end, (node + m.VERB,), ()))
        out.append(finite)
    if direct and after:
        _relative(out, direct)


def _parts(clause: Clause, person: int) -> tuple[Word, str]:
    """Return the finite verb, and the form at the end of the clause: prefix, participle or infinitive."""
    node, verb = clause.node, clause.verb
    if verb is None:
        return (_BE[clause.tense][person], (node + m.VERB,), ()), ""
    if clause.modal:
        modal = "must not" if clause.modal == "must" and clause.negative else clause.modal
        return (_MODALS[modal][person], (node + m.MODAL,), (node + m.VERB,)), verb.german_infinitive
    if clause.tense == "future":
        return (_WILL[person], (node + m.TENSE,), (node + m.VERB,)), verb.german_infinitive
    if clause.tense == "past":
        auxiliary = (_BE["present"] if verb.german_sein else _HAVE)[person]
        return (auxiliary, (node + m.TENSE,), (node + m.VERB,)), verb.german_participle
    return (verb.german[person], (node + m.VERB,), ()), verb.german_prefix


def _middle(out: list[Word], clause: Clause, direct: Phrase | None) -> None:
    """Append pronoun, adverb, indirect object, definite object, "nicht", place, indefinite object and predicate."""
    node = clause.node
    new = direct is not None and direct.indefinite
    if direct and direct.pronoun:
        _phrase(out, direct, "acc")
    if clause.often:
        out += [(form, (node + m.OFTEN,), ()) for form, _ in clause.often.words["de"]]
    if clause.indirect:
        _phrase(out, clause.indirect, "dat")
    if direct and not direct.pronoun and not new:
        _phrase(out, direct, "acc")
    if clause.negative and not new:
        out.append(("nicht", (node + m.NEGATION,), ()))
    if clause.place:
        _place(out, clause.place, node + m.PLACE)
    if direct and new:
        _phrase(out, direct, "acc", no=node + m.NEGATION if clause.negative else 0)
    if clause.predicate:
        if clause.very:
            out.append(("sehr", (node + m.VERY,), (node + m.PREDICATE,)))
        out.append((clause.predicate.german, (node + m.PREDICATE,), ()))


def _place(out: list[Word], place: tuple[str, Phrase], node: int) -> None:
    (form,), phrase = _WORDS[place[0]], place[1]
    out.append((form, (node,), (phrase.node,)))
    start = len(out)
    _phrase(out, phrase, "acc" if place[0] == "for" else "dat")
    if form == "in" and out[start][0] == "dem":
        _, core, near = out.pop(start)
        out[start - 1] = ("im", (node, *core), near)


def _phrase(out: list[Word], phrase: Phrase, case: str, *, no: int = 0) -> None:
    """Append a phrase in a case; `no` is the negation that "kein" expresses together with the article."""
    node = phrase.node
    if phrase.pronoun:
        out.append((_PRONOUNS[case][phrase.pronoun], (node + m.HEAD,), ()))
        return
    column = 3 if phrase.plural else "mfn".index(phrase.head.german_gender)
    form, endings = _determiner("no" if no else phrase.determiner, case, column)
    core = (node + m.DETERMINER, no) if no else (node + m.DETERMINER,)
    out.append((form, core, (node + m.HEAD,)))
    for index, adjective in enumerate(phrase.adjectives):
        out.append((_inflect(adjective.german, adjective.german_stem, endings), (node + m.ADJECTIVE + index,), ()))
    out.append((phrase.head.german[CASES.index(case) + 4 * phrase.plural], (node + m.HEAD,), ()))
    if phrase.owner:
        _phrase(out, phrase.owner, "gen")
    if phrase.relative:
        _relative(out, phrase)
    if phrase.second:
        out.append(("und", (node + m.AND,), ()))
        _phrase(out, phrase.second, case)


def _relative(out: list[Word], phrase: Phrase) -> None:
    clause = phrase.relative
    if clause is None:
        return
    node = phrase.node
    column = 3 if phrase.plural else "mfn".index(phrase.head.german_gender)
    pronoun = _THE["nom" if clause.gap == "subject" else "acc"][column]
    aside: Word = (",", (), (node + m.RELATIVE,))
    out += [aside, (pronoun, (node + m.RELATIVE,), (node + m.HEAD,))]
    _clause(out, clause, "last", phrase)
    out.append(aside)


def _determiner(determiner: str, case: str, column: int) -> tuple[str, str]:
    """Return the form of a determiner, and the ending of an adjective after it."""
    if determiner == "the":
        return _THE[case][column], _WEAK[case][column]
    if determiner == "this":
        return "dies" + _ENDINGS_OF_THIS[case][column], _WEAK[case][column]
    if determiner in m.NUMERALS:
        (form,) = _WORDS[determiner]
        return form + "n" if determiner == "several" and case == "dat" else form, _STRONG_PLURAL[case]
    ending = _ENDINGS_OF_A[case][column]
    # A determiner without an ending leaves the strong ending to the adjective; "unser" keeps its e: unsere, unseren.
    return _STEMS[determiner] + ending, _MIXED[case][column]


def _inflect(basic: str, stem: str, ending: str) -> str:
    return stem + ending if ending else basic
