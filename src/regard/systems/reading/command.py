"""The command of readers: read sentences, or continue them."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from regard.errors import OptionError
from regard.systems.output import Writer, check_show, read_texts, say, show_result, write_json, writing
from regard.systems.reading import ReadingOptions

if TYPE_CHECKING:
    from regard.systems.reading.model import Reading

PIPE_WINDOW = 64
"""Lines of a pipe that are read before the first are answered."""


def read(
    *texts: str,
    model: Annotated[str, Parameter(alias="-m")] = "reader-en",
    file: Annotated[Path | None, Parameter(alias="-f")] = None,
    output: Annotated[Path | None, Parameter(alias="-o")] = None,
    show: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    json: bool = False,
    device: str | None = None,
    trust: bool = False,
    options: Annotated[ReadingOptions | None, Parameter(name="*")] = None,
) -> None:
    """Read sentences word by word: how surprising each word is, or what the sentence is labelled as.

    A language model prints the perplexity and how surprising each word is, in bits, or continues the text with
    --generate. A classifier prints the label, its probability and the sentence, separated by tabs, a tagger word/label;
    a reader for inference takes PREMISE HYPOTHESIS.

    Parameters
    ----------
    texts
        Sentences to read; for inference, a premise and a hypothesis.
    model
        A model folder, or a shipped model (`regard models` lists them).
    file
        A text file to read, one sentence per line; for inference a premise, a tab and a hypothesis. Blank lines are
        skipped.
    output
        Write to this file instead of the standard output.
    show
        Show what each word attended to: "-" draws in the terminal, FILE.png, .svg or .pdf saves a figure.
    json
        Write one JSON object per sentence, with probabilities and attention.
    device
        cpu, cuda or cuda:N; by default the GPU when there is one.
    trust
        Load a model that runs somebody's own code (package.module:Name).
    """
    from regard.data.progress import track
    from regard.systems.reading.model import Reader

    options = options or ReadingOptions()
    reader = Reader.load(model, device=device, trust=trust)
    is_pair = reader.config.task == "entail"
    if is_pair and texts:
        if len(texts) != 2:
            raise OptionError(f"This reader compares two sentences, PREMISE HYPOTHESIS; got {len(texts)}.")
        inputs: Iterable[Any] = [tuple(texts)]
    elif options.generate and not texts and file is None:
        inputs = [""]
    else:
        lines = read_texts(texts, file, sys.stdin)
        inputs = _pairs(lines) if is_pair else lines if texts else filter(str.strip, lines)
    check_show(show, 1 if is_pair and texts else max(1, len(texts)) if file is None else 2)
    keywords = vars(options) if json or show or options.traces != "main" else vars(options) | {"traces": "none"}
    results = reader.stream(inputs, read_ahead=PIPE_WINDOW if file is None else 1024, **keywords)
    with writing(output) as out:
        for result in track(results, "Reading", "lines", enabled=output is not None):
            if json:
                write_json(result, out)
            else:
                for one in (result, *result.alternatives):
                    _say(one, out, generated=options.generate)
            if show is not None:
                show_result(result, show, model=model)


def _say(reading: "Reading", out: Writer, *, generated: bool) -> None:
    if generated:
        say(reading.text, out)
    elif reading.surprisals:
        marked = (f"{word}(unknown)" if word in reading.unknown else word for word in reading.words)
        words = (f"{word}/{bits:.1f}" for word, bits in zip(marked, reading.surprisals, strict=True))
        say(f"{reading.perplexity:.1f}\t{' '.join(words)}", out)
    elif reading.tags:
        say(" ".join(f"{word}/{tag}" for word, tag in zip(reading.words, reading.tags, strict=True)), out)
    elif reading.label is not None:
        say(f"{reading.label}\t{reading.probabilities[reading.label]:.3f}\t{reading.text}", out)


def _pairs(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(lines, 1):
        premise, tab, hypothesis = line.partition("\t")
        if not line.strip():
            continue
        if not tab:
            raise OptionError(f"Line {number} should be premise<TAB>hypothesis; got {line[:60]!r}.")
        yield premise, hypothesis
