"""Parallel text with gold links: sentence pairs without end, and what can be measured of them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from random import Random

from regard.errors import OptionError
from regard.worlds.babel import english, french, german, persian
from regard.worlds.babel.ambiguity import neighbours
from regard.worlds.babel.drawing import Draw
from regard.worlds.babel.meaning import SPLITS, Sentence, split_of, template
from regard.worlds.babel.words import Word

LANGUAGES = ("en", "fr", "de", "fa")
LONGEST = 60
Links = frozenset[tuple[int, int]]
_RENDER: dict[str, Callable[[Sentence], list[Word]]] = {
    "en": english.render,
    "fr": french.render,
    "de": german.render,
    "fa": persian.render,
}
# A sentence of n clauses has about 8 n + 1.5 words, in each of the languages; by this n is chosen.
_CLAUSE, _FRAME = 8.0, 1.5
# How many meanings the templates are counted over.
_MEANINGS = 20_000


@dataclass(frozen=True)
class Pair:
    """A sentence in two languages; links are (source index, target index), and the possible contain the sure."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    sure: Links
    possible: Links


@dataclass(frozen=True)
class Statistics:
    """What `statistics` measures of a direction."""

    templates: int
    """Different structures among 20,000 meanings of one to three clauses: a lower bound of how many there are."""
    source_vocabulary: int
    """Different source words in the sample."""
    target_vocabulary: int
    """Different target words in the sample."""
    source_length: float
    """Words of a source sentence, on average."""
    target_length: float
    """Words of a target sentence, on average."""
    crossing: float
    """The share of sure links that cross at least one other sure link."""
    diagonal_error: float
    """The alignment error rate of linking source word i of n to target word round(i * m / n) of m."""
    overlap: int
    """Source sentences of the test sample that are in the training sample."""
    ambiguity: float
    """The share of meanings that sound like another one in the source language, and unlike it in the target."""


def pairs(
    source: str, target: str, *, split: str = "train", seed: int = 0, min_words: int = 3, max_words: int = 20
) -> Iterator[Pair]:
    """Sentence pairs without end, the source side `min_words` to `max_words` long (the full stop counts).

    The same seed gives the same pairs. A meaning belongs to one split only, whatever the seed.
    """
    _check(source, target, split, min_words, max_words)
    drawn = _drawn(source, split, seed, min_words, max_words)
    return (link(words, _RENDER[target](meaning)) for meaning, words in drawn)


def translate(meaning: Sentence, source: str, target: str) -> Pair:
    """A meaning in two languages, with its links."""
    return link(_RENDER[source](meaning), _RENDER[target](meaning))


def link(source: list[Word], target: list[Word]) -> Pair:
    """The gold links of a rendered meaning.

    Sure: both words realise the same node. Possible besides, where one of the two has no sure link: one of them
    realises a node that the other serves (an article its noun, an auxiliary its verb, ...), or neither has a sure
    link and both serve the same node.
    """
    realised: dict[int, list[int]] = {}
    for j, (_, core, _) in enumerate(target):
        for node in core:
            realised.setdefault(node, []).append(j)
    sure = {(i, j) for i, (_, core, _) in enumerate(source) for node in core for j in realised.get(node, ())}
    linked_source, linked_target = {i for i, _ in sure}, {j for _, j in sure}
    possible = set(sure)
    served: dict[int, list[int]] = {}
    for j, (_, _, near) in enumerate(target):
        for node in near:
            served.setdefault(node, []).append(j)
    for i, (_, core, near) in enumerate(source):
        free = i not in linked_source
        for node in core:
            possible.update((i, j) for j in served.get(node, ()) if free or j not in linked_target)
        if near and free:
            for node in near:
                possible.update((i, j) for j in realised.get(node, ()))
                possible.update((i, j) for j in served.get(node, ()) if j not in linked_target)
        elif near:
            for node in near:
                possible.update((i, j) for j in realised.get(node, ()) if j not in linked_target)
    return Pair(
        tuple([word[0] for word in source]), tuple([word[0] for word in target]), frozenset(sure), frozenset(possible)
    )


def crossing(links: Links) -> int:
    """How many of the links cross another: (i, j) and (k, l) with i < k and j > l."""
    return sum(any((i - k) * (j - l) < 0 for k, l in links) for i, j in links)  # noqa: E741


def diagonal(source: int, target: int) -> Links:
    """Word i of n linked to word round(i * m / n) of m: what can be had without reading."""
    return frozenset((i, min(target - 1, round(i * target / source))) for i in range(source))


def statistics(source: str, target: str, *, count: int = 2000, seed: int = 0) -> Statistics:
    """Measures `count` training pairs of a direction, and their overlap with as many test pairs."""
    if count < 1:
        raise OptionError(f"statistics needs at least one pair to measure; got count={count}.")
    sample = list(islice(pairs(source, target, seed=seed), count))
    test = islice(pairs(source, target, split="test", seed=seed), count)
    sure = sum(len(pair.sure) for pair in sample)
    hit = guessed = 0
    for pair in sample:
        guess = diagonal(len(pair.source), len(pair.target))
        hit += len(guess & pair.sure) + len(guess & pair.possible)
        guessed += len(guess)
    sources = {pair.source for pair in sample}
    return Statistics(
        templates=_templates(seed),
        source_vocabulary=len({word for pair in sample for word in pair.source}),
        target_vocabulary=len({word for pair in sample for word in pair.target}),
        source_length=sum(len(pair.source) for pair in sample) / count,
        target_length=sum(len(pair.target) for pair in sample) / count,
        crossing=sum(crossing(pair.sure) for pair in sample) / sure,
        diagonal_error=1 - hit / (guessed + sure),
        overlap=sum(pair.source in sources for pair in test),
        ambiguity=ambiguity(source, target, count=count, seed=seed),
    )


def ambiguity(source: str, target: str, *, count: int = 500, seed: int = 0) -> float:
    """The share of meanings whose source sentence can also mean something that the target language says otherwise.

    What it can also mean is looked for among the meanings of the world that differ in one attribute. A share of 0 says
    that a translator can be right every time; the others are the share that no translator can be sure of.
    """
    render = _RENDER[target]
    alike = _alike(source, count, seed)
    return sum(any(_forms(render, other) != _forms(render, each) for other in others) for each, others in alike) / count


@cache
def _alike(language: str, count: int, seed: int) -> list[tuple[Sentence, list[Sentence]]]:
    """Meanings, each with its neighbours that sound the same."""
    found = []
    for meaning, words in islice(_drawn(language, "train", seed, 3, 20), count):
        said = [form for form, _, _ in words]
        found.append((meaning, [each for each in neighbours(meaning) if _forms(_RENDER[language], each) == said]))
    return found


def _forms(render: Callable[[Sentence], list[Word]], meaning: Sentence) -> list[str]:
    return [form for form, _, _ in render(meaning)]


@cache
def _templates(seed: int) -> int:
    draw = Draw(Random(seed))  # noqa: S311
    return len({template(draw.sentence(1 + each % 3)) for each in range(_MEANINGS)})


def _drawn(source: str, split: str, seed: int, min_words: int, max_words: int) -> Iterator[tuple[Sentence, list[Word]]]:
    """Meanings, each with its words in the source language."""
    chance = Random(seed)  # noqa: S311
    draw = Draw(chance)
    render = _RENDER[source]
    while True:
        wanted = min_words + chance.random() * (max_words - min_words)
        meaning = draw.sentence(max(1, round((wanted - _FRAME) / _CLAUSE)))
        words = render(meaning)
        if min_words <= len(words) <= max_words and split_of(meaning) == split:
            yield meaning, words


def _check(source: str, target: str, split: str, min_words: int, max_words: int) -> None:
    for name, value in (("source", source), ("target", target)):
        if value not in LANGUAGES:
            raise OptionError(f"babel has no {name} language {value!r}; choose from {', '.join(LANGUAGES)}.")
    if split not in SPLITS:
        raise OptionError(f"babel has no split {split!r}; choose from {', '.join(SPLITS)}.")
    if not (1 <= min_words <= max_words and 3 <= max_words <= LONGEST):
        raise OptionError(
            f"babel makes sentences of 3 to {LONGEST} words, the full stop counted; "
            f"got min_words={min_words}, max_words={max_words}."
        )
