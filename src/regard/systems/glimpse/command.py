"""The command of glimpse models."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from regard.errors import OptionError
from regard.systems.glimpse.config import GlimpsesOptions
from regard.systems.jobs import Answers, FileOptions, run_job
from regard.systems.output import check_show, read_texts, result_text, say, show_result, writing


def glimpse(
    *images: str,
    model: Annotated[str, Parameter(alias="-m")] = "glimpse-digits",
    output: Annotated[str | None, Parameter(alias="-o")] = None,
    show: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    crop: Path | None = None,
    json: bool = False,
    device: str | None = None,
    trust: bool = False,
    files: Annotated[FileOptions | None, Parameter(name="*")] = None,
    options: Annotated[GlimpsesOptions | None, Parameter(name="*")] = None,
) -> None:
    """Classify images from a few glimpses, one line per image, and show where the model looks.

    With --input, the images are those that text files list, one path per line.

    Parameters
    ----------
    images
        Image files.
    model
        A shipped model (`regard models` lists them) or a model folder.
    output
        Write the results to this file instead of the standard output, or one file for each input file to a folder.
    show
        Show the path over the image, what each glimpse saw and the prediction after it: "-" draws in the terminal,
        FILE.png, .svg or .pdf saves a figure, FILE.html an interactive page.
    crop
        Save the attended part of the image to this file.
    json
        Write one JSON object per image, with the path, the beliefs and the trace.
    device
        cpu, cuda or cuda:N; by default the GPU if there is one.
    trust
        Allow models that import custom code (package.module:Name).
    """
    from regard.systems.glimpse.model import Glimpser

    files, options = files or FileOptions(), options or GlimpsesOptions()
    check_show(show, len(images) if images else 2)
    if crop is not None:
        if len(images) != 1:
            raise OptionError(f"--crop {crop} is for one image; got {len(images)}.")
        image_format(crop)
    if files.into_folder(output, images):
        answers = Answers("glimpse", model, vars(options), json, device, trust)
        run_job(answers, files, str(output), label="Glimpsing")
        return
    if not images and not files.input:
        raise OptionError("Name the images to look at: regard glimpse IMAGE ...")
    glimpser = Glimpser.load(model, device=device, trust=trust)
    lines = read_texts(images, files.input, sys.stdin)
    with writing(output) as out:
        for image, result in glimpser.stream_lines(lines, **vars(options)):
            before = f"{image}: " if images and not json else ""
            say(before + result_text(glimpser, image, result, options, as_json=json), out)
            if show is not None and result is not None:
                show_result(result, show, model=model)
            if crop is not None:
                save_crop(image, result.crop_box, crop)


def image_format(path: Path) -> str:
    """The format that an image of this name is saved in."""
    from PIL import Image

    Image.init()
    form = Image.EXTENSION.get(path.suffix.lower())
    if form is None or form not in Image.SAVE:
        raise OptionError(f"--crop saves an image, such as FILE.png or FILE.jpg; got {path.name!r}.")
    return form


def save_crop(image: Path, box: tuple[int, int, int, int], path: Path) -> None:
    """Save a part of an image; the suffix decides the format."""
    from regard.data.images import open_image
    from regard.files import replacing

    with replacing(path) as draft:
        open_image(image).crop(box).save(draft, image_format(path))
    say(f"Wrote {path}", sys.stderr)
