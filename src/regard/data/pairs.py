"""Sentence pairs as ids: examples that are encoded on demand, and padded batches of them."""

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random
from typing import Any, SupportsIndex

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regard.data.alignments import LinkArray
from regard.data.batches import pad
from regard.data.corpus import Corpus
from regard.data.tokenizer import END, START, UNKNOWN, Tokenizer
from regard.errors import DataError


@dataclass(frozen=True, eq=False)
class Batch:
    """Padded sentence pairs: source ... END, and START target ... END, each followed by PAD.

    The lengths stay on the CPU when the batch is moved: reading them from a GPU would wait for all pending work.
    """

    source: Int[Tensor, "b n"]
    source_lengths: Int[Tensor, "b"]
    """Number of source ids, END included; the padding mask is mask.padding(source_lengths)."""
    target: Int[Tensor, "b m"]
    """A decoder reads target[:, :-1] and predicts target[:, 1:]."""
    target_lengths: Int[Tensor, "b"]
    """Number of target ids, START and END included."""
    right: Bool[Tensor, "b k n"] | None = None
    """Where each predicted token target[:, 1:] should attend; a row without any such place is not guided."""

    def __len__(self) -> int:
        return len(self.source)

    def to(self, device: torch.device | str, *, non_blocking: bool = True) -> "Batch":
        """Move the batch to a device; `non_blocking` has an effect only on the way to a GPU."""
        non_blocking = non_blocking and torch.device(device).type == "cuda"
        source, target = (side.to(device, non_blocking=non_blocking) for side in (self.source, self.target))
        right = None if self.right is None else self.right.to(device, non_blocking=non_blocking)
        return replace(self, source=source, target=target, right=right)

    def pin_memory(self) -> "Batch":
        """Copy the batch to page-locked memory, from where it can be moved to a GPU while the GPU computes."""
        right = None if self.right is None else self.right.pin_memory()
        return replace(self, source=self.source.pin_memory(), target=self.target.pin_memory(), right=right)


def collate(pairs: Sequence[tuple[Any, ...]]) -> Batch:
    """Pad pairs of ids, given as lists or arrays, to a batch: the collate_fn of a DataLoader.

    A third part, if there is one, says which source ids each target id should attend to, (target, source).
    """
    if not pairs:
        raise DataError("A batch needs at least one pair; got none.")
    sources, targets, *tables = zip(*pairs, strict=True)
    batch = Batch(*pad(sources, after=(END,)), *pad(targets, before=(START,), after=(END,)))
    if not tables:
        return batch
    right = np.zeros((len(pairs), batch.target.shape[1] - 1, batch.source.shape[1]), dtype=bool)
    for place, table in zip(right, tables[0], strict=True):
        place[: table.shape[0], : table.shape[1]] = table
    return replace(batch, right=torch.from_numpy(right))


def padded_sizes(lengths: Int[np.ndarray, "n 2"]) -> Int[np.ndarray, "n 2"]:
    """Sizes of pairs in a Batch, for CostBatches: one more than the source length (END), two more than the target's."""
    return np.asarray(np.asarray(lengths, dtype=np.int64) + np.array([1, 2]))


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


class DropoutCorpus:
    """A corpus whose sentences are tokenized again in each epoch, with BPE dropout.

    A pair is fetched by its epoch and index, as the batches of `CostBatches(..., with_epoch=True)` name it. These and
    the seed alone decide which merges are skipped: neither the batch nor the worker that prepares it matters, and a
    resumed run sees what it would have seen. The text is decoded from the stored ids, so nothing but the store is
    needed. A sentence with an unknown piece is returned as stored, since its text cannot be recovered. `lengths` are
    those without dropout, which yields more pieces: max_cost of CostBatches is a target and not a bound.
    """

    def __init__(
        self, corpus: Corpus, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer, *, dropout: float, seed: int
    ) -> None:
        self._corpus, self._dropout, self._seed = corpus, dropout, seed
        self._tokenizers = (source_tokenizer, target_tokenizer)
        for tokenizer in self._tokenizers:
            tokenizer.check_dropout(dropout)
        self.report = corpus.report

    def __len__(self) -> int:
        return len(self._corpus)

    def __getitem__(self, place: tuple[int, int]) -> tuple[list[int], list[int]]:
        epoch, index = place
        random = Random(f"{self._seed} {epoch} {index}")  # noqa: S311 - not for secrets
        source, target = (
            self._encode(ids.tolist(), tokenizer, random)
            for ids, tokenizer in zip(self._corpus[index], self._tokenizers, strict=True)
        )
        return source, target

    @property
    def lengths(self) -> Int[np.ndarray, "n 2"]:
        """Number of source and target ids of each pair, without dropout."""
        return self._corpus.lengths

    def _encode(self, stored: list[int], tokenizer: Tokenizer, random: Random) -> list[int]:
        if UNKNOWN in stored:
            return stored
        return tokenizer.encode(tokenizer.decode(stored), dropout=self._dropout, random=random)


class GuidedPairs:
    """Examples of a corpus with the source ids that each target id should attend to, from the corpus's word links.

    `examples` are the corpus itself, or a DropoutCorpus of it, where a place is an epoch and an index. With `split`,
    links are between the words of `split_words`.
    """

    def __init__(
        self,
        examples: Any,
        corpus: Corpus,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        *,
        split: bool = False,
    ) -> None:
        self._examples, self._corpus, self._split = examples, corpus, split
        self._tokenizers = (source_tokenizer, target_tokenizer)
        self.lengths = examples.lengths

    def __len__(self) -> int:
        return len(self._corpus)

    def __getitem__(self, place: SupportsIndex | tuple[int, int]) -> tuple[Any, Any, Bool[np.ndarray, "m n"]]:
        pair = self._examples[place]
        index = place[1] if isinstance(place, tuple) else operator.index(place)
        return *pair, self._table(pair, self._corpus.links(index))

    def _table(self, pair: tuple[Any, Any], links: LinkArray) -> Bool[np.ndarray, "m n"]:
        if not len(links):
            return np.zeros((len(pair[1]), len(pair[0])), dtype=bool)
        source, target = (
            np.array(tokenizer.word_index(side, split=self._split))
            for tokenizer, side in zip(self._tokenizers, pair, strict=True)
        )
        # An unknown character may join or split words, so that a link is outside of them.
        words = np.zeros((max(target[-1], links[:, 1].max()) + 1, max(source[-1], links[:, 0].max()) + 1), dtype=bool)
        words[links[:, 1], links[:, 0]] = True
        return np.asarray(words[target[:, None], source])
