"""English: adjectives before the noun, do-support, indirect before direct object, time at the end."""

from regard.worlds.babel import meaning as m
from regard.worlds.babel.closed_words import Word, add_period, render_sentence, timed
from regard.worlds.babel.meaning import Clause, Period, Phrase, Sentence

_OBJECTS = {"I": "me", "he": "him", "she": "her", "we": "us", "they": "them"}
_BE = {"present": ("am", "is", "are", "are"), "past": ("was", "was", "were", "were")}


def render(sentence: Sentence) -> list[Word]:
    """Return the words of a sentence in order."""
    return render_sentence(sentence, "en", _period)


def _period(out: list[Word], period: Period) -> None:
    add_period(out, period, "en", _clause)


def _clause(out: list[Word], clause: Clause, antecedent: Phrase | None = None) -> None:
    node = clause.node
    subject = clause.subject or antecedent
    if clause.subject:
        _phrase(out, clause.subject)
    _verb(out, clause, subject.person if subject else 1)
    if clause.indirect:
        _phrase(out, clause.indirect, "object")
    if clause.direct and not (clause.direct.pronoun and _splits(clause)):
        _phrase(out, clause.direct, "object")
    if clause.predicate:
        if clause.very:
            out.append(("very", (node + m.VERY,), (node + m.PREDICATE,)))
        out.append((clause.predicate.english, (node + m.PREDICATE,), ()))
    if clause.place:
        out += [(word, (node + m.PLACE,), (clause.place[1].node,)) for word in clause.place[0].split()]
        _phrase(out, clause.place[1], "object")
    if clause.time:
        out += timed(clause.time.words["en"], node + m.TIME)


def _splits(clause: Clause) -> bool:
    return clause.verb is not None and clause.verb.english_particle not in ("", "for")


def _verb(out: list[Word], clause: Clause, person: int) -> None:
    """Append auxiliaries, "not", the adverb and the verb with its particle, which follows a pronoun object."""
    node, verb = clause.node, clause.verb
    does = "does" if person == 1 else "do"
    finite: Word | None = None
    if verb is None:
        finite = (_BE[clause.tense][person], (node + m.VERB,), ())
    elif clause.modal == "want":
        wants: Word = ("wants" if person == 1 else "want", (node + m.MODAL,), ())
        finite = wants if not clause.negative else (does, (), (node + m.MODAL, node + m.NEGATION))
    elif clause.modal:
        finite = (clause.modal, (node + m.MODAL,), (node + m.VERB,))
    elif clause.tense == "future":
        finite = ("will", (node + m.TENSE,), (node + m.VERB,))
    elif clause.negative:
        finite = ("did" if clause.tense == "past" else does, (), (node + m.VERB, node + m.NEGATION))
    often: list[Word] = [(form, (node + m.OFTEN,), ()) for form, _ in clause.often.words["en"]] if clause.often else []
    if clause.modal == "want":
        out += often
    if finite:
        out.append(finite)
    if clause.negative and clause.modal == "can":
        out[-1] = ("cannot", (node + m.MODAL, node + m.NEGATION), (node + m.VERB,))
    elif clause.negative:
        out.append(("not", (node + m.NEGATION,), ()))
    if clause.modal == "want":
        if clause.negative:
            out.append(("want", (node + m.MODAL,), ()))
        out.append(("to", (), (node + m.MODAL, node + m.VERB)))
    else:
        out += often
    if verb is None:
        return
    form = verb.english[0] if finite else verb.english[2] if clause.tense == "past" else verb.english[person == 1]
    out.append((form, (node + m.VERB,), ()))
    if clause.direct and clause.direct.pronoun and _splits(clause):
        _phrase(out, clause.direct, "object")
    if verb.english_particle:
        out.append((verb.english_particle, (node + m.VERB,), ()))


def _phrase(out: list[Word], phrase: Phrase, role: str = "subject") -> None:
    node = phrase.node
    if phrase.pronoun:
        out.append((phrase.pronoun if role == "subject" else _OBJECTS[phrase.pronoun], (node + m.HEAD,), ()))
        return
    adjectives = [each.english for each in phrase.adjectives]
    noun = phrase.head.english[phrase.plural]
    owner = phrase.owner
    saxon = owner is not None and owner.head.kind == "person"
    if owner is not None and saxon:
        _phrase(out, owner, "owner")
        last, core, near = out[-1]
        out[-1] = (last + ("'" if last.endswith("s") else "'s"), (*core, node + m.OWNER), near)
    else:
        form = _determiner(phrase, (*adjectives, noun)[0])
        out.append((form, (node + m.DETERMINER,), (node + m.HEAD,)))
    out += [(form, (node + m.ADJECTIVE + index,), ()) for index, form in enumerate(adjectives)]
    out.append((noun, (node + m.HEAD,), ()))
    if owner is not None and not saxon:
        out.append(("of", (node + m.OWNER,), (owner.node + m.HEAD,)))
        _phrase(out, owner, "object")
    if phrase.relative:
        gap = phrase.relative.gap
        who = "who" if gap == "subject" and phrase.head.kind == "person" else "that"
        out.append((who, (node + m.RELATIVE,), (node + m.HEAD,)))
        _clause(out, phrase.relative, phrase)
    if phrase.second:
        out.append(("and", (node + m.AND,), ()))
        _phrase(out, phrase.second, role)


def _determiner(phrase: Phrase, following: str) -> str:
    if phrase.determiner == "this":
        return "these" if phrase.plural else "this"
    if phrase.determiner != "a":
        return phrase.determiner
    sounds_like_a_vowel = following[0].lower() in "aeiou" and not following.lower().startswith(("uni", "use", "euro"))
    return "an" if sounds_like_a_vowel or following.startswith("hon") else "a"
