"""A further command of captioners: a gallery of the best and the worst captions."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from regard.cli.io import Flag, check_folder, mark_folder, print_error, print_line
from regard.errors import OptionError


def gallery(
    model: str,
    *,
    captions: Path,
    images: Path,
    out: Annotated[Path, Parameter(alias="-o")] = Path("regard-gallery"),
    each: int = 6,
    limit: int = 0,
    beam: int = 5,
    overwrite: Flag = False,
    device: str | None = None,
    trust: Flag = False,
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
    overwrite
        Write into a folder that holds other files.
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
    check_folder(out, overwrite=overwrite)
    captioner, opened = Captioner.load(model, device=device, trust=trust), Images(images)
    found = grade_captions(captioner, captions, opened, beam=beam, limit=limit)
    print_line(f"{model}: {found.report}; graded by CIDEr-D, not by people")
    counts = {name: len(found.select(name)) for name in GRADES}
    for name, count in counts.items():
        print_line(f"  {name:22} {count:6}  {100 * count / len(found):.1f} percent")
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
    page = save_gallery(entries, mark_folder(out), counts=counts, title=title, introduction=introduction)
    print_error(f"Wrote {page}")
