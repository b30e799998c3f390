"""Drawing digits into images: distorted, placed at random, and cluttered by pieces of other digits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor
from torch.nn import functional

from regard.data.batches import BatchLoader, CostBatches
from regard.errors import OptionError
from regard.layers.glimpse import crop
from regard.worlds.digits.glyphs import Glyphs

INK_LEVEL = 64
"""Pixels of at least this level, of 255, are the ink that a gold box is drawn around."""
# The largest distortion: rotation in radians, shear, and the logarithm of the scale.
_ROTATION, _SHEAR, _SCALE = 0.5, 0.4, 0.25
_DRAWN_AT_ONCE = 1000


@dataclass(frozen=True, eq=False)
class DigitImages:
    """Images with one digit each, its label, and the box around it: left, top, right, bottom in pixels."""

    images: UInt8[Tensor, "n 1 h w"]
    labels: Int[Tensor, "n"]
    boxes: Int[Tensor, "n 4"]

    def __len__(self) -> int:
        return len(self.images)

    def to(self, device: torch.device | str) -> "DigitImages":
        """Move everything to a device."""
        return DigitImages(self.images.to(device), self.labels.to(device), self.boxes.to(device))

    def loader(self, batch_size: int) -> BatchLoader:
        """Batches of images and labels, in order."""

        def take(indices: Sequence[int]) -> tuple[Tensor, Tensor]:
            chosen = torch.tensor(indices).to(self.images.device, non_blocking=True)
            return self.images[chosen], self.labels[chosen]

        return _loader(len(self), batch_size, take, shuffle=False, seed=0)


@dataclass(frozen=True)
class DigitWorld:
    """How images of digits are drawn."""

    image_size: int = 60
    """Height and width of an image in pixels."""
    pieces: int = 0
    """Number of pieces of other digits that clutter an image."""
    piece_size: int = 8
    """Height and width of a piece in pixels."""
    distortion: float = 0.0
    """How much digits are rotated, sheared and scaled at random: 0 not at all, 1 up to 29 degrees, 0.4 and 28 %."""

    def draw(
        self, glyphs: Glyphs, indices: Int[Tensor, "b"], *, generator: torch.Generator | None = None
    ) -> DigitImages:
        """Draw an image of each of these glyphs on the device where they are; nothing waits for a GPU.

        Random numbers come from `generator`, which must be of that device, or from torch's own.
        """
        self.check(glyphs)
        device, count = glyphs.images.device, len(indices)

        def uniform(*shape: int) -> Tensor:
            return torch.rand(shape, device=device, generator=generator)

        digits = glyphs.images[indices][:, None].float()
        if self.distortion:
            digits = self._distorted(digits, uniform(4, count))
        height, width = glyphs.size
        free = self.image_size - width + 1, self.image_size - height + 1
        offsets = torch.stack([(uniform(count) * each).long().clamp(max=each - 1) for each in free], 1)
        boxes = _ink_boxes(digits[:, 0]) + offsets.repeat(1, 2)
        canvas = torch.zeros(count, self.image_size**2, device=device)
        canvas = self._drawn(canvas, digits, offsets[:, None])
        if self.pieces:
            canvas = self._cluttered(canvas, glyphs, uniform)
        images = canvas.round().to(torch.uint8).view(count, 1, self.image_size, self.image_size)
        return DigitImages(images, glyphs.labels[indices], boxes)

    def check(self, glyphs: Glyphs) -> None:
        """Refuse images that are smaller than a digit or than a piece, and pieces larger than a digit."""
        if self.image_size < max(glyphs.size):
            raise OptionError(
                f"Digits of {glyphs.size[0]} x {glyphs.size[1]} pixels do not fit into images of {self.image_size} x "
                f"{self.image_size}. Set a larger image_size."
            )
        if self.pieces and not 1 <= self.piece_size <= min(glyphs.size):
            raise OptionError(
                f"Pieces are cut from digits: piece_size must be from 1 to {min(glyphs.size)}; got {self.piece_size}."
            )

    def fixed(self, glyphs: Glyphs, count: int, *, seed: int) -> DigitImages:
        """Always the same `count` images, of the glyphs in turn: for validation and testing."""
        generator = torch.Generator(glyphs.images.device).manual_seed(seed)
        parts = [
            self.draw(glyphs, indices.to(glyphs.images.device) % len(glyphs), generator=generator)
            for indices in torch.arange(count).split(_DRAWN_AT_ONCE)
        ]
        return DigitImages(
            *(torch.cat([getattr(part, name) for part in parts]) for name in ("images", "labels", "boxes"))
        )

    def loader(self, glyphs: Glyphs, *, examples: int, batch_size: int, seed: int) -> BatchLoader:
        """Batches of fresh images and labels, `examples` of them an epoch, drawn with torch's own random numbers."""
        self.check(glyphs)

        def take(indices: Sequence[int]) -> tuple[Tensor, Tensor]:
            chosen = torch.tensor(indices).to(glyphs.images.device, non_blocking=True)
            drawn = self.draw(glyphs, chosen % len(glyphs))
            return drawn.images, drawn.labels

        return _loader(examples, batch_size, take, shuffle=True, seed=seed)

    def _distorted(self, digits: Float[Tensor, "b 1 h w"], random: Float[Tensor, "4 b"]) -> Float[Tensor, "b 1 h w"]:
        angle, shear, wide, high = (2 * random - 1) * self.distortion
        cos, sin = (_ROTATION * angle).cos(), (_ROTATION * angle).sin()
        wide, high, shear = (_SCALE * wide).exp(), (_SCALE * high).exp(), _SHEAR * shear
        zero = torch.zeros_like(cos)
        rows = ((wide * cos, shear * cos - high * sin, zero), (wide * sin, shear * sin + high * cos, zero))
        matrix = torch.stack([torch.stack(row, -1) for row in rows], 1)
        grid = functional.affine_grid(matrix, list(digits.shape), align_corners=False)
        return functional.grid_sample(digits, grid, align_corners=False)

    def _drawn(
        self, canvas: Float[Tensor, "b p"], parts: Float[Tensor, "bk 1 h w"], offsets: Int[Tensor, "b k 2"]
    ) -> Float[Tensor, "b p"]:
        """Draw k parts into each image at (left, top); where ink meets ink, the brighter one stays."""
        height, width = parts.shape[2:]
        rows = offsets[:, :, 1:] + torch.arange(height, device=parts.device)
        columns = offsets[:, :, :1] + torch.arange(width, device=parts.device)
        places = rows[..., :, None] * self.image_size + columns[..., None, :]
        return canvas.scatter_reduce(1, places.flatten(1), parts.reshape(len(canvas), -1), "amax")

    def _cluttered(self, canvas: Float[Tensor, "b p"], glyphs: Glyphs, uniform: Any) -> Float[Tensor, "b p"]:
        count, size = len(canvas) * self.pieces, self.piece_size
        others = (uniform(count) * len(glyphs)).long().clamp(max=len(glyphs) - 1)
        free = min(glyphs.size) - size + 1
        cut = crop(glyphs.images[others][:, None].float(), (uniform(count, 2) * free).long(), (size, size))
        offsets = (uniform(len(canvas), self.pieces, 2) * (self.image_size - size + 1)).long()
        return self._drawn(canvas, cut, offsets)


def _ink_boxes(digits: Float[Tensor, "b h w"]) -> Int[Tensor, "b 4"]:
    """Left, top, right and bottom of the ink of each image; of an image without ink, all of it."""
    ink = digits >= INK_LEVEL
    ink = ink | ~ink.any(-1, keepdim=True).any(-2, keepdim=True)
    edges = []
    for axis in (1, 2):
        along = ink.any(axis).float()
        length = along.shape[1]
        edges.append((along.argmax(1), length - along.flip(1).argmax(1)))
    (left, right), (top, bottom) = edges
    return torch.stack([left, top, right, bottom], 1)


def _loader(count: int, batch_size: int, take: Any, *, shuffle: bool, seed: int) -> BatchLoader:
    sizes = np.ones((count, 1), dtype=np.int64)
    return BatchLoader(
        range(count), CostBatches(sizes, max_cost=batch_size, shuffle=shuffle, seed=seed), collate_fn=take
    )
