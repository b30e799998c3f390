"""Random views of training images, whose features are stored: augmentation for an encoder that is not trained."""

from dataclasses import dataclass, replace
from random import Random

import numpy as np
import torch
from jaxtyping import Int
from PIL import Image, ImageEnhance, ImageOps
from torch import Tensor

from regard.data.batches import Movable
from regard.data.captioned_images import CaptionBatch, ImageTensors
from regard.data.images import Images
from regard.data.regions import Box

AREA = (0.5, 1.0)
"""Share of the image that a view shows."""
ASPECT = 1.2
"""Largest factor by which a view is wider or taller than the image."""
COLOUR = 0.3
"""Largest change of brightness, contrast and saturation."""
SEPARATOR = "#"


@dataclass(frozen=True)
class View:
    """A part of an image, perhaps mirrored, in slightly other colours."""

    box: Box
    is_mirrored: bool
    brightness: float
    contrast: float
    saturation: float

    @classmethod
    def draw(cls, image: str, number: int) -> "View":
        """The view of an image with this number, the same whenever it is drawn."""
        random = Random(f"{image} {number}")  # noqa: S311 - pictures, not secrets
        area, aspect = random.uniform(*AREA), ASPECT ** random.uniform(-1, 1)
        width, height = min(1.0, (area * aspect) ** 0.5), min(1.0, (area / aspect) ** 0.5)
        left, top = random.uniform(0, 1 - width), random.uniform(0, 1 - height)
        colours = [random.uniform(1 - COLOUR, 1 + COLOUR) for _ in range(3)]
        return cls((left, top, left + width, top + height), random.random() < 0.5, *colours)

    def __call__(self, image: Image.Image) -> Image.Image:
        """The view of an image."""
        left, top, right, bottom = self.box
        width, height = image.size
        seen = image.crop((round(left * width), round(top * height), round(right * width), round(bottom * height)))
        for enhance, factor in (
            (ImageEnhance.Brightness, self.brightness),
            (ImageEnhance.Contrast, self.contrast),
            (ImageEnhance.Color, self.saturation),
        ):
            seen = enhance(seen).enhance(factor)
        return ImageOps.mirror(seen) if self.is_mirrored else seen

    def cells(self, grid: tuple[int, int]) -> Int[np.ndarray, "cells"]:
        """For each cell of the view, the cell of the whole image in which its centre lies."""
        left, top, right, bottom = self.box
        rows, columns = grid
        across = (np.arange(columns) + 0.5) / columns
        across = left + (right - left) * (1 - across if self.is_mirrored else across)
        down = top + (bottom - top) * (np.arange(rows) + 0.5) / rows
        return ((down * rows).astype(np.int64)[:, None] * columns + (across * columns).astype(np.int64)).ravel()


class ViewedImages(Images):
    """The views of images by name: "dog.jpg#3" is the third view of dog.jpg."""

    def open(self, name: str, **options: int) -> Image.Image:
        """Open a view."""
        image, number = name.rsplit(SEPARATOR, 1)
        return View.draw(image, int(number))(super().open(image, **options))


def names_of_views(images: list[str], count: int) -> list[str]:
    """The names of the first views of each image."""
    return [f"{image}{SEPARATOR}{number}" for image in images for number in range(count)]


@dataclass(frozen=True, eq=False)
class Views(Movable):
    """The features of `count` views of each training image, those of an image one after another."""

    images: ImageTensors
    cells: Int[Tensor, "views cells"]
    """For each cell of a view, the cell of the whole image that it shows."""
    count: int

    def draw(self, batch: CaptionBatch) -> CaptionBatch:
        """Replace each image of a batch by one of its views or leave it, with the same probability for each."""
        device = batch.target.device
        numbers = torch.randint(self.count + 1, (len(batch),), device=device)
        is_view = numbers > 0
        indices = batch.indices.to(device) * self.count + (numbers - 1).clamp_min(0)
        views = self.images.take(indices).to(batch.images)
        images = torch.where(is_view[:, None, None], views, batch.images)
        if batch.right is None:
            return replace(batch, images=images)
        same = torch.arange(batch.right.shape[2], device=device)
        cells = torch.where(is_view[:, None], self.cells[indices.to(self.cells.device)].to(device), same)
        right = batch.right.gather(2, cells[:, None].expand(-1, batch.right.shape[1], -1))
        return replace(batch, images=images, right=right)
