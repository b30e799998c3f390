"""Translation: learn a generated language pair from nothing, measure its attention, and use a shipped model."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from regard import viewing
from regard.metrics.alignment import GoldAlignment
from regard.metrics.translation import corpus_bleu
from regard.systems.evaluation import align_words, alignment_error
from regard.systems.shipped import load
from regard.systems.translator import Translator
from regard.trace import Trace
from regard.training.recipe import read_recipe
from regard.training.run import train
from regard.viewing import terminal
from regard.worlds.babel import Pair, pairs

TESTED = 300
ENGLISH = [
    "Where is the station?",
    "I would like a cup of coffee, please.",
    "My sister has lived in Paris for ten years.",
]


def show_babel(console: Console, folder: Path, *, minutes: float) -> list[Path]:
    """Train RNNsearch on the world babel for some minutes, and measure what it says and where it looks."""
    console.rule("[bold]Learning to translate, and to look at the right words")
    console.print(
        f"RNNsearch learns English-French sentences of the generated world babel for {minutes:g} minutes. The world "
        "knows which words belong together, so the attention can be measured and not only admired.\n"
    )
    overrides: dict[str, dict[str, Any]] = {
        "data": {"examples": 60_000, "max_words": 12, "held_out": 200, "held_out_test": 0},
        "model": {"embedding": 64, "hidden": 96},
        "train": {"minutes": minutes, "epochs": 8, "validate_every": 8},
    }
    with _one_thread():
        model = train(read_recipe("babel-en-fr", overrides), folder / "babel").model.to("cpu")
    test = list(islice(pairs("en", "fr", split="test", max_words=12), TESTED))
    console.print(_scores(model, test), "")
    pair = max(test[:50], key=lambda one: len(one.source))
    (weights,) = align_words(model, [(pair.source, pair.target)])
    trace = Trace.from_weights(pair.source, pair.target, weights)
    console.print(terminal.heat_map(trace, title="Where it looks for each French word", width=console.width), "")
    title = "babel, RNNsearch: where it looks for each French word"
    return [viewing.save(viewing.heat_map(trace, title=title), folder / "babel.png")]


def show_shipped(console: Console, folder: Path) -> list[Path]:
    """Translate a few sentences with the shipped English-French model."""
    console.rule("[bold]The shipped translator en-fr")
    found = [best for (best,) in load("en-fr", device="cpu").translate(ENGLISH)]
    for translation in found:
        console.print(f"{translation.source}\n[bold]{translation.text}[/bold]\n")
    trace = found[1].trace
    if trace is None:
        return []
    console.print(terminal.heat_map(trace, width=console.width), "")
    return [
        viewing.save(viewing.heat_map(trace, title=found[1].text), folder / "en-fr.png"),
        viewing.save(viewing.lines(trace, title=found[1].text), folder / "en-fr-lines.png"),
    ]


@contextmanager
def _one_thread() -> Iterator[None]:
    """Steps as small as these gain nothing from more threads, and lose much where other work shares the cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _scores(model: Translator, test: list[Pair]) -> Table:
    said = [found[0].text for found in model.translate([" ".join(pair.source) for pair in test])]
    wanted = [" ".join(pair.target) for pair in test]
    exact = sum(one == other for one, other in zip(said, wanted, strict=True)) / len(test)
    gold = [GoldAlignment(pair.source, pair.target, pair.sure, pair.possible) for pair in test]
    table = Table("on test meanings never seen in training", "")
    table.add_row("exact match", f"{100 * exact:.1f} %")
    table.add_row("BLEU", f"{corpus_bleu(said, wanted, tokenize='none').value:.1f}")
    table.add_row("alignment error rate of the attention", f"{alignment_error(model, gold).error_rate:.3f}")
    return table
