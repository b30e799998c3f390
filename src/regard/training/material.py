"""What a recipe learns from: pairs streamed from their files, split by source sentence, never all in memory."""

import hashlib
import heapq
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from regard.data.text import file_stamp as stamp
from regard.data.text import read_dataset, read_pairs, read_tsv
from regard.data.tokenizer import Tokenizer
from regard.errors import DataError, OptionError
from regard.training.recipe import DataConfig

Pair = tuple[str, str]
Pairs = list[Pair]

TOKENIZER_PAIRS = 1_000_000
"""A tokenizer is trained on at most so many pairs: of a larger corpus, on every n-th."""


class Stream:
    """Pairs that can be read again and again: each pass opens the files anew, so that no pair has to be kept.

    `identity` says what is read: equal identities, equal pairs. It is None where this cannot be told.
    """

    def __init__(
        self, read: Callable[[], Iterable[Pair]], identity: Any, without: frozenset[str] = frozenset()
    ) -> None:
        self._read, self._identity, self._without = read, identity, without

    def __iter__(self) -> Iterator[Pair]:
        return (pair for pair in self._read() if pair[0] not in self._without)

    def leaving_out(self, sources: Iterable[str]) -> "Stream":
        """The same without these source sentences."""
        return Stream(self._read, self._identity, self._without | frozenset(sources))

    @property
    def fingerprint(self) -> str | None:
        """A hash of the identity and of what is left out."""
        if self._identity is None:
            return None
        return hashlib.sha256(json.dumps([self._identity, sorted(self._without)]).encode()).hexdigest()


@dataclass(frozen=True)
class Material:
    """What to train on, to validate with, and to test with."""

    train: Stream
    pairs: int
    """How many pairs the files hold that have words on both sides, held out or not."""
    valid: Pairs
    test: Pairs
    """Maybe none."""


def read_data(config: DataConfig) -> Material:
    """One pass over the training pairs, to count them and to choose what is held out; valid and test are lists."""
    if config.world:
        return _world(config)
    stream, valid, test = _stream(config), _given(config, "valid"), _given(config, "test")
    survey = Survey.of(
        stream,
        test=config.held_out_test if test is None else 0,
        valid=config.held_out if valid is None else 0,
    )
    if not survey.pairs:
        raise DataError("There is nothing to train on: no pair has words on both sides.")
    held_test, held_valid = survey.held_out()
    train = stream.leaving_out(source for source, _ in [*held_test, *held_valid])
    valid, test = (held_valid if valid is None else valid), (held_test if test is None else test)
    return Material(train, survey.pairs, valid, test)


class Survey:
    """What one pass tells: how many pairs there are, and those whose source sentences have the smallest numbers.

    The number of a sentence is made of its own text (SHA-256). Held out are the sentences with the smallest ones, each
    with its first translation: first those of the test, then those of the validation, of each at most one more than a
    tenth of what there is. So the split does not change with the order of the sentences or with how often they come,
    and little with which others there are. Ten times as many sentences as are asked for are kept during the pass,
    which is enough to know whether a tenth is less.
    """

    def __init__(self, *, test: int, valid: int) -> None:
        self.pairs = 0
        self._test, self._valid = test, valid
        self._room = 10 * (test + valid) + test
        self._largest: list[int] = []  # negative, since heapq has the smallest first
        self._smallest: dict[int, Pair] = {}

    @classmethod
    def of(cls, pairs: Iterable[Pair], *, test: int = 0, valid: int = 0) -> "Survey":
        """Go through the pairs."""
        survey = cls(test=test, valid=valid)
        for pair in _filled(pairs):
            survey.pairs += 1
            if survey._room:
                survey._see(pair)
        return survey

    def held_out(self) -> tuple[Pairs, Pairs]:
        """The pairs of the test, and those of the validation; sorted by source."""
        order = sorted(self._smallest)
        test = min(self._test, len(order) // 10 + 1)
        valid = min(self._valid, (len(order) - test) // 10 + 1)
        # With every place taken, there may be more sentences than these.
        if len(order) < self._room and test + valid >= len(order):
            raise OptionError(
                f"{len(order)} different source sentences are too few to hold some out. Give valid_source."
            )
        held = [self._smallest[number] for number in order[: test + valid]]
        return sorted(held[:test]), sorted(held[test:])

    def _see(self, pair: Pair) -> None:
        number = int.from_bytes(hashlib.sha256(pair[0].encode("utf-8", "surrogatepass")).digest())
        if number in self._smallest:
            return
        if len(self._largest) < self._room:
            heapq.heappush(self._largest, -number)
        elif number < -self._largest[0]:
            del self._smallest[-heapq.heapreplace(self._largest, -number)]
        else:
            return
        self._smallest[number] = pair


def make_tokenizers(config: DataConfig, material: Material) -> tuple[Tokenizer, Tokenizer]:
    """Trained on the training pairs, or on an even sample of them: one for both sides, or one for each."""
    options: dict[str, Any] = {"size": config.vocabulary, "kind": config.tokens, "lowercase": config.lowercase}
    every = max(1, -(-material.pairs // TOKENIZER_PAIRS))

    def sample() -> Iterator[Pair]:
        return islice(_filled(material.train), 0, None, every)

    if config.joint:
        tokenizer = Tokenizer.train((text for pair in sample() for text in pair), **options)
        return tokenizer, tokenizer
    return (
        Tokenizer.train((source for source, _ in sample()), **options),
        Tokenizer.train((target for _, target in sample()), **options),
    )


def _stream(config: DataConfig) -> Stream:
    folder = Path(config.folder)
    if config.pairs:
        path = folder / config.pairs
        return Stream(lambda: read_tsv(path, config.columns), [stamp(path), config.columns])
    if config.source and config.target:
        source, target = folder / config.source, folder / config.target
        return Stream(lambda: read_pairs(source, target), [stamp(source), stamp(target)])
    if config.dataset:
        return _dataset(config, config.dataset_split)
    raise OptionError("Say what to train on: source and target, or pairs, or dataset, or world.")


def _given(config: DataConfig, part: Literal["valid", "test"]) -> Pairs | None:
    """The pairs to validate or to test with, where the recipe names some."""
    source, target = getattr(config, f"{part}_source"), getattr(config, f"{part}_target")
    if source and target:
        return list(_filled(read_pairs(Path(config.folder) / source, Path(config.folder) / target)))
    split = getattr(config, f"dataset_{part}")
    return list(_filled(_dataset(config, split))) if config.dataset and split else None


def _dataset(config: DataConfig, split: str) -> Stream:
    place = Path(config.folder) / config.dataset
    name = str(place) if place.exists() else config.dataset
    # What the hub holds under a name may change, and a folder holds many files: neither is told by a stamp.
    identity = [stamp(place), config.dataset_columns, split] if place.is_file() else None
    return Stream(lambda: read_dataset(name, *config.dataset_columns, split=split), identity)


def _filled(pairs: Iterable[Pair]) -> Iterator[Pair]:
    return ((source, target) for source, target in pairs if source.strip() and target.strip())


def _world(config: DataConfig) -> Material:
    name, _, direction = config.world.partition(":")
    source, _, target = direction.partition("-")
    if name != "babel":
        raise OptionError(f"A world is written babel:en-fr; got {config.world!r}.")
    from regard.worlds.babel import pairs

    def take(split: str, count: int) -> Pairs:
        generated = pairs(source, target, split=split, max_words=config.max_words)
        return [(" ".join(pair.source), " ".join(pair.target)) for pair in islice(generated, count)]

    train = take("train", config.examples)
    stream = Stream(lambda: train, hashlib.sha256(repr(train).encode()).hexdigest())
    return Material(stream, len(train), take("valid", config.held_out), take("test", config.held_out_test))
