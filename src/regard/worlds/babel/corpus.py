"""An endless stream of sentence pairs with gold links, and statistics of them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from random import Random

from regard.errors import OptionError
from regard.metrics.alignment import alignment_error_rate, diagonal
from regard.worlds.babel import english, french, german, persian
from regard.worlds.babel.closed_words import LANGUAGES, Word
from regard.worlds.babel.meaning import Sentence, key, template
from regard.worlds.babel.sampling import Sampler
from regard.worlds.described import Described, check_count, described
from regard.worlds.splits import NINETY, check_split, split_of

MAX_WORDS = 60
Links = frozenset[tuple[int, int]]
RENDERERS: dict[str, Callable[[Sentence], list[Word]]] = {
    "en": english.render,
    "fr": french.render,
    "de": german.render,
    "fa": persian.render,
}
# A sentence of n clauses has about 8 n + 1.5 words in each language; the number of clauses is chosen by this.
_WORDS_PER_CLAUSE, _OTHER_WORDS = 8.0, 1.5
# Number of meanings among which templates are counted.
_NUM_MEANINGS = 20_000


@dataclass(frozen=True)
class Pair:
    """A sentence in two languages. Links are (source index, target index); `possible` includes `sure`."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    sure: Links
    possible: Links


@dataclass(frozen=True)
class Statistics(Described):
    """Statistics of a sample of sentence pairs of one direction; `rows` describes each number."""

    templates: int = described(
        "different sentence structures among 20,000 meanings of one to three clauses: a lower bound of all structures"
    )
    source_vocabulary: int = described("different source words in the sample")
    target_vocabulary: int = described("different target words in the sample")
    mean_source_length: float = described("words per source sentence, on average")
    mean_target_length: float = described("words per target sentence, on average")
    crossing_links: float = described(
        "fraction of sure word links that cross at least one other: how much the word orders differ"
    )
    diagonal_error_rate: float = described(
        "alignment error rate of linking words along the diagonal: the score without reading; 0 is perfect"
    )
    test_overlap: int = described("source sentences of a test sample that occur in the training sample; 0 is intended")


def pairs(
    source: str, target: str, *, split: str = "train", seed: int = 0, min_words: int = 3, max_words: int = 20
) -> Iterator[Pair]:
    """Generate an endless stream of sentence pairs whose source side has `min_words` to `max_words` words.

    The full stop counts as a word. The same seed gives the same pairs. A meaning belongs to one split only, for all
    seeds.
    """
    _check(source, target, split, min_words, max_words)
    meanings = _meanings(source, split, seed, min_words, max_words)
    return (link(words, RENDERERS[target](meaning)) for meaning, words in meanings)


def link(source: list[Word], target: list[Word]) -> Pair:
    """Return the pair of two renderings of one meaning, with its gold links.

    A link is sure if both words express the same node. It is possible if one of the words has no sure link and
    expresses a node that the other supports, or the reverse (an article supports its noun, an auxiliary its verb), or
    if neither has a sure link and both support the same node.
    """
    expressed: dict[int, list[int]] = {}
    for j, (_, core, _) in enumerate(target):
        for node in core:
            expressed.setdefault(node, []).append(j)
    sure = {(i, j) for i, (_, core, _) in enumerate(source) for node in core for j in expressed.get(node, ())}
    linked_source, linked_target = {i for i, _ in sure}, {j for _, j in sure}
    possible = set(sure)
    supported: dict[int, list[int]] = {}
    for j, (_, _, near) in enumerate(target):
        for node in near:
            supported.setdefault(node, []).append(j)
    for i, (_, core, near) in enumerate(source):
        free = i not in linked_source
        for node in core:
            possible.update((i, j) for j in supported.get(node, ()) if free or j not in linked_target)
        if near and free:
            for node in near:
                possible.update((i, j) for j in expressed.get(node, ()))
                possible.update((i, j) for j in supported.get(node, ()) if j not in linked_target)
        elif near:
            for node in near:
                possible.update((i, j) for j in expressed.get(node, ()) if j not in linked_target)
    return Pair(
        tuple([word[0] for word in source]), tuple([word[0] for word in target]), frozenset(sure), frozenset(possible)
    )


def crossing(links: Links) -> int:
    """Count the links that cross at least one other: (i, j) and (k, l) with i < k and j > l."""
    return sum(any((i - k) * (j - l) < 0 for k, l in links) for i, j in links)  # noqa: E741


def statistics(source: str, target: str, *, count: int = 2000, seed: int = 0) -> Statistics:
    """Measure `count` training pairs of a direction, and their overlap with as many test pairs."""
    check_count(count)
    sample = list(islice(pairs(source, target, seed=seed), count))
    test = islice(pairs(source, target, split="test", seed=seed), count)
    baseline = alignment_error_rate(
        [diagonal(len(pair.source), len(pair.target)) for pair in sample],
        [pair.sure for pair in sample],
        [pair.possible for pair in sample],
    )
    sources = {pair.source for pair in sample}
    return Statistics(
        templates=_templates(seed),
        source_vocabulary=len({word for pair in sample for word in pair.source}),
        target_vocabulary=len({word for pair in sample for word in pair.target}),
        mean_source_length=sum(len(pair.source) for pair in sample) / count,
        mean_target_length=sum(len(pair.target) for pair in sample) / count,
        crossing_links=sum(crossing(pair.sure) for pair in sample) / baseline.sure,
        diagonal_error_rate=baseline.error_rate,
        test_overlap=sum(pair.source in sources for pair in test),
    )


@cache
def _templates(seed: int) -> int:
    sampler = Sampler(Random(seed))  # noqa: S311
    return len({template(sampler.sentence(1 + each % 3)) for each in range(_NUM_MEANINGS)})


def _meanings(
    source: str, split: str, seed: int, min_words: int, max_words: int
) -> Iterator[tuple[Sentence, list[Word]]]:
    """Sample meanings of a split, each with its words in the source language."""
    random = Random(seed)  # noqa: S311
    sampler = Sampler(random)
    render = RENDERERS[source]
    while True:
        length = min_words + random.random() * (max_words - min_words)
        meaning = sampler.sentence(max(1, round((length - _OTHER_WORDS) / _WORDS_PER_CLAUSE)))
        words = render(meaning)
        if min_words <= len(words) <= max_words and split_of(key(meaning), NINETY) == split:
            yield meaning, words


def _check(source: str, target: str, split: str, min_words: int, max_words: int) -> None:
    for name, value in (("source", source), ("target", target)):
        if value not in LANGUAGES:
            raise OptionError(f"babel has no {name} language {value!r}; choose from {', '.join(LANGUAGES)}.")
    check_split("babel", split)
    if not (1 <= min_words <= max_words and 3 <= max_words <= MAX_WORDS):
        raise OptionError(
            f"babel generates sentences of 3 to {MAX_WORDS} words, the full stop included; "
            f"got min_words={min_words}, max_words={max_words}."
        )
