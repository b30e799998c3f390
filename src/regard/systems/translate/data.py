"""What a translator learns from: sentence pairs streamed from their files, never all in memory."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, Literal

import numpy as np

from regard.data.alignments import LinkArray, read_links
from regard.data.public.datasets import hint_for
from regard.data.splits import HashHoldOut, Splits, Stream
from regard.data.text import file_stamp, read_dataset, read_pairs, read_tsv
from regard.data.tokenizer import Tokenizer
from regard.errors import DataError, OptionError
from regard.systems.translate.config import TranslationData, parse_world

Pair = tuple[str, str]
Pairs = list[Pair]
TOKENIZER_PAIRS = 1_000_000
"""A tokenizer is trained on at most this many pairs: of a larger corpus, on every n-th."""


class PairStream(Stream[Pair]):
    """Sentence pairs that are read anew in each pass.

    `identity` says what is read: equal identities mean equal pairs. It is None where this cannot be known. `links`
    reads the word links of the pairs, where there are any.
    """

    def __init__(
        self,
        read: Callable[[], Iterable[Pair]],
        identity: Any,
        links: Callable[[], Iterable[LinkArray]] | None = None,
    ) -> None:
        super().__init__(read, _source)
        self._identity, self._links = identity, links

    @property
    def is_linked(self) -> bool:
        """Whether the pairs have word links."""
        return self._links is not None

    def with_links(self) -> Iterator[tuple[str, str, LinkArray]]:
        """Each pair with its word links."""
        if self._links is None:
            raise OptionError("These pairs have no word links.")
        for number, (pair, links) in enumerate(zip_longest(self._read(), self._links())):
            if pair is None or links is None:
                shorter, longer = ("training pairs", "alignments") if pair is None else ("alignments", "training pairs")
                raise DataError(
                    f"The alignments must have as many lines as there are training pairs; there are {number} {shorter} "
                    f"and more {longer}."
                )
            if pair[0] not in self._without:
                yield *pair, links

    @property
    def fingerprint(self) -> str | None:
        """A hash of the identity and of what is left out."""
        if self._identity is None:
            return None
        return hashlib.sha256(json.dumps([self._identity, sorted(self._without)]).encode()).hexdigest()


@dataclass(frozen=True)
class TranslationSplits(Splits[PairStream, Pairs]):
    """Pairs to train on, to validate with and to test with."""

    pairs: int = 0
    """Number of pairs in the files that have words on both sides, held out or not."""
    given: int = 0
    """Number of all pairs in the files."""


def read_splits(data: TranslationData) -> TranslationSplits:
    """One pass over the training pairs, to count them and to choose what is held out; valid and test are lists."""
    if data.world:
        return _world(data)
    stream, valid, test = _stream(data), _given(data, "valid"), _given(data, "test")
    given = 0

    def counted() -> Iterator[Pair]:
        nonlocal given
        for pair in stream:
            given += 1
            yield pair

    held = HashHoldOut.from_items(
        _filled(counted()),
        _source,
        valid=data.held_out if valid is None else 0,
        test=data.held_out_test if test is None else 0,
    )
    if not held.count:
        raise DataError("There is nothing to train on: no pair has words on both sides.")
    held_valid, held_test = held.held_out(name="source sentences")
    train = stream.leaving_out([*held_test, *held_valid])
    valid, test = held_valid if valid is None else valid, held_test if test is None else test
    return TranslationSplits(train, valid, test, pairs=held.count, given=given)


def train_tokenizers(data: TranslationData, splits: TranslationSplits) -> tuple[Tokenizer, Tokenizer]:
    """Tokenizers trained on the training pairs, or on an even sample of them: one for both sides, or one for each."""
    options: dict[str, Any] = {"size": data.vocabulary, "kind": data.tokens, "lowercase": data.lowercase}
    if data.tokens == "bpe":
        options |= {"byte_fallback": data.byte_fallback, "split_digits": data.split_digits}
    every = max(1, -(-splits.pairs // TOKENIZER_PAIRS))

    def sample() -> Iterator[Pair]:
        return islice(_filled(splits.train), 0, None, every)

    if data.joint:
        tokenizer = Tokenizer.train((text for pair in sample() for text in pair), **options)
        return tokenizer, tokenizer
    return (
        Tokenizer.train((source for source, _ in sample()), **options),
        Tokenizer.train((target for _, target in sample()), **options),
    )


def _stream(data: TranslationData) -> PairStream:
    links, stamp = None, []
    if data.alignments:
        path = _file(data, data.alignments)
        links, stamp = (lambda: read_links(path)), [file_stamp(path)]
    if data.pairs:
        path = _file(data, data.pairs)
        return PairStream(lambda: read_tsv(path, data.columns), [file_stamp(path), data.columns, *stamp], links=links)
    if data.source:
        source, target = _file(data, data.source), _file(data, data.target)
        stamps = [file_stamp(source), file_stamp(target), *stamp]
        return PairStream(lambda: read_pairs(source, target), stamps, links=links)
    if data.dataset:
        return _dataset(data, data.dataset_split)
    raise OptionError(
        "Say what to train on: two text files (--source a.txt --target b.txt), --data.pairs FILE, --data.dataset NAME, "
        "or --data.world babel:en-fr."
    )


def _given(data: TranslationData, part: Literal["valid", "test"]) -> Pairs | None:
    """The pairs to validate or to test with, where the recipe names them."""
    source, target = getattr(data, f"{part}_source"), getattr(data, f"{part}_target")
    if source:
        return list(_filled(read_pairs(_file(data, source), _file(data, target))))
    split = getattr(data, f"dataset_{part}")
    return list(_filled(_dataset(data, split))) if data.dataset and split else None


def _file(data: TranslationData, name: str) -> Path:
    path = Path(data.folder) / name
    is_member = any(parent.is_file() for parent in path.parents)  # of an archive: pairs.zip/pairs.txt
    if not path.is_file() and not is_member:
        raise DataError(f"There is no file {path}. {hint_for(name)}".rstrip())
    return path


def _dataset(data: TranslationData, split: str) -> PairStream:
    path = Path(data.folder) / data.dataset
    name = str(path) if path.exists() else data.dataset
    # A name on the hub may change its contents, and a folder holds many files: neither has a stamp.
    identity = [file_stamp(path), data.dataset_columns, split] if path.is_file() else None
    return PairStream(lambda: read_dataset(name, *data.dataset_columns, split=split), identity)


def _source(pair: Pair) -> str:
    return pair[0]


def _filled(pairs: Iterable[Pair]) -> Iterator[Pair]:
    return ((source, target) for source, target in pairs if source.strip() and target.strip())


def _world(data: TranslationData) -> TranslationSplits:
    generated = list(islice(_generated(data.world, "train", data.max_words), data.examples))
    train = [_as_text(pair) for pair in generated]
    links = [np.array(sorted(pair.sure), dtype=np.int64).reshape(-1, 2) for pair in generated]
    stream = PairStream(lambda: train, hashlib.sha256(repr(train).encode()).hexdigest(), links=lambda: links)
    valid, test = (
        world_pairs(data.world, split, count, max_words=data.max_words)
        for split, count in (("valid", data.held_out), ("test", data.held_out_test))
    )
    return TranslationSplits(stream, valid, test, pairs=len(train), given=len(train))


def world_pairs(world: str, split: str, count: int, *, max_words: int = 20) -> Pairs:
    """Sentence pairs of the world babel."""
    return [_as_text(pair) for pair in islice(_generated(world, split, max_words), count)]


def _generated(world: str, split: str, max_words: int) -> Iterator[Any]:
    from regard.worlds.babel import pairs

    return pairs(*parse_world(world), split=split, max_words=max_words)


def _as_text(pair: Any) -> Pair:
    return " ".join(pair.source), " ".join(pair.target)
