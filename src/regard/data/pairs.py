"""Sentence pairs as ids: examples that are encoded on demand, and padded batches of them."""

import hashlib
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
import torch
from jaxtyping import Bool, Int, UInt
from torch import Tensor

from regard.data.alignments import LinkArray
from regard.data.batches import ON_CPU, Movable, pad, round_up
from regard.data.corpus import Corpus
from regard.data.merge_dropout import Column, ManyWords, combined, ranges
from regard.data.tokenizer import END, START, UNKNOWN, Tokenizer
from regard.errors import DataError

MAX_STATES = 500_000
"""States of words that are remembered for BPE dropout; beyond, all are forgotten."""
MAX_WORDS = 20_000_000
"""Words of sentences that are remembered; beyond, all are forgotten."""


@dataclass(frozen=True, eq=False)
class Batch(Movable):
    """Padded sentence pairs: source ... END, and START target ... END, each followed by PAD."""

    source: Int[Tensor, "b n"]
    source_lengths: Int[Tensor, "b"] = field(metadata=ON_CPU)
    """Number of source ids, END included; the padding mask is mask.padding(source_lengths)."""
    target: Int[Tensor, "b m"]
    """A decoder reads target[:, :-1] and predicts target[:, 1:]."""
    target_lengths: Int[Tensor, "b"] = field(metadata=ON_CPU)
    """Number of target ids, START and END included."""
    right: Bool[Tensor, "b k n"] | None = None
    """Where each predicted token target[:, 1:] should attend; a row without any such position is not guided."""

    def __len__(self) -> int:
        return len(self.source)


def collate(pairs: Sequence[tuple[Any, ...]], *, multiple: int = 1) -> Batch:
    """Pad pairs of ids, given as lists or arrays, to a batch: the collate_fn of a DataLoader.

    Sources, and targets without START, are padded to a multiple of `multiple` ids.

    A third part, if there is one, says which source ids each target id should attend to, (target, source).
    """
    if not pairs:
        raise DataError("A batch needs at least one pair; got none.")
    sources, targets, *tables = zip(*pairs, strict=True)
    batch = Batch(
        *pad(sources, after=(END,), multiple=multiple),
        *pad(targets, before=(START,), after=(END,), multiple=multiple),
    )
    if not tables:
        return batch
    right = np.zeros((len(pairs), batch.target.shape[1] - 1, batch.source.shape[1]), dtype=bool)
    for padded, table in zip(right, tables[0], strict=True):
        padded[: table.shape[0], : table.shape[1]] = table
    return replace(batch, right=torch.from_numpy(right))


def padded_sizes(lengths: Int[np.ndarray, "n 2"], *, multiple: int = 1) -> Int[np.ndarray, "n 2"]:
    """Sizes of pairs in a Batch, for CostBatches: one more than the source length (END), two more than the target's."""
    ends = np.asarray(lengths, dtype=np.int64) + 1
    return np.asarray(round_up(ends, multiple) + np.array([0, 1]))


class TextPairs:
    """Sentence pairs that are encoded on access."""

    def __init__(
        self, pairs: Sequence[tuple[str, str]], source_tokenizer: Tokenizer, target_tokenizer: Tokenizer
    ) -> None:
        for index, pair in enumerate(pairs):
            if not all(side and not side.isspace() for side in pair):
                raise DataError(f"Pair {index} has an empty side: {pair}. Leave such pairs out.")
        self._pairs = pairs
        self._tokenizers = (source_tokenizer, target_tokenizer)

    def __len__(self) -> int:
        return len(self._pairs)

    def __getitem__(self, index: SupportsIndex) -> tuple[list[int], list[int]]:
        return self.__getitems__([operator.index(index)])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[tuple[list[int], list[int]]]:
        """Encode several pairs at once; a DataLoader fetches a batch with this method."""
        pairs = [self._pairs[index] for index in indices]
        encoded = (
            tokenizer.encode_batch([pair[side] for pair in pairs]) for side, tokenizer in enumerate(self._tokenizers)
        )
        return list(zip(*encoded, strict=True))

    @cached_property
    def lengths(self) -> Int[np.ndarray, "n 2"]:
        """Number of source and target ids of each pair."""
        encoded = self.__getitems__(range(len(self)))
        return np.array([(len(source), len(target)) for source, target in encoded], dtype=np.int64).reshape(-1, 2)


class CorpusPairs:
    """Pairs of a corpus as ids, with BPE dropout and with the links between their words, if there are any.

    With `dropout`, sentences are tokenized again in each epoch: a pair is fetched by its epoch and index, as the
    batches of `CostBatches(..., with_epoch=True)` name it. These and the seed alone decide which merges are skipped:
    neither the batch nor the worker that prepares it matters, and a resumed run sees what it would have seen. The
    words are those of the stored ids, so nothing but the store is needed. A word with an unknown piece keeps its stored
    pieces, since its text cannot be recovered. `lengths` are those without dropout, which yields more pieces: max_cost
    of CostBatches is a target and not a bound.

    With `linked`, a third part of each pair says which source ids each target id should attend to, from the word links
    of the corpus; with `split`, links are between the words of `split_words`.
    """

    def __init__(
        self,
        corpus: Corpus,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        *,
        dropout: float = 0.0,
        seed: int = 0,
        linked: bool = False,
        split: bool = False,
    ) -> None:
        self._corpus, self._dropout, self._linked, self._split = corpus, dropout, linked, split
        self._tokenizers = (source_tokenizer, target_tokenizer)
        for tokenizer in self._tokenizers:
            tokenizer.check_dropout(dropout)
        self._sides = tuple(
            _Words(corpus, side, tokenizer, dropout, split=split) for side, tokenizer in enumerate(self._tokenizers)
        )
        digest = hashlib.sha256(f"{seed}".encode()).digest()
        self._keys = np.frombuffer(digest, "<u8", 2).astype(np.uint64)  # one for each side
        self.report = corpus.report

    def __len__(self) -> int:
        return len(self._corpus)

    @property
    def lengths(self) -> Int[np.ndarray, "n 2"]:
        """Number of source and target ids of each pair, without dropout."""
        return self._corpus.lengths

    def __getitem__(self, index: SupportsIndex | tuple[int, int]) -> tuple[Any, ...]:
        return self.__getitems__([index])[0]

    def __getitems__(self, examples: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Several pairs, each by its index or by (epoch, index); a DataLoader fetches a batch with this method."""
        pairs = [each if isinstance(each, tuple) else (0, operator.index(each)) for each in examples]
        epochs, indices = np.array(pairs).T
        source, target = (
            words.drawn(indices, combined(combined(key, epochs), indices))
            for words, key in zip(self._sides, self._keys[:, None], strict=True)
        )
        if not self._linked:
            return list(zip(source.rows, target.rows, strict=True))
        links = map(self._corpus.links, indices.tolist())
        return list(zip(source.rows, target.rows, map(_table, links, target.words, source.words), strict=True))


class _Drawn(NamedTuple):
    """Sentences as ids, and for each id the number of its word in the sentence."""

    rows: list[Int[np.ndarray, "_"]]
    words: list[Int[np.ndarray, "_"]]


class _Words:
    """Splits the sentences of one side of a corpus into words, and each word into pieces, anew in each epoch."""

    def __init__(self, corpus: Corpus, side: int, tokenizer: Tokenizer, dropout: float, *, split: bool) -> None:
        self._corpus, self._side, self._tokenizer = corpus, side, tokenizer
        self._dropout, self._split = dropout, split
        self._many = ManyWords(tokenizer.merge_dropout())
        self._begins = np.array([tokenizer.begins_word(number) for number in range(len(tokenizer))])
        self._forget()

    def _forget(self) -> None:
        self._many.forget()
        # Of each chunk of ids, which is a word of `text.split()`: the states of its words.
        self._chunks: dict[bytes, list[int]] = {}
        # Of each sentence that has been met: the states of its words, and the numbers that links give them.
        self._states, self._numbers = Column(), Column()
        self._first, self._count = np.full((2, len(self._corpus)), -1)

    def drawn(self, indices: Int[np.ndarray, "b"], keys: UInt[np.ndarray, "b"]) -> _Drawn:
        """Split sentences into pieces; one key for each sentence decides how."""
        if len(self._many) >= MAX_STATES or len(self._states) >= MAX_WORDS:
            self._forget()
        for index in np.unique(indices[self._first[indices] < 0]).tolist():
            self._divide(index)
        counts = self._count[indices]
        positions = ranges(self._first[indices], counts)
        sentence = np.repeat(np.arange(len(indices)), counts)
        within = positions - self._first[indices][sentence]
        ends = self._many.draw(self._states.array[positions], combined(keys[sentence], within), self._dropout)
        pieces, counts = self._many.pieces(ends)
        numbers = np.repeat(self._numbers.array[positions], counts)
        return _Drawn(*_parts(np.repeat(sentence, counts), len(indices), pieces, numbers))

    def _divide(self, index: int) -> None:
        """Find the words of a sentence."""
        ids = self._corpus[index][self._side]
        self._first[index] = len(self._states)
        data, size = ids.tobytes(), ids.itemsize
        begins = [0, *(np.flatnonzero(self._begins[ids[1:]]) + 1).tolist(), len(ids)]
        for number, (start, end) in enumerate(pairwise(begins)):
            chunk = data[start * size : end * size]
            if (states := self._chunks.get(chunk)) is None:
                states = self._chunks[chunk] = self._words(ids[start:end].tolist())
            self._states.new += states
            self._numbers.new += [number] * len(states)
        self._count[index] = len(self._states) - self._first[index]
        if self._split:
            self._numbers.new[-self._count[index] :] = range(self._count[index])

    def _words(self, ids: list[int]) -> list[int]:
        """The states of the words of a chunk, at their beginning."""
        tokenizer = self._tokenizer
        if self._dropout and UNKNOWN not in ids:
            return [self._many.spelled(word) for word in tokenizer.unmerged(ids)]
        if not self._split:
            return [self._many.fixed(ids)]
        owners = tokenizer.word_index(ids, split=True)
        words = _parts(np.array(owners), owners[-1] + 1, np.array(ids))[0]
        return [self._many.fixed(word.tolist()) for word in words]


def _parts(owners: Int[np.ndarray, "n"], count: int, *arrays: np.ndarray) -> list[list[np.ndarray]]:
    """Split arrays by the owner of each element, 0 to count - 1; owners are in ascending order."""
    bounds = [0, *np.cumsum(np.bincount(owners, minlength=count)).tolist()]
    return [[array[start:end] for start, end in pairwise(bounds)] for array in arrays]


def _table(links: LinkArray, target: Int[np.ndarray, "m"], source: Int[np.ndarray, "n"]) -> Bool[np.ndarray, "m n"]:
    """Which source ids each target id should attend to; the ids are given by the numbers of their words."""
    if not len(links):
        return np.zeros((len(target), len(source)), dtype=bool)
    # An unknown character may join or split words, so that a link is outside of them.
    words = np.zeros((max(target[-1], links[:, 1].max()) + 1, max(source[-1], links[:, 0].max()) + 1), dtype=bool)
    words[links[:, 1], links[:, 0]] = True
    return np.asarray(words[target[:, None], source])
