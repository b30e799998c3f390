"""The pieces of a segment: text, inline tags, and what has a place in a sentence but is not translated."""

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, pairwise
from typing import Literal


@dataclass(frozen=True)
class Piece:
    """A part of a segment."""

    kind: Literal["text", "open", "close", "atom"]
    """Text; a tag that begins or ends an element; or what is kept as it is: an image, a comment, code."""
    content: str
    """The text as people read it; of all others, the markup, verbatim."""
    name: str = ""
    """What pairs the tags of an element."""
    is_word: bool = False
    """Whether an atom is a word of the sentence, as code is: the model then reads a name in its place."""
    start: int = 0
    """Where the piece begins in the document."""
    end: int = 0


def balanced(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """The runs of pieces between tags without a partner; in each run, every element is closed where it should be.

    Tags without a partner, those of elements that overlap, and elements around such a tag are no part of any run.
    """
    boundaries: set[int] = set()
    waiting: list[list[int]] = []  # [index of the tag, whether a boundary stands behind it]
    names: Counter[str] = Counter()

    def boundary(*indices: int) -> None:
        boundaries.update(indices)
        if waiting:
            waiting[-1][1] = True

    for index, piece in enumerate(pieces):
        if piece.kind == "open":
            waiting.append([index, False])
            names[piece.name] += 1
        elif piece.kind == "close":
            if not names[piece.name]:
                boundary(index)
                continue
            place = next(at for at in reversed(range(len(waiting))) if pieces[waiting[at][0]].name == piece.name)
            names.subtract(pieces[each].name for each, _ in waiting[place:])
            lost = waiting[place + 1 :]
            start, is_broken = waiting[place]
            del waiting[place:]
            if lost or is_broken:
                boundary(start, index, *(each for each, _ in lost))
    boundaries.update(each for each, _ in waiting)
    edges = [-1, *sorted(boundaries), len(pieces)]
    return [list(pieces[first + 1 : last]) for first, last in pairwise(edges) if last > first + 1]


@dataclass(eq=False)
class Mark:
    """An element, or an atom, of a segment: which characters of its text it holds."""

    first: int
    """The index of its first piece."""
    last: int
    """The index of its last piece."""
    start: int
    end: int
    parent: "Mark | None" = field(default=None, repr=False)
    depth: int = 0
    is_atom: bool = False
    space_before: bool = False
    """Whether whitespace separates it from the text before it."""
    space_after: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether it holds no characters."""
        return self.end <= self.start


@dataclass(frozen=True)
class Marked:
    """The text of a segment, with single spaces and in NFC, and its elements and atoms."""

    pieces: Sequence[Piece]
    text: str
    marks: list[Mark]
    """In the order in which they begin."""
    before: str
    """The whitespace in front of the text."""
    after: str


def marked(pieces: Sequence[Piece]) -> Marked:
    """Read the pieces of a segment in which every element is closed."""
    text: list[str] = []
    marks: list[Mark] = []
    waiting: list[Mark] = []
    fresh: list[Mark] = []  # begun, and still without characters
    has_space = False
    following = _following(pieces)
    names = _names("".join(piece.content for piece in pieces if piece.kind == "text"))

    def add(letters: str) -> None:
        nonlocal has_space
        for letter in letters:
            if letter.isspace():
                has_space = True
                continue
            if has_space and text:
                text.append(" ")
            has_space = False
            for mark in fresh:
                mark.start = len(text)
            fresh.clear()
            text.append(letter)

    for index, piece in enumerate(pieces):
        if piece.kind == "text":
            add(unicodedata.normalize("NFC", piece.content))
            continue
        if piece.kind == "close":
            mark = waiting.pop()
            mark.last, mark.end, mark.space_after = index, len(text), following[index + 1].isspace()
            if mark in fresh:
                fresh.remove(mark)
            continue
        parent = waiting[-1] if waiting else None
        mark = Mark(index, index, len(text), len(text), parent, len(waiting), piece.kind == "atom", has_space)
        marks.append(mark)
        if piece.kind == "open":
            waiting.append(mark)
            fresh.append(mark)
            continue
        mark.space_after = following[index + 1].isspace()
        touches = bool(text and not has_space and text[-1].isalnum()) or following[index + 1].isalnum()
        if piece.is_word and not touches:
            fresh.append(mark)
            add(next(names))
            mark.end = len(text)
    return Marked(pieces, "".join(text), marks, _edge(pieces[0]), _edge(pieces[-1], at_end=True) if text else "")


def _names(text: str) -> Iterator[str]:
    """Names that models copy, and that a text does not have."""
    return (name for number in count(1) if (name := f"X{number}") not in text)


def _following(pieces: Sequence[Piece]) -> list[str]:
    """For each piece, and the end, the first character of the text from there on."""
    found = [""]
    for piece in reversed(pieces):
        found.append(piece.content[:1] if piece.kind == "text" and piece.content else found[-1])
    return found[::-1]


def _edge(piece: Piece, *, at_end: bool = False) -> str:
    """The whitespace at the beginning or end of a segment."""
    if piece.kind != "text":
        return ""
    kept = piece.content.rstrip() if at_end else piece.content.lstrip()
    return piece.content[len(kept) :] if at_end else piece.content[: len(piece.content) - len(kept)]
