"""Commands of translators: translate, and link words by attention."""

import sys
from collections.abc import Iterable
from pathlib import Path
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
    writing,
)
from regard.systems.translation import FAMILY, TranslationOptions


def translate(
    *texts: str,
    model: Annotated[str, Parameter(alias="-m")] = "en-fr",
    output: Annotated[str | None, Parameter(alias="-o")] = None,
    show: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    json: bool = False,
    device: str | None = None,
    trust: bool = False,
    files: Annotated[FileOptions | None, Parameter(name="*")] = None,
    options: Annotated[TranslationOptions | None, Parameter(name="*")] = None,
) -> None:
    """Translate texts, files, or the lines of a pipe, in order.

    Into a folder (--output out/), files are translated by several workers; an interrupted command continues when it is
    run again.

    Parameters
    ----------
    texts
        Sentences to translate.
    model
        A shipped model (`regard models` lists them) or a model folder.
    output
        Write the translations to this file instead of the standard output, or one file for each input to a folder.
    show
        Show what each word attended to: "-" draws in the terminal, FILE.png, .svg or .pdf saves a figure.
    json
        Write one JSON object per sentence, with scores, alternatives and attention.
    device
        cpu, cuda or cuda:N; by default the GPU when there is one.
    trust
        Load a model that runs somebody's own code (package.module:Name).
    """
    from regard.data.progress import track
    from regard.systems.translation.model import Translator

    files, options = files or FileOptions(), options or TranslationOptions()
    keywords = vars(options) if json or show or options.traces != "main" else vars(options) | {"traces": "none"}
    check_show(show, len(texts) if texts else 2)
    if files.into_folder(output, texts):
        run_job(Answers(FAMILY.system, model, keywords, json, device, trust), files, str(output), label="Translating")
        return
    translator = Translator.load(model, device=device, trust=trust)
    is_pipe = not texts and not files.input
    interactive = is_pipe and sys.stdin.isatty()
    window = 1 if interactive else PIPE_WINDOW if not files.input else FILE_WINDOW
    lines = read_texts(texts, files.input, sys.stdin)
    long_work = output is not None or (bool(files.input) and not sys.stdout.isatty())
    results = translator.stream_lines(lines, read_ahead=window, **keywords)
    with writing(output) as out:
        for text, result in track(results, "Translating", "lines", enabled=long_work):
            say(result_text(translator, text, result, options, as_json=json), out)
            if out is sys.stdout and not files.input:
                out.flush()
            if show is not None:
                show_result(result, show, model=model)


def align(
    model: str,
    source: Path | None = None,
    target: Path | None = None,
    *,
    reverse: str | None = None,
    gold: Path | None = None,
    output: Annotated[str | None, Parameter(alias="-o")] = None,
    device: str | None = None,
    trust: bool = False,
    files: Annotated[FileOptions | None, Parameter(name="*")] = None,
) -> None:
    """Link the words of sentence pairs by the attention of a translator, or measure how right such links are.

    Writes a line for each pair, such as 0-0 1-2 2-1: source word 1 is linked with target word 2. Words are separated by
    whitespace and counted from 0. With --input, files have lines of source<TAB>target; into a folder (--output out/),
    several workers link them.

    Parameters
    ----------
    model
        A shipped model or a model folder.
    source
        Source sentences, one per line.
    target
        Their translations, line by line.
    reverse
        A model of the other direction: only links on which both agree are kept, which are more often right.
    gold
        Instead of sentences, JSON lines with the right links (src, tgt, sure, possible): prints the error rate.
    output
        Write the links to this file instead of the standard output, or one file for each input to a folder.
    device
        cpu, cuda or cuda:N; by default the GPU when there is one.
    trust
        Load a model that runs somebody's own code (package.module:Name).
    """
    from regard.data.gold_alignments import read_gold
    from regard.data.text import read_pairs
    from regard.systems.system import in_groups
    from regard.systems.translation.evaluation import alignment_error
    from regard.systems.translation.links import Links
    from regard.systems.translation.model import Translator

    files, pair = files or FileOptions(), [path for path in (source, target) if path is not None]
    if [len(pair) == 2, gold is not None, bool(files.input)].count(True) != 1 or len(pair) == 1:
        raise OptionError("Give the files SOURCE and TARGET or --input FILE to link words, or --gold FILE to measure.")
    links = Links(model, reverse, device, trust)
    if files.into_folder(output, pair):
        run_job(links, files, str(output), label="Linking words")
        return
    if gold is not None:
        forward = Translator.load(model, device=device, trust=trust)
        backward = None if reverse is None else Translator.load(reverse, device=device, trust=trust)
        error = alignment_error(forward, read_gold(gold), backward)
        say(f"AER {error.error_rate:.3f}, precision {error.precision:.3f}, recall {error.recall:.3f}")
        return
    answer = links.load()
    lines: Iterable[str] = read_texts((), files.input, sys.stdin)
    if pair:
        lines = ("\t".join(" ".join(text.split()) for text in both) for both in read_pairs(*pair))
    with writing(output) as out:
        for group in in_groups(lines, PIPE_WINDOW):
            say("\n".join(answer(group)), out)
