"""The command of glimpse models."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from regard.errors import OptionError
from regard.systems.glimpses import GlimpseOptions
from regard.systems.output import check_show, say, show_result, write_json


def glimpse(
    *images: Path,
    model: Annotated[str, Parameter(alias="-m")] = "glimpse-digits",
    show: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    crop: Path | None = None,
    json: bool = False,
    device: str | None = None,
    trust: bool = False,
    options: Annotated[GlimpseOptions | None, Parameter(name="*")] = None,
) -> None:
    """Say what images show from a few glimpses, one line per image, and show where the model looked.

    Parameters
    ----------
    images
        Image files.
    model
        A shipped model (`regard models` lists them) or a model folder.
    show
        Show the path over the image, what each glimpse saw and the belief after it: "-" draws in the terminal,
        FILE.png, .svg or .pdf saves a figure.
    crop
        Save the part of the image that was attended to here.
    json
        Write one JSON object per image, with the path, the beliefs and the trace.
    device
        cpu, cuda or cuda:N; by default the GPU when there is one.
    trust
        Load a model that runs somebody's own code (package.module:Name).
    """
    from regard.systems.glimpses.model import Glimpser

    if not images:
        raise OptionError("Name the images to look at: regard glimpse IMAGE ...")
    check_show(show, len(images))
    if crop is not None:
        if len(images) != 1:
            raise OptionError(f"--crop {crop} is for one image; got {len(images)}.")
        image_format(crop)
    glimpser = Glimpser.load(model, device=device, trust=trust)
    keywords = vars(options or GlimpseOptions())
    for image, result in zip(images, glimpser.stream(images, **keywords), strict=True):
        if json:
            write_json(result, sys.stdout, image=str(image))
        else:
            path = " ".join(f"({x:.0f},{y:.0f})" for x, y in result.path)
            say(f"{image}: {result.label} {result.probability:.3f}, looked at {path}")
        if show is not None:
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
