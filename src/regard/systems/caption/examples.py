"""Example images with a caption and the regions that its words name: generated scenes, and a few photographs."""

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import islice

from PIL import Image

from regard.data.images import open_image
from regard.data.regions import Box
from regard.worlds.scenes import scenes

SIDE = 256
"""Height and width of scenes, which are drawn larger than a model sees them, for people to look at."""
MAX_SIDE = 480
"""Largest height or width of photographs."""
# The photographs that come with scikit-image: a caption, and boxes for words of it, counted from 0.
_PHOTOGRAPHS: dict[str, tuple[str, dict[tuple[int, ...], tuple[Box, ...]]]] = {
    "astronaut": (
        "a smiling woman in an orange suit with a helmet",
        {(1, 2): ((0.05, 0.03, 0.72, 1.0),), (5, 6): ((0.05, 0.29, 0.72, 1.0),), (9,): ((0.54, 0.67, 1.0, 1.0),)},
    ),
    "chelsea": ("a brown cat looks into the camera", {(1, 2): ((0.04, 0.0, 0.9, 1.0),)}),
    "coffee": (
        "a red cup of coffee and a spoon on a table",
        {(1, 2): ((0.28, 0.04, 0.69, 0.78),), (4,): ((0.34, 0.23, 0.62, 0.5),), (7,): ((0.54, 0.16, 0.71, 0.82),)},
    ),
    "rocket": (
        "a white rocket between two tall towers at night",
        {(1, 2): ((0.47, 0.29, 0.53, 0.96),), (4, 5, 6): ((0.0, 0.0, 0.14, 1.0), (0.87, 0.0, 1.0, 1.0))},
    ),
}


@dataclass(frozen=True, eq=False)
class CaptionExample:
    """An image, a right caption of it, and where it shows what the words of the caption name."""

    name: str
    image: Image.Image
    caption: str
    """What the image shows."""
    gold: tuple[tuple[Box, ...] | None, ...]
    """The boxes of each word of the caption in fractions of the image; None for a word that names nothing."""
    model: str
    """A shipped model for such images."""


def examples() -> tuple[CaptionExample, ...]:
    """Images to try: generated scenes, and photographs where scikit-image is installed."""
    return (*scene_examples(), *photographs())


@cache
def scene_examples(count: int = 8) -> tuple[CaptionExample, ...]:
    """The first images of the test split of the world scenes."""
    return tuple(
        CaptionExample(
            f"scene-{number}",
            Image.fromarray(scene.image),
            scene.caption,
            tuple(
                None if region is None else tuple((a / SIDE, b / SIDE, c / SIDE, d / SIDE) for a, b, c, d in region)
                for region in scene.regions
            ),
            "scenes",
        )
        for number, scene in enumerate(islice(scenes(split="test", side=SIDE), count), 1)
    )


@cache
def photographs() -> tuple[CaptionExample, ...]:
    """Photographs that come with scikit-image; none where it is not installed."""
    if find_spec("skimage") is None:
        return ()
    return tuple(_photograph(name) for name in _PHOTOGRAPHS)


def _photograph(name: str) -> CaptionExample:
    caption, regions = _PHOTOGRAPHS[name]
    image = open_image(getattr(import_module("skimage.data"), name)())
    image.thumbnail((MAX_SIDE, MAX_SIDE))
    by_word = {index: boxes for indices, boxes in regions.items() for index in indices}
    gold = tuple(by_word.get(index) for index in range(len(caption.split())))
    return CaptionExample(name, image, caption, gold, "photo-en")
