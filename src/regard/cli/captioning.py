"""Commands about captions."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from regard.cli.output import say
from regard.errors import OptionError

if TYPE_CHECKING:
    from regard.trace import Trace


def caption(
    *pictures: Path,
    model: Annotated[str, Parameter(alias="-m")] = "photo-en",
    beam: int = 5,
    show: Path | None = None,
    cells: bool = False,
    json: bool = False,
) -> None:
    """Say what pictures show, a line for each, and where each word looked.

    Parameters
    ----------
    pictures
        Picture files.
    model
        A shipped model (`regard models` lists them) or a model folder.
    beam
        How many captions the search keeps.
    show
        Save the words over the picture here (.png, .svg, .pdf, or .gif for a film); "-" draws them in the terminal.
    cells
        In --show, the weights as they are, cell by cell, instead of a soft light.
    json
        One JSON object per picture, with what each word attended to.
    """
    from json import dumps

    from regard.systems.captioner import Captioner
    from regard.systems.shipped import load_as

    if not pictures:
        raise OptionError("Say which pictures to caption: regard caption PICTURE ...")
    if show is not None and len(pictures) > 1 and str(show) != "-":
        raise OptionError(f"--show {show} is for one picture; got {len(pictures)}. Use --json for many.")
    captioner = load_as(Captioner, model)
    for picture, (best, *_) in zip(pictures, captioner.caption_each(pictures, beam=beam), strict=True):
        if json:
            trace = None if best.trace is None else best.trace.to_dict()
            fields = {"picture": str(picture), "caption": best.text, "score": best.score, "trace": trace}
            say(dumps(fields, ensure_ascii=False))
        else:
            say(f"{picture}: {best.text}" if len(pictures) > 1 else best.text)
        if show is None:
            continue
        if best.trace is None:
            raise OptionError(f"{model} has no attention to show: it reads a picture once.")
        if not best.trace.target:
            raise OptionError(f"{model} says nothing of {picture}, so that there is no word to show.")
        _show(best.trace, show, cells=cells)


def _show(trace: "Trace", show: Path, *, cells: bool) -> None:
    from rich.console import Console

    from regard.viewing.view import view

    if str(show) == "-":
        console = Console()
        console.print(view(trace).terminal(width=console.width, cells=cells, colour=console.color_system is not None))
    else:
        say(f"Wrote {view(trace).save(show, cells=cells)}")


def gallery(
    model: str,
    captions: Path,
    pictures: Path,
    *,
    out: Annotated[Path, Parameter(alias="-o")] = Path("regard-gallery"),
    each: int = 6,
    limit: int = 0,
    beam: int = 5,
) -> None:
    """Make a page of the best and the worst captions of a test set, graded, with what each word looked at.

    Grades are those of the lectures, from "without errors" to "unrelated", given by CIDEr-D against what people wrote.
    The page holds copies of the photographs.

    Parameters
    ----------
    model
        A shipped model or a model folder.
    captions
        A file of captions; of one with splits, those of the test are taken that have pictures, or of the validation.
    pictures
        The folder or archive of the pictures.
    out
        Folder for the page.
    each
        How many captions of each grade to show.
    limit
        How many pictures to caption; 0 for all.
    beam
        How many captions the search keeps.
    """
    from regard.data.images import Images
    from regard.metrics.grades import GRADES
    from regard.systems.caption_gallery import caption_gallery, write_gallery
    from regard.systems.captioner import Captioner
    from regard.systems.shipped import load_as

    captioner, images = load_as(Captioner, model), Images(pictures)
    found = caption_gallery(captioner, captions, images, beam=beam, limit=limit)
    say(f"{model}: {found.report}; graded by CIDEr-D, not by people")
    for name in GRADES:
        count = len(found.of(name))
        say(f"  {name:22} {count:6}  {100 * count / len(found):.1f} percent")
    title = f"{model} on {Path(pictures).name}"
    page = write_gallery(found, captioner, images, out, each=each, beam=beam, title=title)
    say(f"Wrote {page}")


def report(model: str, captions: Path | None, pictures: Path | None, *, beam: int) -> None:
    """Score a captioner: on captions and pictures, or else on the world scenes."""
    from regard.systems.caption_evaluation import evaluate_on_photographs, evaluate_on_scenes
    from regard.systems.captioner import Captioner
    from regard.systems.shipped import load_as

    captioner = load_as(Captioner, model)
    if captions is not None and pictures is not None:
        found = evaluate_on_photographs(captioner, captions, pictures, beam=beam)
    elif captioner.config.is_learned and captions is None:
        found = evaluate_on_scenes(captioner, beam=beam)
    else:
        raise OptionError("Give the captions and the pictures: regard evaluate MODEL CAPTIONS PICTURES.")
    scores = found.scores
    say(f"{model}: {scores.count} pictures, beam {beam}")
    for order, value in enumerate(scores.bleu, 1):
        say(f"  {f'BLEU-{order}':22} {value:7.2f}{f'  {scores.bleu_signature}' if order == 4 else ''}")
    say(f"  {'ROUGE-L':22} {scores.rouge_l:7.2f}")
    say(f"  {'CIDEr-D':22} {scores.cider_d:7.3f}")
    meteor = "none" if scores.meteor is None else f"{scores.meteor:.2f}"
    say(f"  {'METEOR':22} {meteor:>7}  {scores.meteor_name}")
    say(f"  {'exact match':22} {100 * scores.exact_match:7.2f}  percent")
    if found.maps is not None:
        say(f"  {'map variation':22} {found.maps.variation:7.3f}  base-2 JS divergence between the maps of two words")
        say(f"  {'entropy':22} {found.maps.entropy:7.3f}  nats, of a map")
        say(f"  {'distinct cells':22} {found.maps.distinct_cells:7.2f}  strongest cells in a caption")
    if found.regions is not None:
        for name in ("pointing", "correctness"):
            value, control = getattr(found.regions, name), getattr(found.regions, f"{name}_shuffled")
            say(f"  {name:22} {100 * value:7.2f}  percent; {100 * control:.2f} with the maps shuffled among the words")
        say(f"  {'chance':22} {100 * found.regions.chance:7.2f}  percent of the cells are gold")
