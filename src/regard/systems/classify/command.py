"""The command of document classifiers."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from regard.errors import OptionError
from regard.systems.classify.config import ClassificationOptions
from regard.systems.jobs import Answers, FileOptions, run_job
from regard.systems.output import (
    PIPE,
    TERMINAL,
    check_show,
    read_texts,
    result_text,
    say,
    show_result,
    warn_of_files,
    writing,
)

if TYPE_CHECKING:
    from regard.systems.classify.model import Classification

MAX_CARRIERS = 3
"""Other classes and sentences listed below a label, and words of each sentence."""


def classify(
    *texts: str,
    model: Annotated[str, Parameter(alias="-m")] = "reviews-en",
    file: Annotated[tuple[Path, ...], Parameter(alias="-f", negative="", consume_multiple=True)] = (),
    lines: bool = False,
    output: Annotated[str | None, Parameter(alias="-o")] = None,
    show: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    raw: bool = False,
    json: bool = False,
    device: str | None = None,
    trust: bool = False,
    files: Annotated[FileOptions | None, Parameter(name="*")] = None,
    options: Annotated[ClassificationOptions | None, Parameter(name="*")] = None,
) -> None:
    """Classify documents: print the label, its probability and the most attended sentences.

    Into a folder (--output out/), lines of files are classified by several workers; an interrupted command continues
    when it is run again.

    Parameters
    ----------
    texts
        Texts to classify; without texts and files, the standard input is one document.
    model
        A shipped model (`regard models` lists them) or a model folder.
    file
        Text files to classify, each of them one document; with --input, each line of a file is one.
    lines
        Each line of the standard input is a document.
    output
        Write the results to this file instead of the standard output, or one file for each --input to a folder.
    show
        Show what was attended to: "-" draws in the terminal, FILE.png, .svg or .pdf saves a figure, FILE.html an
        interactive page.
    raw
        Shade words by their weight within the sentence alone, not also by the sentence's weight.
    json
        Write one JSON object per document, with probabilities, sentences and words.
    device
        cpu, cuda or cuda:N; by default the GPU if there is one.
    trust
        Allow models that import custom code (package.module:Name).
    """
    from regard.data.text import decode_text, read_text
    from regard.systems.classify.model import DocumentClassifier

    warn_of_files(texts, "--file")
    files, chosen = files or FileOptions(), options or ClassificationOptions()
    if texts and file:
        raise OptionError("Give texts or files, not both.")
    if show is not None and chosen.traces == "none":
        raise OptionError("--show needs the weights, which --traces none leaves out.")
    if files.into_folder(output, texts or file):
        check_show(show, 2)
        keywords = vars(chosen) if json else vars(chosen) | {"traces": "none"}
        run_job(Answers("classify", model, keywords, json, device, trust), files, str(output), label="Classifying")
        return
    by_line = bool(files.input) or (lines and not texts and not file)
    if by_line and show not in (None, TERMINAL):
        raise OptionError(f"--show {show} is for one document. For lines, use --show - to draw all in the terminal.")
    documents = [] if by_line else list(texts) or [read_text(path) for path in file]
    if not by_line:
        documents = documents or [decode_text(sys.stdin.buffer, PIPE)]
        check_show(show, len(documents))
    classifier = DocumentClassifier.load(model, device=device, trust=trust)
    results = (
        classifier.stream_lines(read_texts((), files.input, sys.stdin), **vars(chosen))
        if by_line
        else zip(documents, classifier.stream(documents, **vars(chosen)), strict=True)
    )
    with writing(output) as out:
        for text, result in results:
            if json or output is not None or show != TERMINAL:  # the view in the terminal has the label as its heading
                say(result_text(classifier, text, result, chosen, as_json=json), out)
            if len(documents) == 1 and show is None and not json and result.sentences:
                say(_carriers(result), out)
            if show is not None and result is not None:
                show_result(result, show, model=model, raw=raw)


def _carriers(result: "Classification") -> str:
    """The next classes, and the sentences that carried the class, each with its strongest words."""
    others = list(result.probabilities.items())[1 : 1 + MAX_CARRIERS]
    lines = (
        [f"  other classes: {', '.join(f'{label} {probability:.3f}' for label, probability in others)}"]
        if others
        else []
    )
    for sentence in sorted(result.sentences, key=lambda each: -each.weight)[:MAX_CARRIERS]:
        strongest = sorted(sentence.words, key=lambda each: -each.weight)[:MAX_CARRIERS]
        words = ", ".join(f"{word.word} {word.weight:.2f}" for word in strongest)
        lines.append(f"  {sentence.weight:.2f}  {sentence.text}  [{words}]")
    return "\n".join(lines)
