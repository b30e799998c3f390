"""Sentences as ids, and batches of them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from regard.data.batches import pad
from regard.data.vocabulary import Vocabulary
from regard.errors import DataError
from regard.systems.read.data import Example

IGNORED = -1
"""The target of padding."""


@dataclass(frozen=True, eq=False)
class ReadingBatch:
    """Padded sentences and what is to be said of them; the lengths stay on the CPU."""

    sentences: tuple[Int[Tensor, "b n"], ...]
    lengths: tuple[Int[Tensor, "b"], ...]
    targets: Int[Tensor, "b ..."] | None
    """One label per sentence, (b,), or per word, (b, n); None for language models."""

    def __len__(self) -> int:
        return len(self.sentences[0])

    def to(self, device: torch.device | str, *, non_blocking: bool = True) -> "ReadingBatch":
        """Move the batch to a device."""
        non_blocking = non_blocking and torch.device(device).type == "cuda"
        moved = tuple(each.to(device, non_blocking=non_blocking) for each in self.sentences)
        targets = None if self.targets is None else self.targets.to(device, non_blocking=non_blocking)
        return ReadingBatch(moved, self.lengths, targets)


class Examples:
    """Examples as ids, kept in memory: indexable, with `sizes` for CostBatches, and collated to a ReadingBatch."""

    def __init__(
        self, examples: Sequence[Example], vocabulary: Vocabulary, labels: Sequence[str], *, per_word: bool
    ) -> None:
        self.per_word = per_word
        numbers = {label: number for number, label in enumerate(labels)}
        unknown = {label for example in examples for label in example.labels} - numbers.keys()
        # Validation sentences may have tags that the training sentences do not have; nobody can predict them.
        self._targets = [[numbers.get(label, IGNORED) for label in example.labels] for example in examples]
        if unknown and not per_word:
            raise DataError(f"Labels must occur in the training data; {sorted(unknown)[0]!r} does not.")
        self._ids = [
            tuple(np.array(vocabulary.encode(words), dtype=np.int32) for words in example.sentences)
            for example in examples
        ]
        self.sizes = np.array([[len(each) + 1 for each in sides] for sides in self._ids], dtype=np.int64)
        self.counts = Counter(number for targets in self._targets for number in targets)

    def __len__(self) -> int:
        return len(self._ids)

    def __getitem__(self, place: int) -> tuple[tuple[np.ndarray, ...], list[int]]:
        return self._ids[place], self._targets[place]

    def collate(self, examples: Sequence[tuple[tuple[np.ndarray, ...], list[int]]]) -> ReadingBatch:
        """Pad examples to a batch."""
        sides = [pad(rows) for rows in zip(*(ids for ids, _ in examples), strict=True)]
        sentences, lengths = zip(*sides, strict=True)
        targets = [targets for _, targets in examples]
        if not targets[0]:
            return ReadingBatch(sentences, lengths, None)
        padded, _ = pad(targets, value=IGNORED)
        return ReadingBatch(sentences, lengths, padded if self.per_word else padded[:, 0])
