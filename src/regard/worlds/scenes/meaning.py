"""Meanings: what a scene shows, and the English caption that describes it.

Group   = number, size, colour, shape          "two small red stars"
Meaning = relation, (group, ...)              "two small red stars left of a blue circle"
"""

from typing import NamedTuple

SIZES = ("small", "medium", "large")
COLOURS = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "black")
SHAPES = {
    "circle": "circles",
    "square": "squares",
    "triangle": "triangles",
    "star": "stars",
    "cross": "crosses",
    "heart": "hearts",
    "ring": "rings",
    "moon": "moons",
}
NUMBERS = ("a", "two", "three", "four")
PLACES = (
    ("at the top left", "at the top", "at the top right"),
    ("on the left", "in the middle", "on the right"),
    ("at the bottom left", "at the bottom", "at the bottom right"),
)
BESIDE = ("left of", "right of", "above", "below")
BETWEEN, SEVERAL = "between", ""
VOCABULARY = tuple(
    dict.fromkeys(
        [*NUMBERS, "an", *SIZES[::2], *COLOURS, *SHAPES, *SHAPES.values(), "and"]
        + [word for form in [*BESIDE, BETWEEN, *(place for row in PLACES for place in row)] for word in form.split()]
    )
)
"""Every word that can occur in a caption."""


class Group(NamedTuple):
    """Objects of one kind: how many, how large (an index of SIZES), and what they are."""

    number: int
    size: int
    colour: str
    shape: str


class Meaning(NamedTuple):
    """Groups in the order of the caption, and their relation: a position, one of BESIDE, BETWEEN or SEVERAL."""

    relation: str
    groups: tuple[Group, ...]

    @property
    def caption(self) -> str:
        """The caption, which also decides the split."""
        return " ".join(word for word, _ in describe(self))


# A word, and the index of the group that it refers to; None for words that describe relations.
Word = tuple[str, int | None]


def describe(meaning: Meaning) -> list[Word]:
    """Return the words of the caption."""
    relation: list[Word] = [(word, None) for word in meaning.relation.split()]
    phrases = [_phrase(group, number) for number, group in enumerate(meaning.groups)]
    if meaning.relation == BETWEEN:
        return [*phrases[0], *relation, *phrases[1], ("and", None), *phrases[2]]
    return [*phrases[0], *relation, *(phrases[1] if len(phrases) > 1 else ())]


def _phrase(group: Group, number: int) -> list[Word]:
    size = "" if SIZES[group.size] == "medium" else SIZES[group.size]
    noun = group.shape if group.number == 1 else SHAPES[group.shape]
    described: list[Word] = [(word, number) for word in (size, group.colour, noun) if word]
    if group.number > 1:
        return [(NUMBERS[group.number - 1], number), *described]
    # An article is not a number: it refers to nothing that can be seen.
    return [("an" if described[0][0][0] in "aeiou" else "a", None), *described]
