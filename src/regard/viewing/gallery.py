"""A page of captions by grade, each with its image and where its words attend."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from regard.data.images import open_image
from regard.errors import OptionError
from regard.files import replacing, write_text
from regard.trace import Trace
from regard.viewing.image import ImageView

_MAX_SIDE = 480
_JPEG_QUALITY = 88


_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
body { font: 16px/1.45 system-ui, sans-serif; color: #1c1c1c; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; }
section > p, header p { color: #555; max-width: 60rem; }
article { display: grid; grid-template-columns: 20rem 1fr; gap: 0 1.5rem; padding: 1.2rem 0; }
article { border-top: 1px solid #ddd; }
article > img { max-width: 20rem; max-height: 20rem; }
h3 { margin: 0 0 .4rem; }
ul { margin: 0 0 .8rem; padding-left: 1.2rem; color: #555; }
figure { margin: 0; }
figure img { max-width: 100%; }
@media (max-width: 50rem) { article { grid-template-columns: 1fr; } }
</style>
</head>
<body>
<header>
<h1>$title</h1>
<p>$introduction</p>
</header>
$sections
</body>
</html>
""")
_SECTION = Template("""<section>
<h2>$grade</h2>
<p>$counted.</p>
$captions
</section>""")
_CAPTION = Template("""<article>
<img src="$photograph" alt="$name" loading="lazy">
<div>
<h3>$text</h3>
<p>$score; people wrote:</p>
<ul>
$references
</ul>
$figure
</div>
</article>""")


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
    folder = Path(folder)
    shown: dict[str, list[str]] = {grade: [] for grade in counts}
    for number, caption in enumerate(captions, 1):
        if caption.grade not in shown:
            raise OptionError(f"There is no grade {caption.grade!r} in counts, which has {', '.join(counts)}.")
        shown[caption.grade].append(_article(caption, folder, f"{number:03}", score_name))
    total = sum(counts.values())
    sections = []
    for grade, count in counts.items():
        here = f"; {len(shown[grade])} of them here" if shown[grade] else ""
        counted = f"{count} of {total} captions, {round(100 * count / max(total, 1))} %{here}"
        parts = {"grade": escape(grade.capitalize()), "counted": counted, "captions": "\n".join(shown[grade])}
        sections.append(_SECTION.substitute(parts))
    introduction = escape(f"{total} images. {introduction}".rstrip())
    page = _PAGE.substitute(title=escape(title), introduction=introduction, sections="\n".join(sections))
    return write_text(folder / "index.html", page)


def _article(caption: GalleryCaption, folder: Path, stem: str, score_name: str) -> str:
    """A caption as HTML, its image and the figure of its words saved beside the page."""
    photograph = open_image(caption.image, name=caption.name)
    photograph.thumbnail((_MAX_SIDE, _MAX_SIDE))
    with replacing(folder / f"{stem}.jpg") as draft:
        photograph.save(draft, format="jpeg", quality=_JPEG_QUALITY)
    figure = ""
    # A caption without words has nothing to draw.
    if caption.trace is not None and caption.trace.target:
        saved = ImageView(caption.trace).save(folder / f"{stem}-words.png", title="")
        figure = f'<figure><img src="{saved.name}" alt="where each word attends" loading="lazy"></figure>'
    return _CAPTION.substitute(
        photograph=f"{stem}.jpg",
        name=escape(caption.name),
        text=escape(caption.text or "(no words)"),
        score=escape(f"{score_name} {caption.score:.2f}"),
        references="\n".join(f"<li>{escape(reference)}</li>" for reference in caption.references),
        figure=figure,
    )
