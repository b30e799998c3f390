"""Commands of translators: translate, and link words by attention."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators

from regard.errors import OptionError, counted
from regard.systems.jobs import Answers, FileOptions, run_job
from regard.systems.output import (
    FILE_WINDOW,
    PIPE_WINDOW,
    TERMINAL,
    check_show,
    read_texts,
    result_text,
    say,
    show_result,
    warn_of_files,
    writing,
)
from regard.systems.translate.config import MAX_ALIGNED_TOKENS, Symmetrize, TranslationOptions


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
        Show what each word attended to: "-" draws in the terminal, FILE.png, .svg or .pdf saves a figure, FILE.html
        an interactive page.
    json
        Write one JSON object per sentence, with scores, alternatives and attention.
    device
        cpu, cuda or cuda:N; by default the GPU if there is one.
    trust
        Allow models that import custom code (package.module:Name).
    """
    from regard.data.progress import track
    from regard.systems.translate.model import Translator

    warn_of_files(texts)
    files, options = files or FileOptions(), options or TranslationOptions()
    keywords = vars(options) if json or show or options.traces != "main" else vars(options) | {"traces": "none"}
    check_show(show, len(texts) if texts else 2)
    if files.into_folder(output, texts):
        run_job(Answers("translate", model, keywords, json, device, trust), files, str(output), label="Translating")
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
    symmetrize: Symmetrize = "mutual",
    threshold: Annotated[float, Parameter(validator=validators.Number(gte=0, lte=1))] = 0.0,
    output: Annotated[str | None, Parameter(alias="-o")] = None,
    show: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    json: bool = False,
    gold: Path | None = None,
    device: str | None = None,
    trust: bool = False,
    files: Annotated[FileOptions | None, Parameter(name="*")] = None,
) -> None:
    """Align the words of sentence pairs with the attention of a translator, or measure the alignment error rate.

    Writes a line for each pair, such as 0-0 1-2 2-1: source word 1 is linked with target word 2. Words are separated by
    whitespace and counted from 0. A pair with an empty side has an empty line. With --input, files have lines with a
    source sentence, a tab and its translation; into a folder (--output out/), several workers align them.

    Parameters
    ----------
    model
        A shipped model or a model folder.
    source
        Source sentences, one per line.
    target
        Their translations, line by line.
    reverse
        A model of the other direction; combining both is more accurate.
    symmetrize
        How the two directions are combined: mutual (words that choose each other in the mean of both maps),
        intersection, union, grow-diag or grow-diag-final-and of their links.
    threshold
        Leave out links with a smaller attention weight.
    output
        Write the links to this file instead of the standard output, or one file for each input to a folder.
    show
        Show the attention between the words: "-" draws each pair in the terminal; FILE.png, .svg or .pdf saves a figure
        of the first pair with links, FILE.html an interactive page of it.
    json
        Write a JSON object for each pair: source and target words, links, and the attention weight of each link.
    gold
        Instead of sentences, JSON lines with the right links (src, tgt, sure, possible): prints the error rate.
    device
        cpu, cuda or cuda:N; by default the GPU if there is one.
    trust
        Allow models that import custom code (package.module:Name).
    """
    from regard.data.alignments import read_gold
    from regard.data.progress import track
    from regard.data.text import read_pairs
    from regard.systems.system import Result
    from regard.systems.translate.alignment import Links, align_stream, alignment_error, split_pair
    from regard.systems.translate.model import Translator
    from regard.viewing.view import MEASURED, view

    files, both = files or FileOptions(), [path for path in (source, target) if path is not None]
    if len(both) == 1 or sum((bool(both), gold is not None, bool(files.input))) != 1:
        raise OptionError("Give the files SOURCE and TARGET or --input FILE to link words, or --gold FILE to measure.")
    if reverse is None and symmetrize != "mutual":
        raise OptionError(f"--symmetrize {symmetrize} combines two directions: give --reverse MODEL.")
    if files.into_folder(output, both):
        links = Links(model, reverse, symmetrize, threshold, json, device, trust)
        run_job(links, files, str(output), label="Aligning")
        return
    forward = Translator.load(model, device=device, trust=trust)
    backward = None if reverse is None else Translator.load(reverse, device=device, trust=trust)
    if gold is not None:
        error = alignment_error(forward, read_gold(gold), backward, symmetrize=symmetrize, threshold=threshold)
        say(f"AER {error.error_rate:.3f}, precision {error.precision:.3f}, recall {error.recall:.3f}")
        return
    pairs = read_pairs(*both) if both else map(split_pair, read_texts((), files.input, sys.stdin))
    aligned = align_stream(forward, pairs, backward, symmetrize=symmetrize, threshold=threshold)
    skipped = count = shown = 0
    with writing(output) as out:
        for pair in track(aligned, "Aligning", "pairs", enabled=output is not None or not sys.stdout.isatty()):
            say(pair.to_json() if json else pair.to_text(), out)
            skipped, count = skipped + pair.is_too_long, count + 1
            if show == TERMINAL and pair.links:
                show_result(Result(trace=pair.trace), show, model=model)
            elif show is not None and pair.links and not shown:
                view(forward.with_attention_quality(Result(trace=pair.trace))).save(show)
            shown = shown or (count if pair.links else 0)
    if show == TERMINAL and shown and forward.metrics.get(MEASURED):
        say(str(forward.metrics[MEASURED]))
    elif show is not None and show != TERMINAL:
        written = f"Wrote {show}" if count == 1 else f"Wrote {show} (pair {shown} of {count})"
        say(written if shown else f"No pair has links: {show} is not written.", sys.stderr)
    if skipped:
        sys.stderr.write(
            f"Without links, with more than {MAX_ALIGNED_TOKENS} tokens on a side: {counted(skipped, 'pair')}.\n"
        )


def align_corpus(
    source: Path,
    target: Path,
    *,
    out: Annotated[Path, Parameter(alias="-o")] = Path("alignment"),
    rounds: Annotated[int, Parameter(validator=validators.Number(gte=0))] = 1,
    links: Path | None = None,
    recipe: str = "aligner",
    minutes: Annotated[float, Parameter(validator=validators.Number(gte=0))] = 0.0,
    symmetrize: Symmetrize = "mutual",
    gold: Path | None = None,
) -> None:
    """Learn to align the words of a parallel corpus without other data, and write the links.

    Round 0 takes a few minutes on a CPU: two hidden Markov models, one for each direction, are estimated so that they
    agree. Each further round trains a Transformer for each direction, guided by the links of the round before, which
    knows the context of a word and can align other text. Writes OUT/round-N/forward.links, such as 0-0 1-2.

    Parameters
    ----------
    source
        Source sentences, one per line.
    target
        Their translations, line by line.
    out
        Folder to write to; rounds that it already holds are not repeated.
    rounds
        Number of trainings; 0 for the links of the hidden Markov models alone.
    links
        Links of another aligner for each pair of lines, such as 0-0 1-2, which guide round 0; a line may be empty.
    recipe
        The recipe of the Transformers: a packaged one or a TOML file.
    minutes
        Maximum time of each training; 0 for no limit.
    symmetrize
        How the two directions are combined from round 1 on.
    gold
        JSON lines with right links (src, tgt, sure, possible): prints the error rate after each round.
    """
    from regard.data.alignments import read_gold
    from regard.systems.translate import corpus_alignment

    done = corpus_alignment.align_corpus(
        source,
        target,
        out,
        rounds=rounds,
        links=links,
        recipe=recipe,
        tables={"train": {"minutes": minutes}} if minutes else None,
        symmetrize=symmetrize,
        gold=() if gold is None else read_gold(gold),
        report=say,
    )
    say(f"Wrote {done[-1].links}.")
    if rounds:
        say(f"Align more text: regard align {done[-1].forward} SOURCE TARGET --reverse {done[-1].backward}")
