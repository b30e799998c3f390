"""What all languages share: the closed-class words in one table, and how a sentence is put together from clauses."""

# Persian letters are intended, not mistyped Latin ones.

from collections.abc import Callable, Mapping

from regard.worlds.babel import meaning as m
from regard.worlds.babel.meaning import Clause, Period, Sentence

# The form, the nodes that it expresses, and the nodes that it supports (an article its noun, an auxiliary its verb).
Word = tuple[str, tuple[int, ...], tuple[int, ...]]
AddClause = Callable[[list[Word], Clause], None]
LANGUAGES = ("en", "fr", "de", "fa")
# English, which is also how meanings call them; French, German and Persian.
_TABLE = """
and | et | und | و
but | mais | aber | اما
because | parce que | weil | چون
when | quand | wenn | وقتی
while | pendant que | während | در حالی که
if | si | wenn | اگر
that | que | dass | که
in | dans | in | در
behind | derrière | hinter | پشت
in front of | devant | vor | جلوی
with | avec | mit | با
for | pour | für | برای
two | deux | zwei | دو
three | trois | drei | سه
four | quatre | vier | چهار
five | cinq | fünf | پنج
six | six | sechs | شش
seven | sept | sieben | هفت
eight | huit | acht | هشت
nine | neuf | neun | نه
ten | dix | zehn | ده
several | plusieurs | mehrere | چند
"""
_ROWS = [dict(zip(LANGUAGES, line.split(" | "), strict=True)) for line in _TABLE.strip().splitlines()]


def closed_words(language: str) -> dict[str, tuple[str, ...]]:
    """The words for each conjunction, preposition and numeral of the table, by their names in meanings."""
    return {row["en"]: tuple(row[language].split()) for row in _ROWS}


_WORDS = {language: closed_words(language) for language in LANGUAGES}


def render_sentence(sentence: Sentence, language: str, add_period: Callable[[list[Word], Period], None]) -> list[Word]:
    """The words of a sentence in order; `add_period` appends those of a period."""
    out: list[Word] = []
    for period in sentence:
        if period.lead:
            node = period.clause.node
            out += [comma(node, language)] if period.lead == "but" or language == "en" else []
            out += _conjunction(period.lead, node, language)
        add_period(out, period)
    out.append((".", (m.STOP,), ()))
    return _reduce_commas(out)


def add_period(
    out: list[Word],
    period: Period,
    language: str,
    add_clause: AddClause,
    *,
    first: Mapping[str, AddClause] | None = None,
) -> None:
    """Append a clause, a conjunction and a subordinate period; what follows a conjunction in `first` comes first."""
    other = period.other
    if other is None:
        add_clause(out, period.clause)
        return
    link = _conjunction(period.link, other.clause.node, language)
    if first and period.link in first:
        out += link
        first[period.link](out, other.clause)
        out.append(comma(other.clause.node, language))
        add_clause(out, period.clause)
    else:
        add_clause(out, period.clause)
        out += link
        add_period(out, other, language, add_clause, first=first)


def comma(clause: int, language: str = "") -> Word:
    """The comma before or after a clause."""
    return "،" if language == "fa" else ",", (clause + m.COMMA,), (clause + m.LINK,)


def timed(words: tuple[tuple[str, int], ...], node: int) -> list[Word]:
    """The words of an adverb of time with its one or two parts; one that expresses neither supports the head."""
    return [(form, (node + part - 1,), ()) if part else (form, (), (node + 1,)) for form, part in words]


def _conjunction(name: str, node: int, language: str) -> list[Word]:
    return [(form, (node + m.LINK,), ()) for form in _WORDS[language][name]]


def _reduce_commas(words: list[Word]) -> list[Word]:
    """Reduce consecutive commas to one, and remove commas before the full stop."""
    return [
        word
        for word, following in zip(words, [*words[1:], None], strict=True)
        if not (word[0] in ",،" and following is not None and following[0] in ",،.")
    ]
