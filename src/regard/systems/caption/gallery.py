"""The best and the worst captions of a test set, graded."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch

from regard.data.captions import ImageCaptions, read_captions
from regard.data.images import ImageReport, Images
from regard.errors import DataError, OptionError
from regard.metrics.captions import GRADES, caption_words, cider_d, grade
from regard.systems.caption.captions import Caption
from regard.systems.caption.config import CaptionOptions
from regard.systems.caption.data import to_score
from regard.systems.caption.model import Captioner

BATCH = 32


@dataclass(frozen=True)
class GradedCaption:
    """An image by its name, the caption that it got, what people wrote of it, and how well these agree."""

    image: str
    text: str
    references: tuple[str, ...]
    cider_d: float

    @property
    def grade(self) -> str:
        """One of GRADES."""
        return grade(self.cider_d)


@dataclass(frozen=True)
class GradedCaptions:
    """Captions of images, best first."""

    graded: tuple[GradedCaption, ...]
    report: ImageReport
    """Images that could not be read."""

    def __len__(self) -> int:
        return len(self.graded)

    def select(self, name: str) -> list[GradedCaption]:
        """The captions of a grade, best first."""
        if name not in GRADES:
            raise OptionError(f"There is no grade {name!r}; choose from {', '.join(GRADES)}.")
        return [one for one in self.graded if one.grade == name]

    def examples(self, name: str, count: int) -> list[GradedCaption]:
        """At most `count` captions of a grade: the best of the best grade, the worst of the worst, others evenly."""
        all_of_grade = self.select(name)
        if len(all_of_grade) <= count:
            return all_of_grade
        if name == GRADES[0]:
            return all_of_grade[:count]
        if name == GRADES[-1]:
            return all_of_grade[-count:]
        return [all_of_grade[index] for index in np.linspace(0, len(all_of_grade) - 1, count).round().astype(int)]


def grade_captions(
    model: Captioner,
    captions: str | os.PathLike[str],
    images: Images,
    *,
    beam: int = 5,
    limit: int = 0,
    split: str = "",
) -> GradedCaptions:
    """Caption the images of a test set, or the first `limit` of them, and grade each caption against its references.

    The document frequencies of CIDEr-D come from the references of all images of the test set, also where few are
    captioned. An image that cannot be read is listed in the report.
    """
    if limit < 0:
        raise OptionError(f"limit must be a number of images, or 0 for all; got {limit}.")
    captioned = to_score(read_captions(captions), images, split=split)
    if not captioned:
        raise DataError(f"{images} has none of the images of {captions}.")
    report = ImageReport()
    predictions = dict(_captions(model, images, captioned[: limit or len(captioned)], report, beam=beam))
    if not predictions:
        raise DataError(f"No image could be captioned: {report}.")
    references = {one.image: one.captions for one in captioned}
    words = {name: [caption_words(text) for text in texts] for name, texts in references.items()}
    scores = cider_d(
        [caption_words(text) for text in predictions.values()],
        [words[name] for name in predictions],
        [*words.values()],
    )
    graded = [
        GradedCaption(name, text, references[name], score)
        for (name, text), score in zip(predictions.items(), scores, strict=True)
    ]
    return GradedCaptions(tuple(sorted(graded, key=lambda one: -one.cider_d)), report)


def captions_of(model: Captioner, images: Images, graded: Sequence[GradedCaption], *, beam: int = 5) -> list[Caption]:
    """Caption these images again, now with what each word attended to."""
    return model.caption([images.open(one.image) for one in graded], beam=beam)


def _captions(
    model: Captioner, images: Images, captioned: Sequence[ImageCaptions], report: ImageReport, *, beam: int
) -> Iterator[tuple[str, str]]:
    opened = images.stream((one.image for one in captioned), report)
    while group := list(islice(opened, BATCH)):
        pixels = model.prepare([image for _, image in group]).to(model.device)
        with torch.inference_mode():
            found = model.search(pixels, CaptionOptions(beam=beam))
        for (name, _), best in zip(group, found, strict=True):
            yield name, model.tokenizer.decode(best[0].tokens)
