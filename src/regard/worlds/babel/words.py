"""Words of a sentence: a form and the nodes of the meaning that it expresses."""

from regard.worlds.babel.meaning import COMMA, LINK

# The form, the nodes that it expresses, and the nodes that it supports (an article its noun, an auxiliary its verb).
Word = tuple[str, tuple[int, ...], tuple[int, ...]]


def comma(clause: int, form: str = ",") -> Word:
    """Return the comma before or after a clause."""
    return form, (clause + COMMA,), (clause + LINK,)


def reduce_commas(words: list[Word]) -> list[Word]:
    """Reduce consecutive commas to one, and remove commas before the full stop."""
    return [
        word
        for word, following in zip(words, [*words[1:], None], strict=True)
        if not (word[0] in ",،" and following is not None and following[0] in ",،.")
    ]


def timed(words: tuple[tuple[str, int], ...], node: int) -> list[Word]:
    """Return an adverb of time with its one or two parts; a word that expresses neither supports the head."""
    return [(form, (node + part - 1,), ()) if part else (form, (), (node + 1,)) for form, part in words]
