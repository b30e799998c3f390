"""Sentence pairs as ids: examples that are encoded on demand, and padded batches of them."""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any, SupportsIndex

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from regard.data.corpus import Corpus
from regard.data.padding import pad
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

    def __len__(self) -> int:
        return len(self.source)

    def to(self, device: torch.device | str, *, non_blocking: bool = True) -> "Batch":
        """Move the batch to a device; `non_blocking` has an effect only on the way to a GPU."""
        non_blocking = non_blocking and torch.device(device).type == "cuda"
        source, target = (side.to(device, non_blocking=non_blocking) for side in (self.source, self.target))
        return Batch(source, self.source_lengths, target, self.target_lengths)

    def pin_memory(self) -> "Batch":
        """Copy the batch to page-locked memory, from where it can be moved to a GPU while the GPU computes."""
        return Batch(self.source.pin_memory(), self.source_lengths, self.target.pin_memory(), self.target_lengths)


def collate(pairs: Sequence[tuple[Any, Any]]) -> Batch:
    """Pad pairs of ids, given as lists or arrays, to a batch: the collate_fn of a DataLoader."""
    if not pairs:
        raise DataError("A batch needs at least one pair; got none.")
    sources, targets = zip(*pairs, strict=True)
    return Batch(*pad(sources, after=(END,)), *pad(targets, before=(START,), after=(END,)))


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
