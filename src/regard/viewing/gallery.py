"""A page of captions, from those without errors to those that have nothing to do with their picture."""

import os
from html import escape
from pathlib import Path

from regard.data.images import Images
from regard.errors import OptionError
from regard.metrics.grades import GRADES, MIN_CIDER_D
from regard.systems.caption_gallery import CaptionGallery, Graded, captions_of
from regard.systems.captioner import Caption, Captioner
from regard.viewing import overlay, picture

_SIDE = 480
_STYLE = """
body { font: 16px/1.45 system-ui, sans-serif; color: #1c1c1c; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; }
section > p, header p { color: #555; max-width: 60rem; }
article { display: grid; grid-template-columns: 20rem 1fr; gap: 0 1.5rem; padding: 1.2rem 0;
          border-top: 1px solid #ddd; }
article > img { max-width: 20rem; max-height: 20rem; }
h3 { margin: 0 0 .4rem; } ul { margin: 0 0 .8rem; padding-left: 1.2rem; color: #555; }
figure { margin: 0; } figure img { max-width: 100%; }
@media (max-width: 50rem) { article { grid-template-columns: 1fr; } }
"""


def save_gallery(
    gallery: CaptionGallery,
    model: Captioner,
    images: Images,
    folder: str | os.PathLike[str],
    *,
    each: int = 6,
    beam: int = 5,
    title: str = "Captions",
) -> Path:
    """Write index.html, with at most `each` captions of each grade, and their photographs and overlay strips beside it.

    The photographs are copied, small, into the folder: whether it may be passed on is up to their owners.
    """
    if each < 1:
        raise OptionError(f"A gallery shows one or more captions of each grade; got each={each}.")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    shown = [one for name in GRADES for one in gallery.some(name, each)]
    articles: dict[str, list[str]] = {name: [] for name in GRADES}
    for number, (one, caption) in enumerate(zip(shown, captions_of(model, images, shown, beam=beam), strict=True), 1):
        articles[one.grade].append(_article(one, caption, images, folder, f"{number:03}"))
    page = folder / "index.html"
    sections = "".join(_section(gallery, name, articles[name]) for name in GRADES)
    page.write_text(_page(title, len(gallery), sections), encoding="utf-8")
    return page


def _page(title: str, count: int, sections: str) -> str:
    levels = ", ".join(f"{name} from {least:g} on" for name, least in zip(GRADES, MIN_CIDER_D, strict=False))
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head><body>'
        f"<header><h1>{escape(title)}</h1><p>{count} pictures. The grades are the lectures' words, given by no person "
        f"but by CIDEr-D, the likeness of a caption to what people wrote: {levels}. A true caption in other words is "
        f"graded too low, and a usual sentence with one wrong word too high.</p></header>{sections}</body></html>\n"
    )


def _section(gallery: CaptionGallery, name: str, articles: list[str]) -> str:
    number = len(gallery.of(name))
    share = f"{number} of {len(gallery)} captions, {100 * number / len(gallery):.0f} %"
    which = {GRADES[0]: "the best", GRADES[-1]: "the worst"}.get(name, "from the best to the worst of them")
    told = f"{share}; here {len(articles)}, {which}." if articles else f"{share}."
    return f"<section><h2>{escape(name.capitalize())}</h2><p>{told}</p>{''.join(articles)}</section>"


def _article(one: Graded, caption: Caption, images: Images, folder: Path, stem: str) -> str:
    photograph = images.open(one.image)
    photograph.thumbnail((_SIDE, _SIDE))
    photograph.save(folder / f"{stem}.jpg", quality=88)
    references = "".join(f"<li>{escape(text)}</li>" for text in one.references)
    strip = ""
    # A caption without words has nothing to draw.
    if caption.trace is not None and caption.trace.target:
        picture.save(overlay.strip(caption.trace), folder / f"{stem}-words.png")
        told = "where each word looked"
        strip = f'<figure><img src="{stem}-words.png" alt="{told}" loading="lazy"></figure>'
    return (
        f'<article><img src="{stem}.jpg" alt="{escape(one.image, quote=True)}" loading="lazy"><div>'
        f"<h3>{escape(one.text) or '(nothing)'}</h3><p>CIDEr-D {one.cider_d:.2f}; people wrote:</p>"
        f"<ul>{references}</ul>{strip}</div></article>"
    )
