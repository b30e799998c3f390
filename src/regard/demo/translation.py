"""Translation: measure attention where the links between words are known, and translate with a pretrained model."""

from itertools import islice
from pathlib import Path

from rich.console import Console
from rich.table import Table

import regard
from regard.metrics.alignment import GoldAlignment
from regard.metrics.translation import corpus_bleu
from regard.systems.pretrained import pretrained_models
from regard.systems.translate.alignment import align_words, alignment_error
from regard.systems.translate.model import Translator
from regard.trace import Trace
from regard.viewing import matrix
from regard.worlds.babel import Pair, pairs

MAX_WORDS = 12
"""Longest generated sentence, in words."""
TEST_SENTENCES = 300
BABEL = "babel"
ENGLISH = [
    "Where is the station?",
    "I would like a cup of coffee, please.",
    "My sister has lived in Paris for ten years.",
    "The agreement on the European Economic Area was signed in August 1992.",
]
"""The last one is that of figure 3 in Bahdanau et al. 2015: the French adjectives follow their noun."""


def show_babel(console: Console, folder: Path) -> list[Path]:
    """Measure the translations and the attention of the small translator of the generated world babel."""
    console.rule("[bold]What a translator attends to")
    if BABEL not in {model.name for model in pretrained_models()}:
        console.print(f"The pretrained model {BABEL} is not installed, so its attention is not measured.\n")
        return []
    console.print(
        "RNNsearch learned to translate generated English sentences of the world babel into French (regard train "
        "babel-en-fr, a few minutes). For these sentences it is known which words belong together, so the attention "
        "can be measured.\n"
    )
    model = regard.load(BABEL, device="cpu")
    test = list(islice(pairs("en", "fr", split="test", max_words=MAX_WORDS), TEST_SENTENCES))
    error = _show_scores(console, model, test)
    pair = max(test[:50], key=lambda each: len(each.source))
    (weights,) = align_words(model, [(pair.source, pair.target)])
    trace = Trace.from_weights(pair.source, pair.target, weights)
    title = f"What each French word attends to (alignment error rate {error:.3f})"
    console.print(matrix.terminal(trace, title=title, width=console.width), "")
    return [regard.view(trace).save(folder / "babel.png", title=title)]


def show_pretrained(console: Console, folder: Path) -> list[Path]:
    """Translate a few sentences with the pretrained English-French model."""
    console.rule("[bold]The pretrained translator en-fr")
    translations = regard.load("en-fr", device="cpu").translate(ENGLISH)
    for translation in translations:
        console.print(f"{translation.source}\n[bold]{translation.text}[/bold]\n")
    last = translations[-1]
    view = regard.view(last)
    console.print(view, "")
    title = last.text
    return [
        view.save(folder / "en-fr.png", title=title),
        view.save(folder / "en-fr-lines.png", style="lines", title=title),
    ]


def _show_scores(console: Console, model: Translator, test: list[Pair]) -> float:
    """Print how good the translations and the attention are; returns the alignment error rate of the attention."""
    predictions = [translation.text for translation in model.translate([" ".join(pair.source) for pair in test])]
    references = [" ".join(pair.target) for pair in test]
    matches = sum(text == reference for text, reference in zip(predictions, references, strict=True)) / len(test)
    gold = [GoldAlignment(pair.source, pair.target, pair.sure, pair.possible) for pair in test]
    table = Table(f"on {len(test)} test sentences with new meanings", "")
    table.add_row("exact match", f"{100 * matches:.1f} %")
    table.add_row("BLEU", f"{corpus_bleu(predictions, references, tokenize='none').value:.1f}")
    error = alignment_error(model, gold).error_rate
    table.add_row("alignment error rate of the attention (0 is best)", f"{error:.3f}")
    console.print(table, "")
    return error
