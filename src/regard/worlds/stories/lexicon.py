"""The words of the world: nouns of several kinds, what can be said of each kind, and what joins them."""

from dataclasses import dataclass
from random import Random
from typing import Literal

Kind = Literal["animal", "way", "food", "machine", "furniture", "man", "woman"]
IRREGULAR = {
    "man": "men", "woman": "women", "mouse": "mice", "goose": "geese", "wolf": "wolves", "loaf": "loaves",
    "shelf": "shelves",
}  # fmt: skip
NOUNS: dict[Kind, tuple[str, ...]] = {
    "animal": (
        "animal", "dog", "cat", "horse", "cow", "goat", "sheepdog", "mouse", "goose", "wolf", "bear", "rabbit", "hen",
        "donkey", "monkey", "tiger",
    ),
    "way": (
        "street", "road", "path", "bridge", "alley", "lane", "track", "river", "valley", "square", "tunnel", "field",
    ),
    "food": (
        "soup", "cake", "pie", "loaf", "dish", "sandwich", "salad", "sausage", "stew", "omelette", "curry", "pudding",
    ),
    "machine": (
        "car", "bus", "tractor", "radio", "printer", "boat", "motor", "lorry", "train", "lift", "clock", "pump",
    ),
    "furniture": (
        "table", "chair", "bench", "shelf", "couch", "desk", "carpet", "cupboard", "lamp", "mirror", "bed", "curtain",
    ),
    "man": ("man", "king", "prince", "actor", "waiter", "uncle", "brother", "grandfather", "monk", "duke"),
    "woman": ("woman", "queen", "princess", "actress", "waitress", "aunt", "sister", "grandmother", "nun", "duchess"),
}  # fmt: skip
PREDICATES: dict[Kind, tuple[str, ...]] = {
    "animal": ("tired", "hungry", "frightened", "sleepy", "thirsty", "tame"),
    "way": ("wide", "steep", "icy", "crowded", "narrow", "muddy"),
    "food": ("salty", "stale", "sweet", "spicy", "greasy", "bland"),
    "machine": ("rusty", "noisy", "slow", "complicated", "expensive", "unreliable"),
    "furniture": ("dusty", "heavy", "wobbly", "ugly", "fragile", "clumsy"),
    "man": ("proud", "shy", "angry", "polite", "jealous", "lazy"),
    "woman": ("proud", "shy", "angry", "polite", "jealous", "lazy"),
}
"""What can be said of a noun with `too`: a word belongs to one kind, or to men and women alike."""
EPITHETS = ("old", "young", "small", "large", "famous", "strange", "other", "grey", "white", "quiet", "lost", "nice")
"""Adjectives that fit every noun, and so tell nothing."""
PREPOSITIONS = ("near", "behind", "beside", "with", "next to", "in front of")
TRANSITIVE = ("cross", "see", "reach", "like", "notice", "avoid", "find", "leave", "watch", "remember", "touch", "want")
PAST = (
    "crossed", "saw", "reached", "liked", "noticed", "avoided", "found", "left", "watched", "remembered", "touched",
    "wanted",
)  # fmt: skip
OPENINGS = ("yesterday", "this morning", "last week", "in the end", "of course")
CLOSINGS = ("today", "again", "as always", "they say", "I think")
PRONOUNS: dict[Kind, str] = {"man": "he", "woman": "she"}
"""Of all other kinds it is *it*, and of several *they*."""


@dataclass(frozen=True)
class Noun:
    """A noun as it is written in a sentence, with its kind and number."""

    word: str
    kind: Kind
    plural: bool

    @property
    def pronoun(self) -> str:
        """The pronoun that stands for it."""
        return "they" if self.plural else PRONOUNS.get(self.kind, "it")

    def fits(self, predicate: str) -> bool:
        """Whether the predicate can be said of it."""
        return predicate in PREDICATES[self.kind]


def draw_noun(random: Random, kind: Kind, plural: bool) -> Noun:
    """A noun of this kind and number."""
    word = random.choice(NOUNS[kind])
    return Noun(plural_of(word) if plural else word, kind, plural)


def plural_of(word: str) -> str:
    """The plural of a noun."""
    if word in IRREGULAR:
        return IRREGULAR[word]
    if word.endswith("y") and word[-2] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith(("s", "sh", "ch")) else f"{word}s"
