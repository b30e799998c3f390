"""The best and the worst captions of a test set, graded."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from regard.data.captions import Captioned, read_captions
from regard.data.images import PREPARATIONS, ImageReport, Images
from regard.errors import DataError, OptionError
from regard.metrics.captions import caption_words, cider_d
from regard.metrics.grades import GRADES, LEAST, grade
from regard.systems.caption_evaluation import to_score
from regard.systems.captioner import Caption, Captioner
from regard.viewing.gallery import GalleryCaption, save_gallery

BATCH = 32


@dataclass(frozen=True)
class Graded:
    """A picture by its name, the caption that it got, what people wrote of it, and how these agree."""

    image: str
    text: str
    references: tuple[str, ...]
    cider_d: float

    @property
    def grade(self) -> str:
        """One of GRADES."""
        return grade(self.cider_d)


@dataclass(frozen=True)
class CaptionGallery:
    """Captions of pictures, best first."""

    graded: tuple[Graded, ...]
    report: ImageReport
    """Pictures that could not be read."""

    def __len__(self) -> int:
        return len(self.graded)

    def of(self, name: str) -> list[Graded]:
        """Those of a grade, best first."""
        if name not in GRADES:
            raise OptionError(f"There is no grade {name!r}; choose from {', '.join(GRADES)}.")
        return [one for one in self.graded if one.grade == name]

    def some(self, name: str, count: int) -> list[Graded]:
        """At most so many of a grade: the best of the best grade, the worst of the worst, and of others any."""
        all_of_it = self.of(name)
        if len(all_of_it) <= count:
            return all_of_it
        if name == GRADES[0]:
            return all_of_it[:count]
        if name == GRADES[-1]:
            return all_of_it[-count:]
        return [all_of_it[place] for place in np.linspace(0, len(all_of_it) - 1, count).round().astype(int)]


def caption_gallery(
    model: Captioner,
    captions: str | os.PathLike[str],
    images: Images,
    *,
    beam: int = 5,
    limit: int = 0,
    split: str = "",
) -> CaptionGallery:
    """Caption the pictures of a test set, or the first `limit` of them, and grade each caption against its references.

    Pictures are chosen as `evaluate_on_photographs` does. How rare n-grams are, which CIDEr-D needs, is counted in the
    references of all of them, also where few are captioned. A picture that cannot be read is told in the report.
    """
    if limit < 0:
        raise OptionError(f"A limit is a number of pictures, or 0 for all; got limit={limit}.")
    wanted = to_score(read_captions(captions), images, split=split)
    if not wanted:
        raise DataError(f"{images} has none of the pictures of {captions}.")
    report = ImageReport()
    said = dict(_captions(model, images, wanted[: limit or len(wanted)], report, beam=beam))
    if not said:
        raise DataError(f"No picture could be captioned: {report}.")
    references = {one.image: one.captions for one in wanted}
    words = {name: [caption_words(text) for text in texts] for name, texts in references.items()}
    scores = cider_d([caption_words(text) for text in said.values()], [words[name] for name in said], [*words.values()])
    graded = [
        Graded(name, text, references[name], score) for (name, text), score in zip(said.items(), scores, strict=True)
    ]
    return CaptionGallery(tuple(sorted(graded, key=lambda one: -one.cider_d)), report)


def captions_of(model: Captioner, images: Images, graded: Sequence[Graded], *, beam: int = 5) -> Iterator[Caption]:
    """Each of them again, now with what its words looked at."""
    opened = (images.open(one.image) for one in graded)
    for best, *_ in model.caption_each(opened, beam=beam):
        yield best


def write_gallery(
    gallery: CaptionGallery,
    model: Captioner,
    images: Images,
    folder: str | os.PathLike[str],
    *,
    each: int = 6,
    beam: int = 5,
    title: str = "Captions",
) -> Path:
    """Write a page with at most `each` captions of each grade, and where their words attend."""
    if each < 1:
        raise OptionError(f"A gallery shows one or more captions of each grade; got each={each}.")
    shown = [one for name in GRADES for one in gallery.some(name, each)]
    captions = (
        GalleryCaption(images.read(one.image), one.text, one.references, one.grade, one.cider_d, one.image, found.trace)
        for one, found in zip(shown, captions_of(model, images, shown, beam=beam), strict=True)
    )
    levels = ", ".join(f"{name} from {least:g} on" for name, least in zip(GRADES, LEAST, strict=False))
    introduction = (
        "The grades are the lectures' words. They are given by CIDEr-D, the similarity of a caption to what people "
        f"wrote, and not by a person: {levels}. A correct caption in other words is graded too low, and a common "
        "sentence with one wrong word too high."
    )
    counts = {name: len(gallery.of(name)) for name in GRADES}
    return save_gallery(captions, folder, counts=counts, title=title, introduction=introduction)


def _captions(
    model: Captioner, images: Images, wanted: Sequence[Captioned], report: ImageReport, *, beam: int
) -> Iterator[tuple[str, str]]:
    prepare = PREPARATIONS[model.config.fit](model.config.size)
    pixels = ((name, prepare(image)) for name, image in images.stream((one.image for one in wanted), report))
    model.eval()
    while some := list(islice(pixels, BATCH)):
        shown = torch.from_numpy(np.stack([array for _, array in some])).permute(0, 3, 1, 2).to(model.device)
        for (name, _), found in zip(some, model.search(shown, beam=beam), strict=True):
            yield name, model.tokenizer.decode(found[0].tokens)
