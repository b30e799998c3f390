"""Commands of translators: translate, and link words by attention."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from regard.errors import OptionError
from regard.systems.output import check_show, read_texts, say, show_result, write_json, writing
from regard.systems.translation import TranslationOptions

PIPE_WINDOW = 64
"""Lines of a pipe that are read before the first are answered."""


def translate(
    *texts: str,
    model: Annotated[str, Parameter(alias="-m")] = "en-fr",
    file: Annotated[Path | None, Parameter(alias="-f")] = None,
    output: Annotated[Path | None, Parameter(alias="-o")] = None,
    show: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    json: bool = False,
    device: str | None = None,
    trust: bool = False,
    options: Annotated[TranslationOptions | None, Parameter(name="*")] = None,
) -> None:
    """Translate texts, a file, or the lines of a pipe, in order.

    Parameters
    ----------
    texts
        Sentences to translate.
    model
        A shipped model (`regard models` lists them) or a model folder.
    file
        A text file to translate, one sentence per line.
    output
        Write the translations to this file instead of the standard output.
    show
        Show what each word attended to: "-" draws in the terminal, FILE.png, .svg or .pdf saves a figure, FILE.html a
        page to explore.
    json
        Write one JSON object per sentence, with scores, alternatives and attention.
    device
        cpu, cuda or cuda:N; by default the GPU when there is one.
    trust
        Load a model that runs somebody's own code (package.module:Name).
    """
    from regard.data.progress import track
    from regard.systems.translation.model import Translator

    options = options or TranslationOptions()
    translator = Translator.load(model, device=device, trust=trust)
    interactive = not texts and file is None and sys.stdin.isatty()
    check_show(show, len(texts) if texts else 2)
    window = 1 if interactive else PIPE_WINDOW if file is None else 1024
    keywords = vars(options) if json or show or options.traces != "main" else vars(options) | {"traces": "none"}
    results = translator.stream(read_texts(texts, file, sys.stdin), read_ahead=window, **keywords)
    long_work = output is not None or (file is not None and not sys.stdout.isatty())
    with writing(output) as out:
        for result in track(results, "Translating", "lines", enabled=long_work):
            if json:
                write_json(result, out)
            elif options.nbest > 1:
                for one in (result, *result.alternatives):
                    say(f"{one.score:.4f}\t{one.text}", out)
            else:
                say(result.text, out)
            if out is sys.stdout and (interactive or file is None):
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
    device: str | None = None,
    trust: bool = False,
) -> None:
    """Link the words of sentence pairs by the attention of a translator, or measure how right such links are.

    Writes a line for each pair, such as 0-0 1-2 2-1: source word 1 is linked with target word 2. Words are separated by
    whitespace and counted from 0.

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
    device
        cpu, cuda or cuda:N; by default the GPU when there is one.
    trust
        Load a model that runs somebody's own code (package.module:Name).
    """
    from regard.data.gold_alignments import read_gold
    from regard.data.text import read_pairs
    from regard.systems.system import in_groups
    from regard.systems.translation.evaluation import alignment_error, link_words
    from regard.systems.translation.model import Translator

    if (source is None or target is None) == (gold is None):
        raise OptionError("Give the files SOURCE and TARGET to link their words, or --gold FILE to measure.")
    forward = Translator.load(model, device=device, trust=trust)
    backward = None if reverse is None else Translator.load(reverse, device=device, trust=trust)
    if gold is not None:
        error = alignment_error(forward, read_gold(gold), backward)
        say(f"AER {error.error_rate:.3f}, precision {error.precision:.3f}, recall {error.recall:.3f}")
    elif source is not None and target is not None:
        for group in in_groups(read_pairs(source, target), 64):
            words = [(before.split(), after.split()) for before, after in group]
            for links in link_words(forward, words, backward):
                say(" ".join(f"{i}-{j}" for i, j in sorted(links)))
