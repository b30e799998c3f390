"""Commands about translators: use one, measure it, link words with it."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from regard.cli import captioning
from regard.cli.output import say
from regard.errors import OptionError


def translate(
    *texts: str,
    model: Annotated[str, Parameter(alias="-m")] = "en-fr",
    file: Annotated[Path | None, Parameter(alias="-f")] = None,
    beam: int = 5,
    nbest: int = 1,
    show: bool = False,
    json: bool = False,
) -> None:
    """Translate texts, a file, or what comes through a pipe, a line each, in order.

    Parameters
    ----------
    texts
        Sentences to translate.
    model
        A shipped model (`regard models` lists them) or a model folder.
    file
        A text file to translate, one sentence a line.
    beam
        How many hypotheses the search keeps.
    nbest
        How many translations to give for each sentence.
    show
        Draw what each word attended to.
    json
        One JSON object per translation, with its score and its attention.
    """
    from rich.console import Console

    from regard.systems.lines import as_json, read_texts
    from regard.systems.shipped import load_as
    from regard.systems.translator import Translator
    from regard.viewing.terminal import heat_map

    translator, console = load_as(Translator, model), Console()
    for batch in read_texts(texts, file, sys.stdin):
        for translation in (best for found in translator.translate(batch, beam=beam, nbest=nbest) for best in found):
            say(as_json(translation) if json else translation.text)
            if show and translation.trace is not None:
                console.print(heat_map(translation.trace, width=console.width))
        sys.stdout.flush()


def evaluate(
    model: str,
    source: Path | None = None,
    reference: Path | None = None,
    *,
    gold: Path | None = None,
    beam: int = 5,
    lowercase: bool = False,
    compare: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    plot: Path | None = None,
) -> None:
    """Score a model on a test set.

    A translator: BLEU, chrF, TER, perplexity, BLEU by length, and alignment error. A captioner: BLEU-1 to 4, ROUGE-L,
    CIDEr-D, METEOR, and how its attention moves; on the world scenes, where no files are named, also whether words look
    at what they speak of.

    Parameters
    ----------
    model
        A shipped model or a model folder.
    source
        Test sentences, one a line; of a captioner, a file of captions.
    reference
        Their translations, line by line; of a captioner, the folder or archive of the pictures, or their features.
    gold
        JSON lines with the right word links (src, tgt, sure, possible): gives the alignment error rate.
    beam
        How many hypotheses the search keeps.
    lowercase
        Compare in lower case.
    compare
        More models for the table and the plot of BLEU by length.
    plot
        Save the plot of BLEU against source length here (.png, .svg, .pdf).
    """
    from rich.console import Console

    from regard.data.gold_alignments import read_gold
    from regard.data.text import read_pairs
    from regard.systems.evaluation import alignment_error
    from regard.systems.evaluation import evaluate as score
    from regard.systems.shipped import load_as, system_named
    from regard.systems.translator import Translator
    from regard.viewing import picture, terminal

    if system_named(model) == "captioner":
        for name in (model, *compare):
            captioning.report(name, source, reference, beam=beam)
        return
    if source is None or reference is None:
        raise OptionError("Give the files of a test set: regard evaluate MODEL SOURCE REFERENCE.")
    sources, references = (list(side) for side in zip(*read_pairs(source, reference), strict=True))
    curves = {}
    for name in (model, *compare):
        loaded = load_as(Translator, name)
        result = score(loaded, sources, references, beam=beam, lowercase=lowercase)
        curves[name] = result.by_length
        say(f"{name}: {result.scores.count} sentences, beam {beam}")
        for measure in ("bleu", "chrf", "ter"):
            signed = getattr(result.scores, measure)
            say(f"  {measure:12} {signed.value:7.2f}  {signed.signature}")
        say(f"  {'exact match':12} {100 * result.scores.exact_match:7.2f}  percent")
        say(f"  {'perplexity':12} {result.perplexity:7.2f}")
        if result.entropy is not None:
            say(f"  {'entropy':12} {result.entropy:7.2f}  nats, of the attention")
        if gold is not None:
            error = alignment_error(loaded, read_gold(gold))
            say(f"  {'AER':12} {error.error_rate:7.3f}  precision {error.precision:.3f}, recall {error.recall:.3f}")
    Console().print(terminal.length_table(curves, title="BLEU by source length"))
    if plot is not None:
        say(f"Wrote {picture.save(picture.length_curve(curves), plot)}")


def align(
    model: str,
    source: Path | None = None,
    target: Path | None = None,
    *,
    reverse: str | None = None,
    gold: Path | None = None,
) -> None:
    """Link the words of sentence pairs by what a translator attends to, or measure how right such links are.

    Writes a line for each pair, 0-0 1-2 2-1: source word 1 goes with target word 2. Words are what spaces part.

    Parameters
    ----------
    model
        A shipped model or a model folder.
    source
        Source sentences, one a line.
    target
        Their translations, line by line.
    reverse
        A model of the other direction: links are then what both agree on, which is more often right.
    gold
        Instead of sentences, JSON lines with the right links (src, tgt, sure, possible): gives the error rate.
    """
    from regard.data.gold_alignments import read_gold
    from regard.data.text import read_pairs
    from regard.systems.evaluation import alignment_error, link_words
    from regard.systems.lines import in_batches
    from regard.systems.shipped import load_as
    from regard.systems.translator import Translator

    if (source is None or target is None) == (gold is None):
        raise OptionError("Give the files SOURCE and TARGET to link their words, or --gold FILE to measure.")
    forward = load_as(Translator, model)
    backward = None if reverse is None else load_as(Translator, reverse)
    if gold is not None:
        error = alignment_error(forward, read_gold(gold), backward)
        say(f"AER {error.error_rate:.3f}, precision {error.precision:.3f}, recall {error.recall:.3f}")
    elif source is not None and target is not None:
        for few in in_batches(read_pairs(source, target)):
            words = [(before.split(), after.split()) for before, after in few]
            for links in link_words(forward, words, backward):
                say(" ".join(f"{i}-{j}" for i, j in sorted(links)))


def models() -> None:
    """List the models that come with regard, with their measured scores."""
    from rich.console import Console
    from rich.table import Table

    from regard.systems.shipped import shipped_models

    table = Table("name", "what it does", "on its test", "MiB")
    measures = {
        "test_bleu": "BLEU {:.1f}",
        "test_accuracy": "{:.1f} % right",
        "valid_beam_bleu4": "BLEU-4 {:.1f}",
    }
    for model in shipped_models():
        scores = [form.format(model.metrics[name]) for name, form in measures.items() if name in model.metrics]
        table.add_row(model.name, model.summary, ", ".join(scores), f"{model.mebibytes:.1f}")
    Console().print(table)
