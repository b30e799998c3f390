"""Sentence pairs as ids: examples that are encoded on demand, and padded batches of them."""

import hashlib
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
import torch
from jaxtyping import Bool, Int, UInt
from torch import Tensor

from regard.data.alignments import LinkArray
from regard.data.augmentation import in_another_case, with_other_names
from regard.data.batches import ON_CPU, Movable, pad, round_up
from regard.data.corpus import Corpus
from regard.data.merge_dropout import Column, ManyWords, combined, mixed, ranges
from regard.data.tokenizer import END, START, UNKNOWN, Tokenizer
from regard.errors import DataError

MAX_STATES = 500_000
"""States of words that are remembered for BPE dropout; beyond, all are forgotten."""
_FORM_KEY = np.uint64(0x5851F42D4C957F2D)
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
    """Where each predicted token target[:, 1:] should attend; a row without any such place is not guided."""

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
    for place, table in zip(right, tables[0], strict=True):
        place[: table.shape[0], : table.shape[1]] = table
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

    With `copied` and `cased`, these shares of the pairs come in another form, drawn anew in each epoch in the same way:
    with other names and numbers, in capitals or in lower case (see `data.augmentation`).

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
        copied: float = 0.0,
        cased: float = 0.0,
        seed: int = 0,
        linked: bool = False,
        split: bool = False,
    ) -> None:
        self._corpus, self._linked, self._shares = corpus, linked, (copied, cased)
        for tokenizer in (source_tokenizer, target_tokenizer):
            tokenizer.check_dropout(dropout)
        self._sides = tuple(
            _Words(corpus, side, tokenizer, dropout, split=split)
            for side, tokenizer in enumerate((source_tokenizer, target_tokenizer))
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

    def __getitem__(self, place: SupportsIndex | tuple[int, int]) -> tuple[Any, ...]:
        return self.__getitems__([place])[0]

    def __getitems__(self, places: Sequence[Any]) -> list[tuple[Any, ...]]:
        """The pairs at several places at once; a DataLoader fetches a batch with this method."""
        pairs = [place if isinstance(place, tuple) else (0, operator.index(place)) for place in places]
        epochs, indices = np.array(pairs).T
        keys = [combined(combined(key, epochs), indices) for key in self._keys[:, None]]
        forms = self._other_forms(indices, keys[0]) if any(self._shares) else {}
        source, target = (
            words.drawn(indices, key, {place: form[side] for place, form in forms.items()})
            for side, (words, key) in enumerate(zip(self._sides, keys, strict=True))
        )
        if not self._linked:
            return list(zip(source.rows, target.rows, strict=True))
        links = [self._corpus.links(index) for index in indices.tolist()]
        for place, form in forms.items():
            if len(links[place]) and form.added is not None:
                links[place] = np.concatenate([links[place], [form.added]])
        return list(zip(source.rows, target.rows, map(_table, links, target.words, source.words), strict=True))

    def _other_forms(self, indices: Int[np.ndarray, "b"], keys: UInt[np.ndarray, "b"]) -> dict[int, "_Form"]:
        """The pairs of a batch that come in another form, by their places in it."""
        copied, cased = self._shares
        uniform = (mixed(keys ^ _FORM_KEY) >> np.uint64(11)) * 2.0**-53
        forms = {}
        for place in np.flatnonzero(uniform < copied + cased).tolist():
            units = [words.units(int(indices[place])) for words in self._sides]
            if not all(units):
                continue
            random = Random(int(keys[place]))  # noqa: S311 - not for secrets
            change = with_other_names if uniform[place] < copied else in_another_case
            changed = change(*units, random)
            added = None
            if len(changed[0]) > len(units[0]):
                added = [words.numbers(side)[-1] for words, side in zip(self._sides, changed, strict=True)]
            forms[place] = _Form(*changed, added)
        return forms


class _Form(NamedTuple):
    """A pair in another form, as units, and the link of the words that were added to its end, if any."""

    source: list[str]
    target: list[str]
    added: list[int] | None


class _Drawn(NamedTuple):
    """Sentences as ids, and for each id the number of its word in the sentence."""

    rows: list[Int[np.ndarray, "_"]]
    words: list[Int[np.ndarray, "_"]]


class _Words:
    """Splits the sentences of one side of a corpus into words, and each word into pieces, anew in each epoch."""

    def __init__(self, corpus: Corpus, side: int, tokenizer: Tokenizer, dropout: float, *, split: bool) -> None:
        self._corpus, self._side, self._tokenizer = corpus, side, tokenizer
        self._dropout, self._split = dropout, split
        self._merges = tokenizer.merge_dropout()
        self._many = ManyWords(self._merges)
        self._begins = np.array([tokenizer.begins_word(number) for number in range(len(tokenizer))])
        self._forget()

    def _forget(self) -> None:
        self._many.forget()
        # Of each chunk of ids, which is a word of `text.split()`: the states of its words.
        self._chunks: dict[bytes, list[int]] = {}
        # The states of the units of other forms.
        self._units: dict[str, int] = {}
        # Of each sentence that has been met: the states of its words, and the numbers that links give them.
        self._states, self._numbers = Column(), Column()
        self._first, self._count = np.full((2, len(self._corpus)), -1)

    def drawn(
        self, indices: Int[np.ndarray, "b"], keys: UInt[np.ndarray, "b"], forms: Mapping[int, list[str]]
    ) -> _Drawn:
        """Split sentences into pieces; one key for each sentence decides how. `forms` are the units of other forms."""
        if len(self._many) >= MAX_STATES or len(self._states) >= MAX_WORDS:
            self._forget()
        for index in np.unique(indices[self._first[indices] < 0]).tolist():
            self._divide(index)
        counts = self._count[indices]
        places = ranges(self._first[indices], counts)
        states, numbers = self._states.array[places], self._numbers.array[places]
        if forms:
            counts, states, numbers = self._with_forms(forms, counts, states, numbers)
        sentence = np.repeat(np.arange(len(indices)), counts)
        within = ranges(np.zeros_like(counts), counts)
        ends = self._many.draw(states, combined(keys[sentence], within), self._dropout)
        pieces, counts = self._many.pieces(ends)
        numbers = np.repeat(numbers, counts)
        return _Drawn(*_parts(np.repeat(sentence, counts), len(indices), pieces, numbers))

    def units(self, index: int) -> list[str]:
        """The units of a sentence that merges never cross; none where a piece is unknown."""
        ids = self._corpus[index][self._side]
        return [] if UNKNOWN in ids else self._tokenizer.unmerged(ids)

    def numbers(self, units: Sequence[str]) -> list[int]:
        """The numbers that links give the words of these units."""
        if self._split:
            return list(range(len(units)))
        begins = [unit[0] == " " for unit in units[1:]]
        return np.cumsum([0, *begins]).tolist()

    def _with_forms(
        self, forms: Mapping[int, list[str]], counts: Int[np.ndarray, "b"], *arrays: Int[np.ndarray, "n"]
    ) -> list[Int[np.ndarray, "_"]]:
        """The counts, states and numbers of sentences, with those of other forms in their place."""
        parts = [np.split(array, np.cumsum(counts)[:-1]) for array in arrays]
        for place, units in forms.items():
            parts[0][place] = np.array([self._unit(unit) for unit in units])
            parts[1][place] = np.array(self.numbers(units))
        return [np.array([len(part) for part in parts[0]]), *map(np.concatenate, parts)]

    def _unit(self, unit: str) -> int:
        """The state of a unit that may not be in the corpus."""
        if (state := self._units.get(unit)) is None:
            spell = self._many.spelled if self._dropout else self._fixed
            state = self._units[unit] = spell(unit)
        return state

    def _fixed(self, unit: str) -> int:
        return self._many.fixed(self._merges(unit, 0.0, Random(0)))  # noqa: S311 - nothing is drawn

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
