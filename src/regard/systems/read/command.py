"""The command of readers: read sentences, or continue them."""

import sys
from typing import Annotated

from cyclopts import Parameter

from regard.errors import OptionError
from regard.systems.jobs import Answers, FileOptions, run_job
from regard.systems.output import (
    FILE_WINDOW,
    PIPE_WINDOW,
    check_show,
    read_texts,
    result_text,
    say,
    show_result,
    warn_of_files,
    writing,
)
from regard.systems.read.config import ReadingOptions


def read(
    *texts: str,
    model: Annotated[str, Parameter(alias="-m")] = "reader-en",
    output: Annotated[str | None, Parameter(alias="-o")] = None,
    show: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    json: bool = False,
    device: str | None = None,
    trust: bool = False,
    files: Annotated[FileOptions | None, Parameter(name="*")] = None,
    options: Annotated[ReadingOptions | None, Parameter(name="*")] = None,
) -> None:
    """Read sentences word by word: print the surprisal of each word, or labels, or continue a text.

    A language model prints the perplexity and how surprising each word is, in bits, or continues the text with
    --generate. A classifier prints the label, its probability and the sentence, separated by tabs, a tagger word/label;
    a reader for inference takes PREMISE HYPOTHESIS, or lines with a premise, a tab and a hypothesis. Into a folder
    (--output out/), files are read by several workers; an interrupted command continues when it is run again.

    Parameters
    ----------
    texts
        Sentences to read; for inference, a premise and a hypothesis.
    model
        A model folder, or a shipped model (`regard models` lists them).
    output
        Write to this file instead of the standard output, or one file for each input to a folder.
    show
        Show what each word attended to: "-" draws in the terminal, FILE.png, .svg or .pdf saves a figure, FILE.html
        an interactive page.
    json
        Write one JSON object per sentence, with probabilities and attention.
    device
        cpu, cuda or cuda:N; by default the GPU if there is one.
    trust
        Allow models that import custom code (package.module:Name).
    """
    from regard.data.progress import track
    from regard.systems.read.model import Reader

    warn_of_files(texts)
    files, options = files or FileOptions(), options or ReadingOptions()
    keywords = vars(options) if json or show or options.traces != "main" else vars(options) | {"traces": "none"}
    if files.into_folder(output, texts):
        check_show(show, 2)
        run_job(Answers("read", model, keywords, json, device, trust), files, str(output), label="Reading")
        return
    reader = Reader.load(model, device=device, trust=trust)
    if reader.config.task == "entail" and texts:
        if len(texts) != 2:
            raise OptionError(f"This reader compares two sentences, PREMISE HYPOTHESIS; got {len(texts)}.")
        texts = ("\t".join(texts),)
    elif options.generate and not texts and not files.input:
        texts = ("",)
    check_show(show, 2 if files.input else max(1, len(texts)))
    window = FILE_WINDOW if files.input else PIPE_WINDOW
    results = reader.stream_lines(read_texts(texts, files.input, sys.stdin), read_ahead=window, **keywords)
    with writing(output) as out:
        for text, result in track(results, "Reading", "lines", enabled=output is not None):
            say(result_text(reader, text, result, options, as_json=json), out)
            if show is not None and result is not None:
                show_result(result, show, model=model)
