"""Words as views show them: control characters made visible, right-to-left scripts kept in place, long words cut."""

import unicodedata
from collections.abc import Callable

from rich.text import Text

# First strong isolate, and its end: the text between them cannot reorder the text around them.
_ISOLATE, _END = "\u2068", "\u2069"
# C0 and C1 controls, which terminals obey, line separators, and marks that reorder the text after them.
_CONTROLS = (*range(0x20), *range(0x7F, 0xA0), *range(0x2028, 0x202F), *range(0x2066, 0x206A))
_VISIBLE = dict.fromkeys(_CONTROLS, "\ufffd") | {ord("\n"): "⏎", ord("\t"): "⇥"}
# In whole lines, line ends and tabs stay, and the isolate marks that views set themselves.
_VISIBLE_IN_LINES = {code: mark for code, mark in _VISIBLE.items() if code not in (0x0A, 0x09) and code < 0x2066}


def printable(text: str) -> str:
    """The text with its control characters made visible, so that no word can send commands to a terminal."""
    return text.translate(_VISIBLE)


def printable_lines(text: str) -> str:
    """Lines with their control characters made visible; line ends and tabs are kept."""
    return text.translate(_VISIBLE_IN_LINES)


def isolated(word: str) -> str:
    """The word between isolate marks, if it has a right-to-left letter.

    Without the marks, a terminal that orders Persian words would take a row of cells for one sentence and reverse it,
    so that words would stand over the wrong columns.
    """
    if any(unicodedata.bidirectional(letter) in ("R", "AL", "AN") for letter in word):
        return f"{_ISOLATE}{word}{_END}"
    return word


def shortened(word: str, room: int, size: Callable[[str], int] = len) -> str:
    """The printable word, or as much of its start as fits into `room` with an ellipsis."""
    # Longer words than any view has room for are cut before each letter is looked at.
    word = printable(word[: max(room, 0) + 200])
    if size(word) <= room:
        return word
    while word and size(word) > room - 1:
        word = word[:-1]
    return f"{word}…"


def heading(title: str | None) -> Text | None:
    """The title of a table in the terminal, whose brackets are not markup."""
    return None if title is None else Text(printable(title), style="table.title")
