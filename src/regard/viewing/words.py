"""Words as views show them: right-to-left scripts kept in their place, and very long words shortened."""

import unicodedata
from collections.abc import Callable, Iterable

# First strong isolate, and its end: what stands between them cannot reorder what stands around them.
_ISOLATE, _END = "\u2068", "\u2069"


def right_to_left(words: Iterable[str]) -> bool:
    """Whether most letters of the words belong to a script written from right to left, as Persian and Hebrew are."""
    kinds = [unicodedata.bidirectional(letter) for word in words for letter in word]
    rightward = kinds.count("L")
    return sum(kind in ("R", "AL") for kind in kinds) > rightward


def isolated(word: str) -> str:
    """The word between isolate marks, if it has a right-to-left letter.

    Without them a terminal that orders Persian words would take a row of cells for one sentence and turn it around,
    so that words stand over the wrong columns.
    """
    if any(unicodedata.bidirectional(letter) in ("R", "AL", "AN") for letter in word):
        return f"{_ISOLATE}{word}{_END}"
    return word


def shortened(word: str, room: int, size: Callable[[str], int] = len) -> str:
    """The word, or as much of its start as fits into `room` with an ellipsis."""
    if size(word) <= room:
        return word
    while word and size(word) > room - 1:
        word = word[:-1]
    return f"{word}…"
