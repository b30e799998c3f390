"""Glyphs: small images of single digits, light on dark, from MNIST or from fonts."""

import os
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int, UInt8
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from regard.data.labelled_images import LabelledImages, read_mnist
from regard.errors import DataError

DIGITS = tuple("0123456789")
SIZE = 28
"""Height and width of a glyph of a font, as in MNIST."""
_INK = 20
# Faces that a model is trained on, and faces that are held out to validate and to test it.
_TRAIN_FACES = (
    "DejaVuSans", "DejaVuSans-Oblique", "DejaVuSans-BoldOblique", "DejaVuSansMono", "DejaVuSansMono-Bold",
    "DejaVuSansMono-Oblique", "DejaVuSerif", "DejaVuSerif-Bold", "DejaVuSerif-BoldItalic", "STIXGeneral",
    "STIXGeneralBolIta",
)  # fmt: skip
_VALID_FACES = ("DejaVuSansMono-BoldOblique", "STIXGeneralItalic")
_TEST_FACES = ("DejaVuSans-Bold", "DejaVuSerif-Italic", "STIXGeneralBol")


@dataclass(frozen=True, eq=False)
class Glyphs:
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

    def to(self, device: torch.device | str) -> "Glyphs":
        """Move the glyphs to a device."""
        return replace(self, images=self.images.to(device), labels=self.labels.to(device))

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
    import matplotlib as mpl

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
