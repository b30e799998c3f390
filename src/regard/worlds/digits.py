"""Digits: a digit somewhere in an image, perhaps among pieces of other digits, and the box around it.

    glyphs (MNIST, or digits of fonts)  ->  distorted  ->  placed at random  ->  clutter  ->  image, label, box

The digits are those of MNIST where its files are at hand, otherwise glyphs of the DejaVu and STIX fonts that come with
matplotlib. Images are drawn in batches on the device where the glyphs are. The gold box of an image is the smallest one
that holds the ink of its digit: a model that attends to the digit looks there.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor
from torch.nn import functional

from regard.data.batches import BatchLoader, CostBatches, Movable
from regard.data.labelled_images import LabelledImages, read_mnist
from regard.errors import DataError, OptionError
from regard.extras import require
from regard.layers.glimpse import crop

DIGITS = tuple("0123456789")
SIZE = 28
"""Height and width of a glyph of a font, as in MNIST."""
_INK = 20
INK_LEVEL = 64
"""Pixels of at least this level, of 255, are the ink that a gold box is drawn around."""
# The largest distortion: rotation in radians, shear, and the logarithm of the scale.
_ROTATION, _SHEAR, _SCALE = 0.5, 0.4, 0.25
_DRAWN_AT_ONCE = 1000
# Faces that a model is trained on, and faces that are held out to validate and to test it.
_TRAIN_FACES = (
    "DejaVuSans", "DejaVuSans-Oblique", "DejaVuSans-BoldOblique", "DejaVuSansMono", "DejaVuSansMono-Bold",
    "DejaVuSansMono-Oblique", "DejaVuSerif", "DejaVuSerif-Bold", "DejaVuSerif-BoldItalic", "STIXGeneral",
    "STIXGeneralBolIta",
)  # fmt: skip
_VALID_FACES = ("DejaVuSansMono-BoldOblique", "STIXGeneralItalic")
_TEST_FACES = ("DejaVuSans-Bold", "DejaVuSerif-Italic", "STIXGeneralBol")


@dataclass(frozen=True, eq=False)
class Glyphs(Movable):
    """Images of digits of one size, and which digit each is."""

    images: UInt8[Tensor, "n h w"]
    labels: Int[Tensor, "n"]

    def __post_init__(self) -> None:
        if not len(self.images) or len(self.images) != len(self.labels):
            raise DataError(
                f"Glyphs need one label per image, and at least one; got {len(self.images)} images and "
                f"{len(self.labels)} labels."
            )

    def __len__(self) -> int:
        return len(self.images)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return self.images.shape[1], self.images.shape[2]

    @classmethod
    def from_labelled(cls, images: LabelledImages) -> "Glyphs":
        """The grey images of a data set in the format of MNIST."""
        return cls(images.images[:, 0], images.labels)


def mnist_glyphs(folder: str | os.PathLike[str], *, held_out: int = 5000) -> tuple[Glyphs, Glyphs, Glyphs]:
    """The digits of MNIST to train, validate and test with; `held_out` training digits are for validation."""
    train, test = read_mnist(folder)
    train, valid = train.hold_out(max(1, min(held_out, len(train) // 10)))
    return Glyphs.from_labelled(train), Glyphs.from_labelled(valid), Glyphs.from_labelled(test)


@cache
def font_glyphs() -> tuple[Glyphs, Glyphs, Glyphs]:
    """The digits of fonts to train, validate and test with; the three have no face in common."""
    return _faces(_TRAIN_FACES), _faces(_VALID_FACES), _faces(_TEST_FACES)


def _faces(names: tuple[str, ...]) -> Glyphs:
    images = [_glyph(name, digit) for name in names for digit in DIGITS]
    labels = torch.arange(len(DIGITS)).repeat(len(names))
    return Glyphs(torch.from_numpy(np.stack(images)), labels)


def _glyph(face: str, digit: str) -> UInt8[np.ndarray, "h w"]:
    """A digit, its ink centred and 20 pixels high."""
    mpl = require("The digits of fonts", "matplotlib")

    path = Path(mpl.get_data_path()) / "fonts" / "ttf" / f"{face}.ttf"
    if not path.is_file():
        raise DataError(f"There is no font {path}, which comes with matplotlib. Install matplotlib again.")
    # Drawn at four times the size and averaged, since small type is hinted to whole pixels.
    large = Image.new("L", (8 * SIZE, 8 * SIZE))
    font = ImageFont.truetype(path, 6 * _INK)
    ImageDraw.Draw(large).text((4 * SIZE, 4 * SIZE), digit, fill=255, font=font, anchor="mm")
    ink = large.crop(large.getbbox())
    scale = _INK / max(ink.size)
    small = ink.resize((max(1, round(ink.width * scale)), max(1, round(ink.height * scale))), Image.Resampling.BOX)
    glyph = Image.new("L", (SIZE, SIZE))
    glyph.paste(small, ((SIZE - small.width) // 2, (SIZE - small.height) // 2))
    return np.array(glyph)


@dataclass(frozen=True, eq=False)
class DigitImages(Movable):
    """Images with one digit each, its label, and the box around it: left, top, right, bottom in pixels."""

    images: UInt8[Tensor, "n 1 h w"]
    labels: Int[Tensor, "n"]
    boxes: Int[Tensor, "n 4"]

    def __len__(self) -> int:
        return len(self.images)

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
        indices = rows[..., :, None] * self.image_size + columns[..., None, :]
        return canvas.scatter_reduce(1, indices.flatten(1), parts.reshape(len(canvas), -1), "amax")

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
