"""Commands of captioners: caption, and a gallery of the best and the worst."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from regard.errors import OptionError
from regard.systems.caption.config import CaptionOptions
from regard.systems.jobs import Answers, FileOptions, run_job
from regard.systems.output import check_show, read_texts, result_text, say, show_result, writing


def caption(
    *images: str,
    model: Annotated[str, Parameter(alias="-m")] = "photo-en",
    output: Annotated[str | None, Parameter(alias="-o")] = None,
    show: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    cells: bool = False,
    json: bool = False,
    device: str | None = None,
    trust: bool = False,
    files: Annotated[FileOptions | None, Parameter(name="*")] = None,
    options: Annotated[CaptionOptions | None, Parameter(name="*")] = None,
) -> None:
    """Caption images, one line per image, and show where each word looks.

    With --input, the images are those that text files list, one path per line. Into a folder (--output out/), they are
    captioned by several workers; an interrupted command continues when it is run again.

    Parameters
    ----------
    images
        Image files.
    model
        A shipped model (`regard models` lists them) or a model folder.
    output
        Write the captions to this file instead of the standard output, or one file for each input file to a folder.
    show
        Show where each word looked: "-" draws in the terminal, FILE.png, .svg or .pdf saves a figure, FILE.gif an
        animation, FILE.html an interactive page.
    cells
        In --show, draw the weights cell by cell instead of as a smooth overlay.
    json
        Write one JSON object per image, with scores, alternatives and attention.
    device
        cpu, cuda or cuda:N; by default the GPU if there is one.
    trust
        Allow models that import custom code (package.module:Name).
    """
    from regard.data.progress import track
    from regard.systems.caption.model import Captioner

    files, options = files or FileOptions(), options or CaptionOptions()
    keywords = vars(options) if json or show else vars(options) | {"traces": "none"}
    check_show(show, len(images) if images else 2)
    if files.into_folder(output, images):
        run_job(Answers("caption", model, keywords, json, device, trust), files, str(output), label="Captioning")
        return
    if not images and not files.input:
        raise OptionError("Name the images to caption: regard caption IMAGE ...")
    captioner = Captioner.load(model, device=device, trust=trust)
    results = captioner.stream_lines(read_texts(images, files.input, sys.stdin), read_ahead=32, **keywords)
    with writing(output) as out:
        for image, result in track(results, "Captioning", "images", total=len(images) or None, enabled=bool(output)):
            text = result_text(captioner, image, result, options, as_json=json)
            before = f"{image}: " if len(images) > 1 and not json else ""
            say("\n".join(before + line for line in text.split("\n")), out)
            if show is None or result is None:
                continue
            if not result.text:
                raise OptionError(f"The caption of {image} has no words, so there is nothing to show.")
            show_result(result, show, model=model, cells=cells)


def gallery(
    model: str,
    *,
    captions: Path,
    images: Path,
    out: Annotated[Path, Parameter(alias="-o")] = Path("regard-gallery"),
    each: int = 6,
    limit: int = 0,
    beam: int = 5,
    device: str | None = None,
    trust: bool = False,
) -> None:
    """Write a page of the best and worst captions of a test set, graded, with where each word looks.

    The grades are those of the lectures, from "without errors" to "unrelated", given by CIDEr-D against what people
    wrote. The page holds copies of the photographs.

    Parameters
    ----------
    model
        A shipped model or a model folder.
    captions
        A file of captions; with splits, those of the test split are used, or else those of the validation split.
    images
        The folder or archive of the images.
    out
        Folder for the page.
    each
        Number of captions to show for each grade.
    limit
        Number of images to caption; 0 for all.
    beam
        Number of hypotheses of the beam search.
    device
        cpu, cuda or cuda:N; by default the GPU if there is one.
    trust
        Allow models that import custom code (package.module:Name).
    """
    from regard.data.images import Images
    from regard.metrics.captions import GRADES
    from regard.systems.caption.gallery import captions_of, grade_captions
    from regard.systems.caption.model import Captioner
    from regard.viewing.gallery import GalleryCaption, save_gallery

    if each < 1:
        raise OptionError(f"--each must be 1 or more; got {each}.")
    captioner, opened = Captioner.load(model, device=device, trust=trust), Images(images)
    found = grade_captions(captioner, captions, opened, beam=beam, limit=limit)
    say(f"{model}: {found.report}; graded by CIDEr-D, not by people")
    counts = {name: len(found.select(name)) for name in GRADES}
    for name, count in counts.items():
        say(f"  {name:22} {count:6}  {100 * count / len(found):.1f} percent")
    graded = [one for name in GRADES for one in found.examples(name, each)]
    traced = captions_of(captioner, opened, graded, beam=beam)
    entries = [
        GalleryCaption(
            opened.open(one.image), one.text, one.references, one.grade, one.cider_d, one.image, result.trace
        )
        for one, result in zip(graded, traced, strict=True)
    ]
    introduction = "Grades are given by CIDEr-D against what people wrote, not by people."
    title = f"{model} on {images.name}"
    page = save_gallery(entries, out, counts=counts, title=title, introduction=introduction)
    say(f"Wrote {page}", sys.stderr)
