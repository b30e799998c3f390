"""A batch of documents without padding: the words of all sentences, and the sentences of all documents, packed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from regard.errors import DataError

EncodedDocument = Sequence[Sequence[int]]
"""The ids of the words of each sentence."""


@dataclass(frozen=True)
class Packing:
    """The order in which a recurrent network reads sequences of different lengths, the longest first.

    Position by position: all first elements, then all second elements, and so on, as in torch's PackedSequence.
    """

    places: Int[Tensor, "n"]
    """For each packed element its index in the plain order, one sequence after the other."""
    owners: Int[Tensor, "n"]
    """For each packed element the number of its sequence."""
    rows: Int[Tensor, "t"]
    """How many sequences have a t-th element. It stays on the CPU, where the network needs it."""
    count: int
    """Number of sequences."""

    @classmethod
    def from_lengths(cls, lengths: Int[np.ndarray, "s"]) -> "Packing":
        """Pack sequences of these lengths."""
        lengths = np.asarray(lengths, dtype=np.int64)
        if not len(lengths) or lengths.min() < 1:
            raise DataError("Only sequences with at least one element can be packed.")
        starts = np.cumsum(lengths) - lengths
        order = np.argsort(-lengths, kind="stable")
        owners = np.repeat(np.arange(len(lengths)), lengths)
        steps = np.arange(int(lengths.sum())) - starts[owners]
        ranks = np.empty(len(lengths), dtype=np.int64)
        ranks[order] = np.arange(len(lengths))
        places = np.lexsort((ranks[owners], steps))
        rows = np.bincount(steps)
        return cls(torch.from_numpy(places), torch.from_numpy(owners[places]), torch.from_numpy(rows), len(lengths))

    def to(self, device: torch.device | str) -> "Packing":
        """Move it to a device, except for `rows`."""
        return replace(self, places=_move(self.places, device), owners=_move(self.owners, device))

    def restored(self, packed: Tensor) -> Tensor:
        """Packed numbers in the plain order."""
        return torch.empty_like(packed).index_copy(0, self.places, packed)


@dataclass(frozen=True)
class DocumentBatch:
    """Documents as one stream of words, with how words form sentences and sentences form documents."""

    words: Int[Tensor, "n"]
    """Ids of the words in packed order."""
    by_sentence: Packing
    """The words of each sentence."""
    by_document: Packing
    """The sentences of each document."""
    labels: Int[Tensor, "b"] | None = None

    def __len__(self) -> int:
        return self.by_document.count

    @classmethod
    def from_ids(cls, documents: Sequence[EncodedDocument], labels: Sequence[int] | None = None) -> "DocumentBatch":
        """Pack documents, given as the ids of their sentences."""
        sentences = [sentence for document in documents for sentence in document]
        if not all(len(document) for document in documents) or not sentences:
            raise DataError("Every document of a batch needs at least one sentence with a word.")
        flat = np.concatenate([np.asarray(sentence, dtype=np.int64) for sentence in sentences])
        return cls.from_flat(
            flat,
            np.array([len(sentence) for sentence in sentences]),
            np.array([len(document) for document in documents]),
            None if labels is None else np.asarray(labels, dtype=np.int64),
        )

    @classmethod
    def from_flat(
        cls,
        words: Int[np.ndarray, "n"],
        sentence_lengths: Int[np.ndarray, "s"],
        document_lengths: Int[np.ndarray, "b"],
        labels: Int[np.ndarray, "b"] | None = None,
    ) -> "DocumentBatch":
        """Pack documents, given as one array of ids, the words of each sentence and the sentences of each document."""
        by_sentence = Packing.from_lengths(sentence_lengths)
        packed = torch.from_numpy(np.asarray(words, dtype=np.int64))[by_sentence.places]
        return cls(
            packed,
            by_sentence,
            Packing.from_lengths(document_lengths),
            None if labels is None else torch.from_numpy(np.asarray(labels, dtype=np.int64)),
        )

    def to(self, device: torch.device | str) -> "DocumentBatch":
        """Move it to a device; to a GPU without waiting for the work that is pending there."""
        return DocumentBatch(
            _move(self.words, device),
            self.by_sentence.to(device),
            self.by_document.to(device),
            None if self.labels is None else _move(self.labels, device),
        )


def _move(tensor: Tensor, device: torch.device | str) -> Tensor:
    if torch.device(device).type != "cuda" or tensor.is_cuda:
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)
