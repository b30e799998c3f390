"""Commands about pictures."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from regard.cli.output import say
from regard.errors import OptionError


def recognize(
    *pictures: Path, model: Annotated[str, Parameter(alias="-m")] = "digits", top: int = 5, json: bool = False
) -> None:
    """Tell what pictures show: the most probable classes, best first, a line for each picture.

    Parameters
    ----------
    pictures
        Picture files.
    model
        A shipped model (`regard models` lists them) or a model folder.
    top
        How many classes to tell.
    json
        One JSON object per picture.
    """
    from json import dumps

    from regard.systems.image_classifier import ImageClassifier
    from regard.systems.shipped import load_as

    if not pictures:
        raise OptionError("Say which pictures to recognize: regard recognize PICTURE ...")
    classifier = load_as(ImageClassifier, model)
    for picture, guesses in zip(pictures, classifier.recognize_each(pictures, top=top), strict=True):
        if json:
            found = [{"label": guess.label, "probability": guess.probability} for guess in guesses]
            say(dumps({"picture": str(picture), "guesses": found}, ensure_ascii=False))
        else:
            say(f"{picture}: {', '.join(f'{guess.label} {guess.probability:.3f}' for guess in guesses)}")
