"""The options of `caption`, and what a model is evaluated on."""

from dataclasses import dataclass
from typing import Literal

from regard.config import Count, PositiveInt
from regard.errors import OptionError
from regard.search.options import LengthPenalty, Search


@dataclass(frozen=True)
class CaptionOptions(Search):
    """Options of `caption`: those of the search."""

    max_length: PositiveInt | None = 30
    length_penalty: LengthPenalty = 0.6
    """Exponent of the length by which log-probabilities are divided; 1 would favour long captions."""
    traces: Literal["main", "none"] = "main"
    """Whether to report what each word attended to."""


@dataclass(frozen=True)
class CaptionTest(CaptionOptions):
    """What a captioner is evaluated on."""

    captions: str = ""
    """File with the captions that people wrote (Flickr, COCO or Karpathy format, or a table)."""
    images: str = ""
    """Folder or archive with the images, or a store of their features."""
    split: str = ""
    """Which split of the captions to use; by default test, or valid where there is no test."""
    regions: str = ""
    """File with boxes around what phrases of the captions name, or the folder of Flickr30k Entities: measures whether
    the attention lies on them."""
    regions_side: Count = 500
    """Longer side of the images, in the pixels of the table's boxes; 0 where boxes are in pixels of the images
    themselves."""
    world: Literal["", "scenes"] = ""
    """Instead of files, images of the generated world scenes, where it is known what each word should look at."""
    count: PositiveInt = 1000
    """Number of images of the world."""
    meteor: bool = True
    """Whether to compute METEOR, which is slow."""

    def check(self) -> None:
        """Rules between the fields."""
        super().check()
        if bool(self.captions) != bool(self.images):
            raise OptionError("captions and images belong together; give both, or the world scenes.")
        if self.regions and not self.captions:
            raise OptionError("regions belong to captions and images; give all three.")
        if bool(self.captions) == bool(self.world):
            raise OptionError("Give a test set: captions and images, or the world scenes.")
