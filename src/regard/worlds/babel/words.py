"""A word as a language writes it down: its form and the nodes of the meaning that it stands for."""

from regard.worlds.babel.meaning import COMMA, LINK

# The form, the nodes that it realises, and the nodes that it serves (an article its noun, an auxiliary its verb).
Word = tuple[str, tuple[int, ...], tuple[int, ...]]


def comma(clause: int, form: str = ",") -> Word:
    """The comma before (or closing) a clause."""
    return form, (clause + COMMA,), (clause + LINK,)


def reduce_commas(words: list[Word]) -> list[Word]:
    """Of commas in a row one is written, and none before the full stop."""
    return [
        word
        for word, following in zip(words, [*words[1:], None], strict=True)
        if not (word[0] in ",،" and following is not None and following[0] in ",،.")
    ]


def timed(words: tuple[tuple[str, int], ...], node: int) -> list[Word]:
    """An adverb of time in its one or two parts; a word that only serves it serves its head."""
    return [(form, (node + part - 1,), ()) if part else (form, (), (node + 1,)) for form, part in words]
