"""A page of captions by grade, each with its image and where its words attend."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.data.images import open_image
from regard.errors import OptionError
from regard.files import replacing, write_text
from regard.trace import Trace

_MAX_SIDE = 480
_JPEG_QUALITY = 88


@dataclass(frozen=True)
class GalleryCaption:
    """A caption to show: its image, its text, the references that people wrote, and its grade."""

    image: Any
    """A path, the bytes of a file, a Pillow image or an array."""
    text: str
    references: tuple[str, ...]
    grade: str
    score: float
    name: str = ""
    """A name for the image."""
    trace: Trace | None = None
    """The attention of the caption, if its model has any."""


@dataclass(frozen=True)
class _Shown:
    caption: GalleryCaption
    photograph: str
    figure: str


@dataclass(frozen=True)
class _Section:
    name: str
    count: int
    percent: int
    captions: tuple[_Shown, ...]


def save_gallery(
    captions: Iterable[GalleryCaption],
    folder: str | os.PathLike[str],
    *,
    counts: Mapping[str, int],
    title: str = "Captions",
    introduction: str = "",
    score_name: str = "CIDEr-D",
) -> Path:
    """Write index.html with a section for each grade, and the images and word-by-word figures beside it.

    `counts` says how many captions have each grade, those not shown included, and gives the order of the sections;
    within a section the captions keep their order. `introduction` says how the grades were given. The images are
    copied, reduced, into the folder: whether it may be passed on depends on their licences. Returns the page's path.
    """
    from jinja2 import Environment, PackageLoader

    folder = Path(folder)
    shown: dict[str, list[_Shown]] = {grade: [] for grade in counts}
    for number, caption in enumerate(captions, 1):
        if caption.grade not in shown:
            raise OptionError(f"There is no grade {caption.grade!r} in counts, which has {', '.join(counts)}.")
        shown[caption.grade].append(_save_images(caption, folder, f"{number:03}"))
    total = sum(counts.values())
    sections = [
        _Section(grade, count, round(100 * count / max(total, 1)), tuple(shown[grade]))
        for grade, count in counts.items()
    ]
    pages = Environment(loader=PackageLoader("regard.viewing"), autoescape=True, trim_blocks=True)
    page = pages.get_template("gallery.html").render(
        title=title, introduction=introduction, total=total, score_name=score_name, sections=sections
    )
    return write_text(folder / "index.html", page)


def _save_images(caption: GalleryCaption, folder: Path, stem: str) -> _Shown:
    from regard.viewing.caption_figures import word_by_word
    from regard.viewing.figures import save

    photograph = open_image(caption.image, name=caption.name)
    photograph.thumbnail((_MAX_SIDE, _MAX_SIDE))
    with replacing(folder / f"{stem}.jpg") as draft:
        photograph.save(draft, format="jpeg", quality=_JPEG_QUALITY)
    figure = ""
    # A caption without words has nothing to draw.
    if caption.trace is not None and caption.trace.target:
        figure = save(word_by_word(caption.trace), folder / f"{stem}-words.png").name
    return _Shown(caption, f"{stem}.jpg", figure)
