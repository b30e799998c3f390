"""Stories: sentences in which a word refers to an earlier noun, with the noun that it refers to.

    the animal did n't cross the street because it was too tired .

*It* is the animal, and *wide* instead of *tired* would make it the street. Someone who reads from left to right knows
this at *tired*; someone who sees the whole sentence knows it at *it*. A link therefore has two positions, the word that
refers to the noun and the first word at which the antecedent is known, and a reader is scored at the one that its
direction allows.

- Pronouns are *it*, *he*, *she* and *they*. Where number and gender leave one noun, the pronoun itself decides;
  elsewhere what is said with *too* does, which fits one of the nouns alone: an animal is tired, a street is wide.
- Verbs agree at a distance: in *the cars that the old man saw near the bridge are rusty*, only the subject has the
  number of the verb.
- A sentence has two to four nouns of different kinds. The antecedent is any of them; the nearest noun is right less
  than half of the time.

What a reader learns is `tags`: at the position where it can know, it names the noun; at all other words it says "-".
Nothing tells it where to look.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import Literal

from regard.worlds.described import Described, check_count, described
from regard.worlds.splits import EIGHTY, check_split, split_of

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
"""Predicates after `too`, for each kind of noun; those of people fit men and women alike."""
EPITHETS = ("old", "young", "small", "large", "famous", "strange", "other", "grey", "white", "quiet", "lost", "nice")
"""Adjectives that fit every noun, and so give no clue."""
PREPOSITIONS = ("near", "behind", "beside", "with", "next to", "in front of")
TRANSITIVE = ("cross", "see", "reach", "like", "notice", "avoid", "find", "leave", "watch", "remember", "touch", "want")
PAST = (
    "crossed", "saw", "reached", "liked", "noticed", "avoided", "found", "left", "watched", "remembered", "touched",
    "wanted",
)  # fmt: skip
OPENINGS = ("yesterday", "this morning", "last week", "in the end", "of course")
CLOSINGS = ("today", "again", "as always", "they say", "I think")
PRONOUNS: dict[Kind, str] = {"man": "he", "woman": "she"}
"""The pronouns of men and women; all other nouns are *it*, and plurals *they*."""
NONE = "-"
"""The tag of a word that refers to no noun."""
Direction = Literal["forward", "both"]
_SHARE_PRONOUNS = 0.7
_SHARE_PLURALS = 0.35


@dataclass(frozen=True)
class Noun:
    """A noun as it is written in a sentence, with its kind and number."""

    word: str
    kind: Kind
    plural: bool

    @property
    def pronoun(self) -> str:
        """The pronoun for this noun."""
        return "they" if self.plural else PRONOUNS.get(self.kind, "it")

    def fits(self, predicate: str) -> bool:
        """Whether the predicate fits this noun."""
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


@dataclass(frozen=True)
class Link:
    """A word that refers to an earlier noun; positions are counted from 0."""

    word: int
    """The pronoun, or the verb that agrees with its subject."""
    antecedent: int
    """The noun that it refers to."""
    known_at: int
    """The first position at which the words so far leave only this noun: `word`, or a later one that decides."""
    kind: Literal["pronoun", "agreement"]

    def position(self, direction: Direction) -> int:
        """Where a reader can know the antecedent: at `known_at` left to right, at `word` itself both ways."""
        return self.known_at if direction == "forward" else self.word


@dataclass(frozen=True)
class Story:
    """One sentence, split into words, and its link."""

    words: tuple[str, ...]
    link: Link

    @property
    def text(self) -> str:
        """The sentence."""
        return " ".join(self.words)

    def tags(self, direction: Direction) -> tuple[str, ...]:
        """For each word, the noun that it refers to, at the position where a reader can know it; "-" elsewhere."""
        tags = [NONE] * len(self.words)
        tags[self.link.position(direction)] = self.words[self.link.antecedent]
        return tuple(tags)


@dataclass(frozen=True)
class Statistics(Described):
    """Statistics of a sample of sentences; `rows` describes each number."""

    vocabulary: int = described("different words in the sample")
    mean_length: float = described("words per sentence, on average")
    mean_distance: float = described("words from the antecedent to the word that goes back to it, on average")
    known_later: float = described("fraction of pronouns whose antecedent only a later word decides")
    nearest_noun: float = described(
        "fraction of antecedents that are the nearest noun before: the score of a simple rule"
    )
    first_noun: float = described(
        "fraction of antecedents that are the first noun of the sentence: another simple rule"
    )
    test_overlap: int = described("sentences of a test sample that occur in the training sample; 0 is intended")


def stories(*, split: str = "train", seed: int = 0) -> Iterator[Story]:
    """Generate an endless stream of sentences. The same seed gives the same ones; a sentence is in one split only."""
    check_split("stories", split)
    return _generate(split, seed)


def statistics(*, count: int = 2000, seed: int = 0) -> Statistics:
    """Measure `count` training sentences, and their overlap with as many test sentences."""
    check_count(count)
    sample = list(islice(stories(seed=seed), count))
    pronouns = [story for story in sample if story.link.kind == "pronoun"]
    texts = {story.text for story in sample}
    nouns = [[index for index, word in enumerate(story.words) if is_noun(word)] for story in sample]
    nearest = [
        max(index for index in indices if index < story.link.word) for story, indices in zip(sample, nouns, strict=True)
    ]
    return Statistics(
        vocabulary=len({word for story in sample for word in story.words}),
        mean_length=sum(len(story.words) for story in sample) / count,
        mean_distance=sum(story.link.word - story.link.antecedent for story in sample) / count,
        known_later=sum(story.link.known_at > story.link.word for story in pronouns) / max(1, len(pronouns)),
        nearest_noun=sum(s.link.antecedent == index for s, index in zip(sample, nearest, strict=True)) / count,
        first_noun=sum(s.link.antecedent == indices[0] for s, indices in zip(sample, nouns, strict=True)) / count,
        test_overlap=sum(story.text in texts for story in islice(stories(split="test", seed=seed), count)),
    )


_ALL_NOUNS = frozenset(form for words in NOUNS.values() for word in words for form in (word, plural_of(word)))


def is_noun(word: str) -> bool:
    """Whether a word of a story is a noun."""
    return word in _ALL_NOUNS


def _generate(split: str, seed: int) -> Iterator[Story]:
    random = Random(f"{split} {seed}")  # noqa: S311 - sentences, not secrets
    while True:
        story = _pronoun(random) if random.random() < _SHARE_PRONOUNS else _agreement(random)
        if story is not None and split_of(story.text, EIGHTY) == split:
            yield story


class _Sentence:
    """A sentence that is being generated, and the positions of its nouns."""

    def __init__(self, random: Random) -> None:
        self.random, self.words = random, list[str]()
        self.nouns: list[tuple[int, Noun]] = []

    def add(self, phrase: str) -> None:
        self.words += phrase.split()

    def add_noun(self, noun: Noun) -> None:
        """The noun with its article and perhaps an epithet."""
        self.add("the")
        if self.random.random() < 0.4:
            self.add(self.random.choice(EPITHETS))
        self.nouns.append((len(self.words), noun))
        self.add(noun.word)

    def candidates(self, pronoun: str, predicate: str | None = None) -> list[int]:
        """The positions of the nouns that a pronoun and its predicate can refer to."""
        return [
            position
            for position, noun in self.nouns
            if noun.pronoun == pronoun and (predicate is None or noun.fits(predicate))
        ]


def _pronoun(random: Random) -> Story | None:
    """the animal did n't cross the street near the old couch because it was too tired ."""
    nouns = _draw_nouns(random, random.choice((2, 2, 3, 3, 4)))
    antecedent = random.randrange(len(nouns))
    sentence = _Sentence(random)
    if random.random() < 0.25:
        sentence.add(random.choice(OPENINGS))
    sentence.add_noun(nouns[0])
    middle = len(nouns) - 2
    before = random.randint(0, middle)
    for noun in nouns[1 : 1 + before]:
        sentence.add(random.choice(PREPOSITIONS))
        sentence.add_noun(noun)
    verb = random.choice(TRANSITIVE)
    sentence.add(f"did n't {verb}" if random.random() < 0.6 else PAST[TRANSITIVE.index(verb)])
    for number, noun in enumerate(nouns[1 + before :]):
        if number:
            sentence.add(random.choice(PREPOSITIONS))
        sentence.add_noun(noun)
    chosen = nouns[antecedent]
    predicate = random.choice(PREDICATES[chosen.kind])
    sentence.add("because")
    position = len(sentence.words)
    sentence.add(f"{chosen.pronoun} {'were' if chosen.plural else 'was'} too {predicate}")
    known_at = len(sentence.words) - 1
    if len(sentence.candidates(chosen.pronoun, predicate)) != 1:
        return None
    if len(sentence.candidates(chosen.pronoun)) == 1:
        known_at = position
    return _finished(sentence, Link(position, sentence.nouns[antecedent][0], known_at, "pronoun"))


def _agreement(random: Random) -> Story | None:
    """the keys that the man saw near the old table are rusty ."""
    nouns = _draw_nouns(random, random.choice((2, 3, 3)))
    head, *others = nouns
    # Only the subject has the number of the verb, so that the verb decides.
    others = [draw_noun(random, noun.kind, not head.plural) for noun in others]
    sentence = _Sentence(random)
    if random.random() < 0.25:
        sentence.add(random.choice(OPENINGS))
    sentence.add_noun(head)
    if random.random() < 0.5:
        sentence.add("that")
        sentence.add_noun(others[0])
        sentence.add(random.choice(PAST))
        others = others[1:]
    for noun in others:
        sentence.add(random.choice(PREPOSITIONS))
        sentence.add_noun(noun)
    position = len(sentence.words)
    sentence.add(f"{'are' if head.plural else 'is'} {random.choice(PREDICATES[head.kind])}")
    return _finished(sentence, Link(position, sentence.nouns[0][0], position, "agreement"))


def _finished(sentence: _Sentence, link: Link) -> Story:
    if sentence.random.random() < 0.25:
        sentence.add(f", {sentence.random.choice(CLOSINGS)}")
    sentence.add(".")
    return Story(tuple(sentence.words), link)


def _draw_nouns(random: Random, count: int) -> list[Noun]:
    """Nouns of different kinds, mostly of one number, so that a pronoun alone seldom decides."""
    kinds: list[Kind] = random.sample(list(NOUNS), count)
    plural = random.random() < _SHARE_PLURALS
    return [draw_noun(random, kind, plural if random.random() < 0.85 else not plural) for kind in kinds]
