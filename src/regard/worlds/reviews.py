"""Reviews: generated documents of which one or two sentences decide the class, among distractors.

    i bought the camera in march .  my sister found the lens awful .  i did not find the screen dull .   -> positive

The rules, by which each document has exactly one correct class:

- Only the author's own verdict counts: a sentence in which "i" judges an aspect of the thing. There are one or two, and
  two agree. A negation in it turns its meaning.
- Opinions of other people, and about other things, use the same words, are as often positive as negative whatever the
  class is, and count nothing. Facts have no opinion at all.

The gold sentences are the author's verdicts; the gold words are their opinion words and negations. Counting opinion
words is therefore not enough: a reader has to find who holds the opinion, and about what.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, repeat
from random import Random
from typing import TypeVar

from regard.errors import OptionError
from regard.worlds.described import Described, check_count, described
from regard.worlds.splits import EIGHTY, check_split, split_of

LABELS = ("negative", "positive")
MAX_SENTENCES = 60

_Item = TypeVar("_Item")
_ASPECTS = {
    "film": ("plot", "acting", "music", "ending", "dialogue", "cast"),
    "hotel": ("room", "breakfast", "bed", "service", "pool", "view"),
    "restaurant": ("soup", "service", "menu", "dessert", "wine", "bread"),
    "camera": ("lens", "screen", "battery", "picture", "menu", "strap"),
    "book": ("plot", "style", "ending", "cover", "pacing", "dialogue"),
    "train": ("seat", "service", "window", "heating", "timetable", "ride"),
}
ADJECTIVES = (
    (
        "awful", "dull", "poor", "terrible", "boring", "weak", "disappointing", "horrible", "bad", "sad", "tiresome",
        "ugly",
    ),
    (
        "great", "lovely", "superb", "wonderful", "charming", "strong", "delightful", "brilliant", "good", "fine",
        "exciting", "fresh",
    ),
)  # fmt: skip
VERBS = (("hated", "regretted", "disliked"), ("loved", "enjoyed", "liked"))
_PEOPLE = ("sister", "brother", "neighbour", "friend", "colleague", "cousin", "teacher", "doctor")
_ADVERBS = ("really", "very", "quite", "rather", "truly")
_TIMES = ("yesterday", "today", "in march", "last week", "on monday", "in the summer", "two days ago")
_FACTS = (
    "the {thing} was opened {time} .",
    "i bought the {thing} {time} .",
    "there are {number} of them in our town .",
    "the {aspect} was changed {time} .",
    "it took {number} hours to get there .",
    "my {person} came with me {time} .",
    "we talked about the {aspect} for {number} minutes .",
    "i paid {number} euros for the {thing} .",
)
_NUMBERS = ("two", "three", "four", "five", "seven", "ten", "twenty", "forty")
_VERDICTS = (
    "i found the {aspect} {adverb} {opinion} .",
    "i did not find the {aspect} {opinion} .",
    "for me the {aspect} was {opinion} .",
    "i think that the {aspect} was {adverb} {opinion} .",
    "i do not think that the {aspect} was {opinion} .",
    "in the end i {verb} the {aspect} .",
    "i {verb} the {thing} .",
)
_OTHERS = (
    "my {person} found the {aspect} {adverb} {opinion} .",
    "my {person} did not find the {aspect} {opinion} .",
    "my {person} {verb} the {thing} .",
    "the {other} next door was {opinion} .",
    "i think that the {other} next door was {adverb} {opinion} .",
    "in the paper they wrote that the {aspect} was {opinion} .",
    "my {person} does not think that the {aspect} was {opinion} .",
)


@dataclass(frozen=True)
class Review:
    """A generated review: its class, and which sentences and words decide it."""

    sentences: tuple[tuple[str, ...], ...]
    label: str
    decisive: tuple[int, ...]
    """The sentences that decide, counted from 0."""
    words: tuple[tuple[int, int], ...]
    """The words that decide, as (sentence, word)."""

    @property
    def text(self) -> str:
        """The review as one line of text."""
        return " ".join(" ".join(sentence) for sentence in self.sentences)


@dataclass(frozen=True)
class Statistics(Described):
    """Statistics of a sample of reviews."""

    mean_sentences: float = described("sentences per review, on average")
    vocabulary: int = described("different words in the sample")
    positive: float = described("fraction of positive reviews")
    counting_accuracy: float = described("accuracy of counting positive and negative words, blind to who says them")
    chance_sentence: float = described("probability that a sentence chosen at random is decisive")
    test_overlap: int = described("reviews of a test sample that occur in the training sample; 0 is intended")


def reviews(
    split: str = "train", *, seed: int = 1, min_sentences: int = 3, max_sentences: int = 10
) -> Iterator[Review]:
    """Generate an endless stream of reviews. The same seed gives the same ones; a review is in one split only."""
    check_split("reviews", split)
    if not 1 <= min_sentences <= max_sentences <= MAX_SENTENCES:
        raise OptionError(
            f"Reviews have 1 to {MAX_SENTENCES} sentences; got min_sentences={min_sentences}, "
            f"max_sentences={max_sentences}."
        )
    random = Random(f"{seed} {split}")  # noqa: S311
    drawn = (_review(random, random.randint(min_sentences, max_sentences)) for _ in repeat(None))
    return (review for review in drawn if split_of(review.text, EIGHTY) == split)


def statistics(count: int = 2000) -> Statistics:
    """Measure `count` training reviews, and their overlap with as many test reviews."""
    check_count(count)
    sample = list(islice(reviews("train"), count))
    test = {review.text for review in islice(reviews("test"), count)}
    signs = {word: 2 * side - 1 for words in (ADJECTIVES, VERBS) for side in (0, 1) for word in words[side]}
    right = 0.0
    for review in sample:
        balance = sum(signs.get(word, 0) for sentence in review.sentences for word in sentence)
        right += 0.5 if balance == 0 else (balance > 0) == (review.label == "positive")
    return Statistics(
        mean_sentences=sum(len(review.sentences) for review in sample) / count,
        vocabulary=len({word for review in sample for sentence in review.sentences for word in sentence}),
        positive=sum(review.label == "positive" for review in sample) / count,
        counting_accuracy=right / count,
        chance_sentence=sum(len(review.decisive) / len(review.sentences) for review in sample) / count,
        test_overlap=len(test & {review.text for review in sample}),
    )


def _review(random: Random, count: int) -> Review:
    thing = _pick(random, tuple(_ASPECTS))
    side = random.randrange(2)
    verdicts = 2 if count > 3 and random.random() < 0.3 else 1
    positions = set(random.sample(range(count), verdicts))
    sentences, words = [], []
    for number in range(count):
        if number in positions:
            sentence, marked = _opinion(random, _VERDICTS, thing, side)
            words += [(number, position) for position in marked]
        elif random.random() < 0.5:
            sentence, _ = _opinion(random, _OTHERS, thing, random.randrange(2))
        else:
            sentence = _filled(random, _pick(random, _FACTS), thing, {})
        sentences.append(tuple(sentence))
    return Review(tuple(sentences), LABELS[side], tuple(sorted(positions)), tuple(words))


def _opinion(random: Random, templates: tuple[str, ...], thing: str, side: int) -> tuple[list[str], list[int]]:
    """A sentence that means this side, and the positions of its opinion words."""
    template = _pick(random, templates)
    negated = " not " in template
    said = 1 - side if negated else side
    values = {"opinion": _pick(random, ADJECTIVES[said]), "verb": _pick(random, VERBS[said])}
    sentence = _filled(random, template, thing, values)
    marked = {values["opinion"], values["verb"], "not"}
    return sentence, [index for index, word in enumerate(sentence) if word in marked]


def _filled(random: Random, template: str, thing: str, values: dict[str, str]) -> list[str]:
    others = tuple(other for other in _ASPECTS if other != thing)
    return template.format(
        thing=thing,
        aspect=_pick(random, _ASPECTS[thing]),
        other=_pick(random, others),
        person=_pick(random, _PEOPLE),
        adverb=_pick(random, _ADVERBS),
        time=_pick(random, _TIMES),
        number=_pick(random, _NUMBERS),
        **values,
    ).split()


def _pick(random: Random, items: tuple[_Item, ...]) -> _Item:
    return items[int(random.random() * len(items))]
