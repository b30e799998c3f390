"""Boxes around what the phrases of captions name: a table, or the files of Flickr30k Entities (Plummer et al. 2015)."""

import os
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path, PurePath
from xml.etree import ElementTree

import numpy as np
from jaxtyping import Float

from regard.data.images import SUFFIXES
from regard.data.text import parsed, read_lines, reading
from regard.errors import DataError, counted

FLICKR_LONGER_SIDE = 500
"""Longer side in pixels of the images of Flickr8k and Flickr30k, which their boxes refer to."""
_SLACK = 3
"""Pixels by which a box may exceed its image: the shorter side is rounded where an image is resized."""
_MARKED = re.compile(r"\[/EN#(\d+)/\S+ ([^\]]*)\]")
Box = tuple[float, float, float, float]
"""Left, top, right and bottom; as fractions of the image from 0 to 1."""


@dataclass(frozen=True)
class Phrase:
    """A phrase of a caption, and boxes around what it names."""

    caption: int
    """Which of the captions of its image, counted from 0."""
    start: int
    """Character of the caption at which the phrase begins."""
    text: str
    boxes: tuple[Box, ...]
    """In pixels of an image whose longer side is `longer_side`."""
    longer_side: float = FLICKR_LONGER_SIDE
    """0 where the boxes are in pixels of the image itself."""
    place: str = ""
    """The table and the image, for errors; boxes of other origin are not checked."""

    def end_in(self, caption: str) -> int | None:
        """The character after the phrase in the caption; None where the caption does not have the phrase."""
        folded, phrase = caption.casefold(), self.text.casefold()
        # Where each character of the caption begins in the folded caption: folding changes the length of "İ".
        positions = [0, *accumulate(len(letter.casefold()) for letter in caption)]
        start = positions[min(self.start, len(caption))]
        if not folded.startswith(phrase, start):
            start = folded.find(phrase)
        return None if start < 0 else bisect_left(positions, start + len(phrase))

    def fractions(self, width: int, height: int) -> tuple[Box, ...]:
        """The boxes as fractions of an image of this shape, at any resolution; of those of a table, none is outside."""
        scale = max(width, height) / self.longer_side if self.longer_side else 1
        slack = _SLACK * max(scale, 1)
        for box in self.boxes if self.place else ():
            if box[2] * scale > width + slack or box[3] * scale > height + slack:
                raise DataError(self._outside(box, width, height))
        return tuple(
            (left * scale / width, top * scale / height, right * scale / width, bottom * scale / height)
            for left, top, right, bottom in self.boxes
        )

    def _outside(self, box: Box, width: int, height: int) -> str:
        corners = _listed((box[0] + 1, box[1] + 1, *box[2:]))
        unit = f"an image whose longer side is {self.longer_side:g}" if self.longer_side else "the image"
        return (
            f"{self.place}: the box of {self.text!r:.60} with the corners {corners}, taken as pixels of {unit}, lies "
            f"outside of the image, which has {width} x {height} pixels. Set regions_side (regard train: "
            "--data.regions-side; regard evaluate: --regions-side) to the longer side of the images that the boxes "
            "were drawn in, or to 0 where these are the images given here."
        )


Regions = dict[str, tuple[Phrase, ...]]
"""The phrases of images that have boxes, by the name of the image without its suffix."""


def image_key(name: str) -> str:
    """The name of an image in `Regions`: without its folder, and without a suffix such as .jpg."""
    path = PurePath(name)
    return path.stem if path.suffix.lower() in SUFFIXES else path.name


def read_regions(path: str | os.PathLike[str], *, longer_side: int = FLICKR_LONGER_SIDE) -> Regions:
    """Read a table of boxes (plain, .gz or .xz), or the folder of Flickr30k Entities with Annotations and Sentences.

    A row of the table has: image, caption (counted from 0), character at which the phrase begins, phrase, x1, y1, x2,
    y2. The corners are pixels, counted from 1 and inside the box, of an image whose longer side is `longer_side`, or
    with 0 of the image itself; Flickr30k Entities states the sizes of its images. A phrase with several boxes has a row
    for each. Phrases whose position in a caption is unknown (-1) are left out.
    """
    path = Path(path)
    regions = _read_entities(path) if path.is_dir() else _read_table(path, longer_side)
    if not regions:
        raise DataError(f"{path} has no phrase with a box.")
    return regions


def cover(boxes: Sequence[Box], grid: tuple[int, int]) -> Float[np.ndarray, "n"]:
    """Which fraction of each cell of a grid lies inside of any of the boxes, row by row."""
    rows, columns = grid
    # Overlaps of boxes count once, so that areas are counted on a finer grid.
    finer = 16
    inside = np.zeros((rows * finer, columns * finer), dtype=bool)
    ys = (np.arange(rows * finer) + 0.5) / (rows * finer)
    xs = (np.arange(columns * finer) + 0.5) / (columns * finer)
    for left, top, right, bottom in boxes:
        inside |= ((ys >= top) & (ys <= bottom))[:, None] & ((xs >= left) & (xs <= right))[None]
    covered: np.ndarray = inside.reshape(rows, finer, columns, finer).mean((1, 3)).reshape(-1)
    return covered


def _read_table(path: Path, longer_side: int) -> Regions:
    boxes: dict[tuple[str, int, int, str], list[Box]] = defaultdict(list)
    expected = "image, caption, character, phrase, x1, y1, x2 and y2, separated by tabs"
    for image, caption, start, text, box in parsed(path, _row, expected):
        if caption >= 0 and start >= 0:
            boxes[image, caption, start, text].append(box)
    return _grouped(
        (image, Phrase(caption, start, text, tuple(found), float(longer_side), f"{path}, image {image}"))
        for (image, caption, start, text), found in boxes.items()
    )


def _row(line: str) -> tuple[str, int, int, str, Box]:
    image, caption, start, text, *corners = line.split("\t")
    if len(corners) != 4:
        raise ValueError(f"it has {counted(len(corners) + 4, 'column')}")
    return image_key(image), int(caption), int(start), text, _box([float(corner) for corner in corners])


def _read_entities(folder: Path) -> Regions:
    notes, sentences = folder / "Annotations", folder / "Sentences"
    if not (notes.is_dir() and sentences.is_dir()):
        raise DataError(f"{folder} is not Flickr30k Entities, which has the folders Annotations and Sentences.")

    def phrases() -> Iterator[tuple[str, Phrase]]:
        for path in sorted(sentences.glob("*.txt")):
            boxes, longer_side = _read_annotation(notes / f"{path.stem}.xml")
            for caption, line in enumerate(read_lines(path)):
                yield from ((path.stem, phrase) for phrase in _marked(line, caption, boxes, longer_side))

    return _grouped(phrases())


def _marked(line: str, caption: int, boxes: dict[str, list[Box]], longer_side: float) -> Iterator[Phrase]:
    """The phrases of a line such as "[/EN#1/people A man] in [/EN#2/clothing a hat] .", where they have boxes."""
    removed = 0
    for found in _MARKED.finditer(line):
        entity, text = found.groups()
        start = found.start() - removed
        removed += len(found.group()) - len(text)
        if entity in boxes:
            yield Phrase(caption, start, text, tuple(boxes[entity]), longer_side)


def _read_annotation(path: Path) -> tuple[dict[str, list[Box]], float]:
    with reading(path, "is not an annotation of Flickr30k Entities"):
        text = path.read_text(encoding="utf-8")
        if "<!DOCTYPE" in text or "<!ENTITY" in text:
            raise DataError(f"{path} declares a document type, which an annotation does not need.")
        root = ElementTree.fromstring(text)  # noqa: S314  (without declarations, nothing can be expanded)
        longer_side = max(float(root.findtext(f"size/{side}", "0")) for side in ("width", "height"))
        boxes: dict[str, list[Box]] = defaultdict(list)
        for thing in root.iter("object"):
            for corners in thing.iter("bndbox"):
                box = _box([float(corners.findtext(name, "")) for name in ("xmin", "ymin", "xmax", "ymax")])
                for name in thing.iter("name"):
                    boxes[name.text or ""].append(box)
    if longer_side <= 0:
        raise DataError(f"{path} does not state the size of its image.")
    return boxes, longer_side


def _box(corners: Sequence[float]) -> Box:
    left, top, right, bottom = corners
    if not (np.isfinite(corners).all() and 0 <= left <= right and 0 <= top <= bottom):
        raise ValueError(f"a box has 0 <= x1 <= x2 and 0 <= y1 <= y2, not {_listed(corners)}")
    return max(left - 1, 0), max(top - 1, 0), right, bottom


def _listed(corners: Sequence[float]) -> str:
    return ", ".join(f"{corner:g}" for corner in corners)


def _grouped(phrases: Iterator[tuple[str, Phrase]]) -> Regions:
    by_image: dict[str, list[Phrase]] = defaultdict(list)
    for image, phrase in phrases:
        by_image[image].append(phrase)
    return {image: tuple(found) for image, found in by_image.items()}
