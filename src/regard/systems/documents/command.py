"""The command of document classifiers."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from regard.errors import OptionError
from regard.systems.documents import ClassificationOptions
from regard.systems.output import TERMINAL, check_show, say, show_result, write_json, writing

if TYPE_CHECKING:
    from regard.systems.documents.model import Classification

MAX_CARRIERS = 3
"""Sentences that are listed below a label, and words of each."""


def classify(
    *texts: str,
    model: Annotated[str, Parameter(alias="-m")] = "reviews-en",
    file: Annotated[tuple[Path, ...], Parameter(alias="-f", negative="", consume_multiple=True)] = (),
    lines: bool = False,
    output: Annotated[Path | None, Parameter(alias="-o")] = None,
    show: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    raw: bool = False,
    json: bool = False,
    device: str | None = None,
    trust: bool = False,
    options: Annotated[ClassificationOptions | None, Parameter(name="*")] = None,
) -> None:
    """Classify documents: the label, its probability, and the sentences that carried it.

    Parameters
    ----------
    texts
        Texts to classify; without texts and files, the standard input is one document.
    model
        A shipped model (`regard models` lists them) or a model folder.
    file
        Text files to classify, each of them one document.
    lines
        Each line of the files or of the standard input is a document.
    output
        Write the results to this file instead of the standard output.
    show
        Show what was attended to: "-" draws in the terminal, FILE.png, .svg or .pdf saves a figure, FILE.html a page.
    raw
        Shade words by their weight within the sentence alone, not also by the sentence's weight.
    json
        Write one JSON object per document, with probabilities, sentences and words.
    device
        cpu, cuda or cuda:N; by default the GPU when there is one.
    trust
        Load a model that runs somebody's own code (package.module:Name).
    """
    from regard.data.text import read_all, read_lines
    from regard.systems.documents.model import DocumentClassifier

    if texts and file:
        raise OptionError("Give texts or files, not both.")
    chosen = options or ClassificationOptions()
    if show is not None and not chosen.weights:
        raise OptionError("--show needs the weights, which --no-weights leaves out.")
    by_line = lines and not texts
    if by_line and show not in (None, TERMINAL):
        raise OptionError(f"--show {show} is for one document. With --lines, use --show - to draw all in the terminal.")
    documents: Iterable[str]
    if by_line:
        source = (line for path in file for line in read_lines(path)) if file else sys.stdin
        documents = (line for line in source if line.strip())
    else:
        documents = texts or [read_all(path).decode("utf-8", "replace") for path in file] or [sys.stdin.read()]
        check_show(show, len(documents))
    only = not by_line and len(texts or file) <= 1
    classifier = DocumentClassifier.load(model, device=device, trust=trust)
    with writing(output) as out:
        for result in classifier.stream(documents, **vars(chosen)):
            if json:
                write_json(result, out)
            elif output is not None or show != TERMINAL:  # the view in the terminal has the label as its heading
                say(_described(result, carriers=MAX_CARRIERS if only and show is None else 0), out)
            if show is not None:
                show_result(result, show, model=model, raw=raw)


def _described(result: "Classification", *, carriers: int) -> str:
    """The label with its probability, and so many sentences that carried it, each with its strongest words."""
    left_out = f" ({result.sentences_left_out:,} sentences not read)" if result.sentences_left_out else ""
    lines = [f"{result.label} {result.probability:.3f}{left_out}"]
    for sentence in sorted(result.sentences, key=lambda each: -each.weight)[:carriers]:
        strongest = sorted(sentence.words, key=lambda each: -each.weight)[:MAX_CARRIERS]
        words = ", ".join(f"{word.word} {word.weight:.2f}" for word in strongest)
        lines.append(f"  {sentence.weight:.2f}  {sentence.text}  [{words}]")
    return "\n".join(lines)
