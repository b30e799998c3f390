"""The command of image classifiers."""

import sys
from typing import Annotated

from cyclopts import Parameter

from regard.errors import OptionError
from regard.systems.jobs import Answers, FileOptions, run_job
from regard.systems.output import read_texts, result_text, say, writing
from regard.systems.recognize.config import RecognitionOptions


def recognize(
    *images: str,
    model: Annotated[str, Parameter(alias="-m")] = "digits",
    output: Annotated[str | None, Parameter(alias="-o")] = None,
    json: bool = False,
    device: str | None = None,
    trust: bool = False,
    files: Annotated[FileOptions | None, Parameter(name="*")] = None,
    options: Annotated[RecognitionOptions | None, Parameter(name="*")] = None,
) -> None:
    """Classify images: print the most probable classes, best first, one line per image.

    With --input, the images are those that text files list, one path per line.

    Parameters
    ----------
    images
        Image files.
    model
        A shipped model (`regard models` lists them) or a model folder.
    output
        Write the results to this file instead of the standard output, or one file for each input file to a folder.
    json
        Write one JSON object per image.
    device
        cpu, cuda or cuda:N; by default the GPU if there is one.
    trust
        Allow models that import custom code (package.module:Name).
    """
    from regard.systems.recognize.model import ImageClassifier

    files, options = files or FileOptions(), options or RecognitionOptions()
    if files.into_folder(output, images):
        run_job(
            Answers("recognize", model, vars(options), json, device, trust), files, str(output), label="Recognizing"
        )
        return
    if not images and not files.input:
        raise OptionError("Name the images to recognize: regard recognize IMAGE ...")
    classifier = ImageClassifier.load(model, device=device, trust=trust)
    lines = read_texts(images, files.input, sys.stdin)
    with writing(output) as out:
        for image, result in classifier.stream_lines(lines, **vars(options)):
            before = f"{image}: " if images and not json else ""
            say(before + result_text(classifier, image, result, options, as_json=json), out)
