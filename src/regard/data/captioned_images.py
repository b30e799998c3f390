"""Images with captions as training examples: one example per caption, and padded batches of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from regard.data.batches import BatchLoader, CostBatches, Movable, pad
from regard.data.tokenizer import END, START, Tokenizer
from regard.errors import DataError


@dataclass(frozen=True, eq=False)
class ImageTensors(Movable):
    """Pixels or features of many images in one tensor, which is memory-mapped, in memory or on a GPU.

    Pixels are uint8 (n, 3, h, w). Features are float16 (n, cells, features), or int8 with a quantization step for each
    feature.
    """

    values: Shaped[Tensor, "n ..."]
    """One row for each image."""
    steps: Float[Tensor, "features"] | None = None
    """For int8 features: the value that 1 stands for in each of them."""

    def __len__(self) -> int:
        return len(self.values)

    def take(self, indices: Int[Tensor, "b"]) -> Shaped[Tensor, "b ..."]:
        """Gather the images at these indices, on the device where they are."""
        rows = self.values[indices.to(self.values.device, non_blocking=True)]
        return rows if self.steps is None else rows.float() * self.steps


Right = Bool[np.ndarray, "_ cells"]
"""Which cells each word of a caption should attend to; none where that is unknown."""


@dataclass(frozen=True, eq=False)
class CaptionBatch(Movable):
    """Images with one caption each: START words END, followed by PAD."""

    images: Shaped[Tensor, "b ..."]
    """Pixels or features."""
    target: Int[Tensor, "b m"]
    """A decoder reads target[:, :-1] and predicts target[:, 1:]."""
    indices: Int[Tensor, "b"]
    """The index of each image in the data set."""
    right: Bool[Tensor, "b words cells"] | None = None
    """Which cells each of target[:, 1:] should attend to, for guided attention."""

    def __len__(self) -> int:
        return len(self.target)


@dataclass(frozen=True, eq=False)
class CaptionExamples:
    """Captions as ids, each with the index of its image: an example is one caption."""

    images: ImageTensors
    indices: Int[np.ndarray, "n"]
    """The index of the image that each caption describes."""
    captions: Sequence[Sequence[int]]
    right: Sequence[Right | None] | None = None
    """For guided attention, the right cells of each id of each caption."""

    def __post_init__(self) -> None:
        if len(self.indices) != len(self.captions) or not len(self.captions):
            raise DataError(
                f"There must be one image index for each caption, and at least one caption; got {len(self.indices)} "
                f"indices and {len(self.captions)} captions."
            )

    def __len__(self) -> int:
        return len(self.captions)

    @cached_property
    def sizes(self) -> Int[np.ndarray, "n 1"]:
        """Number of ids of each caption in a batch, START and END included, for CostBatches."""
        return np.array([[len(caption) + 2] for caption in self.captions], dtype=np.int64)

    def batch(self, numbers: Sequence[int]) -> CaptionBatch:
        """Gather the examples with these numbers: the collate_fn of a DataLoader."""
        target, _ = pad([self.captions[number] for number in numbers], before=(START,), after=(END,))
        indices = torch.from_numpy(self.indices[numbers])
        right = None if self.right is None else _padded([self.right[number] for number in numbers], target.shape[1] - 1)
        return CaptionBatch(self.images.take(indices), target, indices, right)

    def loader(self, *, max_tokens: int, shuffle: bool, bucket: bool = True, seed: int = 0) -> BatchLoader:
        """Batches of at most `max_tokens` padded ids, of similar lengths with `bucket`; resumable (see CostBatches)."""
        batches = CostBatches(self.sizes, max_cost=max_tokens, shuffle=shuffle, seed=seed, bucket=bucket)
        return BatchLoader(range(len(self)), batches, collate_fn=self.batch)


@dataclass(frozen=True, eq=False)
class CaptionedImages:
    """The images of one split, and the captions that people wrote for each."""

    images: ImageTensors
    captions: list[list[str]]
    """The captions of each image."""
    right: list[list[Right | None]] | None = None
    """For guided attention, the right cells of each word (of text.split()) of each caption."""

    def __len__(self) -> int:
        return len(self.captions)

    def examples(self, tokenizer: Tokenizer, *, max_length: int) -> CaptionExamples:
        """Encode all captions of 1 to `max_length` ids; longer ones are left out."""
        pairs = [(index, text) for index, texts in enumerate(self.captions) for text in texts]
        encoded = tokenizer.encode_batch([text for _, text in pairs])
        fits = [0 < len(ids) <= max_length for ids in encoded]
        kept = [(index, ids) for (index, _), ids, fit in zip(pairs, encoded, fits, strict=True) if fit]
        if not kept:
            raise DataError(
                f"None of the {len(pairs)} captions has 1 to {max_length} words. Raise max_length (data.max_length)."
            )
        indices = np.array([index for index, _ in kept], dtype=np.int64)
        captions = [ids for _, ids in kept]
        if self.right is None:
            return CaptionExamples(self.images, indices, captions)
        tables = [table for tables in self.right for table in tables]
        kept_tables = (table for table, fit in zip(tables, fits, strict=True) if fit)
        right = [
            None if table is None else table[tokenizer.word_index(ids)]
            for ids, table in zip(captions, kept_tables, strict=True)
        ]
        return CaptionExamples(self.images, indices, captions, right)

    def first_captions(self, tokenizer: Tokenizer) -> CaptionExamples:
        """Encode the first caption of each image, so that each image is one example."""
        ids = tokenizer.encode_batch([texts[0] for texts in self.captions])
        return CaptionExamples(self.images, np.arange(len(ids)), ids)


def _padded(right: Sequence[Right | None], length: int) -> Bool[Tensor, "b words cells"] | None:
    """Join the right cells of captions; None where none of them is known."""
    cells = next((table.shape[1] for table in right if table is not None), None)
    if cells is None:
        return None
    joined = torch.zeros(len(right), length, cells, dtype=torch.bool)
    for row, table in enumerate(right):
        if table is not None:
            joined[row, : len(table)] = torch.from_numpy(table)
    return joined
