"""The command of image classifiers."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from regard.errors import OptionError
from regard.systems.images import RecognitionOptions
from regard.systems.output import say, write_json


def recognize(
    *images: Path,
    model: Annotated[str, Parameter(alias="-m")] = "digits",
    json: bool = False,
    device: str | None = None,
    trust: bool = False,
    options: Annotated[RecognitionOptions | None, Parameter(name="*")] = None,
) -> None:
    """Recognize what images show: the most probable classes, best first, one line per image.

    Parameters
    ----------
    images
        Image files.
    model
        A shipped model (`regard models` lists them) or a model folder.
    json
        Write one JSON object per image.
    device
        cpu, cuda or cuda:N; by default the GPU when there is one.
    trust
        Load a model that runs somebody's own code (package.module:Name).
    """
    from regard.systems.images.model import ImageClassifier

    if not images:
        raise OptionError("Name the images to recognize: regard recognize IMAGE ...")
    classifier = ImageClassifier.load(model, device=device, trust=trust)
    keywords = vars(options or RecognitionOptions())
    for image, result in zip(images, classifier.stream(images, **keywords), strict=True):
        if json:
            write_json(result, sys.stdout, image=str(image))
        else:
            best = ", ".join(f"{one.label} {one.probability:.3f}" for one in result.predictions)
            say(f"{image}: {best}")
