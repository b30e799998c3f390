"""The command line: each command calls one public function, and imports what it needs only when it runs."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from regard import __version__
from regard.errors import OptionError, RegardError

app = App(
    name="regard",
    version=__version__,
    help="Attention models you can train, measure and look inside. Start with: regard demo",
)
data = App(name="data", help="Get data sets to train on, and look at generated worlds.")
app.command(data)


@app.command
def demo(*, out: Annotated[Path, Parameter(alias="-o")] = Path("regard-demo"), minutes: float = 1.0) -> None:
    """See attention work: as a look-up, under every score, and in translation.

    Prints heat maps in the terminal and saves pictures. Trains a small translator on the way.

    Parameters
    ----------
    out
        Folder for the pictures; made if it does not exist.
    minutes
        Time to train the translator of the generated world.
    """
    from regard.demo import run

    run(out, minutes=minutes)


@app.command
def train(
    recipe: str | None = None,
    *,
    source: Path | None = None,
    target: Path | None = None,
    out: Annotated[Path, Parameter(alias="-o")] = Path("regard-run"),
    start_from: Annotated[str | None, Parameter(name="--from")] = None,
    resume: bool = False,
    **overrides: dict[str, str],
) -> None:
    """Train a translator on your own two text files, or from a recipe.

    Any field of a recipe can be set: --model.score dot --train.epochs 5. `regard recipes --fields` lists them all.
    Ctrl-C ends the training and saves the model as it is.

    Parameters
    ----------
    recipe
        A TOML file, or the name of a packaged recipe (`regard recipes` lists them).
    source
        Source sentences, one a line (plain, .gz, .xz, .zip).
    target
        Target sentences, line by line parallel to the source.
    out
        Folder for the model, logs and checkpoints.
    start_from
        A shipped model or a model folder to go on from, with its vocabulary.
    resume
        Go on from the last checkpoint in the folder.
    overrides
        Fields of the recipe: --data.NAME, --model.NAME, --train.NAME.
    """
    from regard.systems.shipped import load
    from regard.training.recipe import read_overrides, read_recipe
    from regard.training.run import train as run

    fields = read_overrides(overrides)
    files = {"source": source, "target": target}
    fields.setdefault("data", {}).update({name: str(path) for name, path in files.items() if path is not None})
    base = None if start_from is None else load(start_from, device="cpu")
    trained = run(read_recipe(recipe, fields), out, start_from=base, resume=resume)
    scores = {name: value for name, value in trained.metrics.items() if name in ("valid_bleu", "test_bleu")}
    shown = ", ".join(f"{name} {value:.2f}" for name, value in scores.items())
    _print(f"Wrote {trained.folder} ({shown}). Try it: regard translate --model {trained.folder} 'A sentence.'")


@app.command
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
    from regard.systems.shipped import load
    from regard.viewing.terminal import heat_map

    translator, console = load(model), Console()
    for batch in read_texts(texts, file, sys.stdin):
        for translation in (best for found in translator.translate(batch, beam=beam, nbest=nbest) for best in found):
            _print(as_json(translation) if json else translation.text)
            if show and translation.trace is not None:
                console.print(heat_map(translation.trace, width=console.width))
        sys.stdout.flush()


@app.command
def evaluate(
    model: str,
    source: Path,
    reference: Path,
    *,
    gold: Path | None = None,
    beam: int = 5,
    lowercase: bool = False,
    compare: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    plot: Path | None = None,
) -> None:
    """Score a translator on a test set: BLEU, chrF, TER, perplexity, BLEU by length, and alignment error.

    Parameters
    ----------
    model
        A shipped model or a model folder.
    source
        Test sentences, one a line.
    reference
        Their translations, line by line.
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

    from regard.data.text import read_pairs
    from regard.metrics.alignment import read_gold
    from regard.systems.evaluation import alignment_error
    from regard.systems.evaluation import evaluate as score
    from regard.systems.shipped import load
    from regard.viewing import picture, terminal

    sources, references = (list(side) for side in zip(*read_pairs(source, reference), strict=True))
    curves = {}
    for name in (model, *compare):
        loaded = load(name)
        result = score(loaded, sources, references, beam=beam, lowercase=lowercase)
        curves[name] = result.by_length
        _print(f"{name}: {result.scores.count} sentences, beam {beam}")
        for measure in ("bleu", "chrf", "ter"):
            signed = getattr(result.scores, measure)
            _print(f"  {measure:12} {signed.value:7.2f}  {signed.signature}")
        _print(f"  {'exact match':12} {100 * result.scores.exact_match:7.2f}  percent")
        _print(f"  {'perplexity':12} {result.perplexity:7.2f}")
        if result.entropy is not None:
            _print(f"  {'entropy':12} {result.entropy:7.2f}  nats, of the attention")
        if gold is not None:
            error = alignment_error(loaded, read_gold(gold))
            _print(f"  {'AER':12} {error.error_rate:7.3f}  precision {error.precision:.3f}, recall {error.recall:.3f}")
    Console().print(terminal.length_table(curves, title="BLEU by source length"))
    if plot is not None:
        _print(f"Wrote {picture.save(picture.length_curve(curves), plot)}")


@app.command
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
    from regard.data.text import read_pairs
    from regard.metrics.alignment import read_gold
    from regard.systems.evaluation import alignment_error, link_words
    from regard.systems.lines import in_batches
    from regard.systems.shipped import load

    if (source is None or target is None) == (gold is None):
        raise OptionError("Give the files SOURCE and TARGET to link their words, or --gold FILE to measure.")
    forward, backward = load(model), None if reverse is None else load(reverse)
    if gold is not None:
        error = alignment_error(forward, read_gold(gold), backward)
        _print(f"AER {error.error_rate:.3f}, precision {error.precision:.3f}, recall {error.recall:.3f}")
    elif source is not None and target is not None:
        for few in in_batches(read_pairs(source, target)):
            words = [(before.split(), after.split()) for before, after in few]
            for links in link_words(forward, words, backward):
                _print(" ".join(f"{i}-{j}" for i, j in sorted(links)))


@app.command
def view(trace: Path, *, out: Annotated[Path | None, Parameter(alias="-o")] = None) -> None:
    """Show a trace, the JSON file of what a model attended to, as a heat map.

    Parameters
    ----------
    trace
        A file that Trace.save wrote.
    out
        Save a picture here (.png, .svg or .pdf) instead of drawing in the terminal.
    """
    from rich.console import Console

    from regard.trace import Trace
    from regard.viewing import picture, terminal

    loaded = Trace.load(trace)
    if out is None:
        console = Console()
        console.print(terminal.heat_map(loaded, width=console.width))
    else:
        _print(f"Wrote {picture.save(picture.heat_map(loaded), out)}")


@app.command
def models() -> None:
    """List the models that come with regard, with their measured scores."""
    from rich.console import Console
    from rich.table import Table

    from regard.systems.shipped import shipped_models

    table = Table("name", "what it does", "test BLEU", "MiB")
    for model in shipped_models():
        score = model.metrics.get("test_bleu")
        table.add_row(model.name, model.summary, "" if score is None else f"{score:.1f}", f"{model.mebibytes:.1f}")
    Console().print(table)


@app.command
def recipes(*, fields: bool = False) -> None:
    """List the packaged recipes, complete experiments each.

    Parameters
    ----------
    fields
        List the fields of a recipe instead, with their defaults.
    """
    from rich.console import Console
    from rich.table import Table

    from regard.training.recipe import TABLES, fields_of, recipe_names, recipe_summary

    console = Console()
    if not fields:
        table = Table("name", "what it trains")
        for name in recipe_names():
            table.add_row(name, recipe_summary(name))
        console.print(table)
        return
    for name in TABLES:
        table = Table("field", "type", "default", "meaning", title=f"[{name}]", title_justify="left")
        for field, kind, default, meaning in fields_of(name):
            table.add_row(f"--{name}.{field}", kind, str(default), meaning)
        console.print(table)


@data.command
def get(name: str, *, source: Annotated[Path | None, Parameter(name="--from")] = None, out: Path | None = None) -> None:
    """Download a data set with its checksum, or take it from a folder.

    Parameters
    ----------
    name
        multi30k, tatoeba-fra or tatoeba-deu.
    source
        A folder that holds the files already, where there is no network.
    out
        Where to put them; by default a cache of your user.
    """
    from regard.data.download import get as download

    _print(f"{name} is in {download(name, out, source=source)}")


@data.command
def newsgroups(
    *, source: Annotated[Path, Parameter(name="--from")], out: Annotated[Path, Parameter(alias="-o")], words: int = 100
) -> None:
    """Make text files of the 20 newsgroups: posts, and their subject lines to be found.

    Parameters
    ----------
    source
        A folder with *train*.jsonl and *test*.jsonl (maybe .xz), each line a post: {"text": ...}, with its headers.
    out
        Folder for train.body, train.subject, valid.body and so on.
    words
        Keep only so many words of each body; how many were cut is told.
    """
    from regard.data.newsgroups import prepare

    for part, counts in prepare(source, out, words=words).items():
        _print(f"{part}: {counts}")
    _print(f"Wrote {out}. Train on it: regard train newsgroups-subject --data.folder {out}")


@data.command
def babel(source: str = "en", target: str = "fr", *, count: int = 2000, seed: int = 0, show: int = 5) -> None:
    """Statistics and examples of the generated world babel.

    Parameters
    ----------
    source
        en, fr, de or fa.
    target
        Another of these.
    count
        Sentence pairs to count in.
    seed
        Which pairs.
    show
        Examples to print.
    """
    from dataclasses import asdict
    from itertools import islice

    from regard.worlds.babel import pairs, statistics

    for name, value in asdict(statistics(source, target, count=count, seed=seed)).items():
        _print(f"{name:24} {value if not isinstance(value, float) else round(value, 3)}")
    for pair in islice(pairs(source, target, seed=seed), show):
        _print(f"\n{' '.join(pair.source)}\n{' '.join(pair.target)}")


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")


def main() -> None:
    """Run the command line; mistakes that can be explained end with one line, not with a traceback."""
    try:
        app()
    except (RegardError, OSError) as error:
        sys.exit(f"regard: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
