"""How one text becomes another, word by word; shared by the questions to translators and captioners."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal


@dataclass(frozen=True)
class WordEdit:
    """A run of words that stayed, went or came."""

    kind: Literal["same", "removed", "added"]
    words: tuple[str, ...]


def compare_words(before: Sequence[str], after: Sequence[str]) -> tuple[WordEdit, ...]:
    """How a sequence of words becomes another, by the longest runs that stay."""
    edits: list[WordEdit] = []
    for tag, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            edits.append(WordEdit("same", tuple(before[a:b])))
            continue
        if b > a:
            edits.append(WordEdit("removed", tuple(before[a:b])))
        if d > c:
            edits.append(WordEdit("added", tuple(after[c:d])))
    return tuple(edits)
