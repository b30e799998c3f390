"""What a captioner is shown, and what it should say: pictures in one tensor, captions as ids, batches of both."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from regard.data.batches import BatchLoader, TokenBatches
from regard.data.tokenizer import END, PAD, START
from regard.errors import DataError


@dataclass(frozen=True, eq=False)
class Shown:
    """What is shown of each picture, in one tensor that lies on disk (memory-mapped), in memory or on a GPU.

    Pixels are uint8 (n, 3, h, w). Features are float16 (n, cells, features), or int8 with a step for each feature.
    """

    rows: Shaped[Tensor, "n ..."]
    steps: Float[Tensor, "features"] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def to(self, device: torch.device | str) -> "Shown":
        """All of it on a device."""
        return Shown(self.rows.to(device), None if self.steps is None else self.steps.to(device))

    def take(self, places: Int[Tensor, "b"]) -> Shaped[Tensor, "b ..."]:
        """Some pictures, where they are."""
        some = self.rows[places.to(self.rows.device, non_blocking=True)]
        return some if self.steps is None else some.float() * self.steps


@dataclass(frozen=True, eq=False)
class CaptionBatch:
    """Pictures beside captions: START words END, PAD after the end of each."""

    shown: Shaped[Tensor, "b ..."]
    target: Int[Tensor, "b m"]
    """A decoder reads target[:, :-1] and is to say target[:, 1:]."""
    places: Int[Tensor, "b"]
    """Which picture each is."""

    def __len__(self) -> int:
        return len(self.target)

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> "CaptionBatch":
        """The batch on a device."""
        parts = (part.to(device, non_blocking=non_blocking) for part in (self.shown, self.target, self.places))
        return CaptionBatch(*parts)


@dataclass(frozen=True, eq=False)
class CaptionExamples:
    """Captions as ids, each with the place of its picture among those shown: an example is one caption."""

    shown: Shown
    places: Int[np.ndarray, "n"]
    captions: Sequence[Sequence[int]]

    def __post_init__(self) -> None:
        if len(self.places) != len(self.captions) or not len(self.captions):
            raise DataError(f"Each caption is of a picture; got {len(self.captions)} of {len(self.places)}.")

    def __len__(self) -> int:
        return len(self.captions)

    @cached_property
    def lengths(self) -> Int[np.ndarray, "n 2"]:
        """For TokenBatches: pictures have no length, and captions their number of words."""
        return np.array([(0, len(caption)) for caption in self.captions], dtype=np.int64)

    def batch(self, indices: Sequence[int]) -> CaptionBatch:
        """Some examples: the collate_fn of a loader."""
        captions = [self.captions[index] for index in indices]
        target = np.full((len(captions), 2 + max(map(len, captions))), PAD, dtype=np.int64)
        target[:, 0] = START
        for row, caption in zip(target, captions, strict=True):
            row[1 : 1 + len(caption)] = caption
            row[1 + len(caption)] = END
        places = torch.from_numpy(self.places[indices])
        return CaptionBatch(self.shown.take(places), torch.from_numpy(target), places)

    def loader(self, *, max_tokens: int, shuffle: bool, alike: bool = True, seed: int = 0) -> BatchLoader:
        """Batches of captions of like length, or else of any; it knows where it stands, to go on from there."""
        # To mix them, each is counted as the longest.
        lengths = self.lengths if alike else np.full_like(self.lengths, self.lengths.max(0))
        batches = TokenBatches(lengths, max_tokens=max_tokens, shuffle=shuffle, seed=seed)
        return BatchLoader(range(len(self)), batches, collate_fn=self.batch)
