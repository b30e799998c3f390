"""Measure what splitting, copying and recasing do for the shipped translators, on inputs that are not clean sentences.

    python benchmarks/rough_inputs.py --data TATOEBA             # two minutes for each model
    python benchmarks/rough_inputs.py --data TATOEBA en-fr

TATOEBA is a folder with fra-eng.zip and deu-eng.zip (`regard data get tatoeba-fra`). Sentences are held out ones that
the models have never seen. Each row is translated as the model reads it (split, copy and recase off) and as `translate`
does by default.
"""

import argparse

from rich.console import Console
from rich.table import Table

import regard
from regard.metrics.translation import corpus_bleu
from regard.systems.plan import read_recipe
from regard.systems.translate.data import read_splits
from regard.systems.translate.model import Translator
from regard.systems.translate.retries import find_names
from regard.systems.translate.sentences import Sentence

RECIPES = {"en-fr": "tatoeba-en-fr", "en-de": "tatoeba-en-de"}
OFF = {"split": False, "copy_unknown": False, "recase": False}
NAMES = [
    *("Tehran", "Isfahan", "Nairobi", "Lagos", "Bogota", "Kyiv", "Priya", "Aarav", "Zhang", "Kowalski", "Mombasa"),
    *("Reykjavik", "Aarhus", "Fatima", "Olumide", "Haruki", "Dmitri", "Svetlana", "Ankara", "Baku", "Tbilisi"),
    *("Accra", "Kigali", "Saskatoon", "Winnipeg", "Okafor", "Gustafsson", "Petrov", "Khadija", "Zagreb"),
]
FRAMES = ("I live in {}.", "Do you know {}?", "My friend {} is here.")

Pairs = list[tuple[str, str]]


def rows(model: Translator, test: Pairs, held: Pairs, count: int) -> dict[str, Pairs]:
    """Sources and references of each kind of input."""
    some = test[:: max(1, len(test) // count)][:count]  # they are sorted: an even sample
    two = list(zip(some[::2], some[1::2], strict=False))

    def has_name(pair: tuple[str, str]) -> bool:
        return bool(find_names(Sentence(pair[0], ""), model.source_tokenizer))

    return {
        "sentences": some,
        "with rare names": [pair for pair in held if has_name(pair)],
        "two sentences in a line": [(f"{a[0]} {b[0]}", f"{a[1]} {b[1]}") for a, b in two],
        "in capitals": [(source.upper(), target.upper()) for source, target in some],
        "with an emoji at the end": [(f"{source} 🙂", f"{target} 🙂") for source, target in some],
    }


def bleu(model: Translator, pairs: Pairs, **options: bool) -> float:
    """BLEU of the translations of some sources."""
    found = model.translate([source for source, _ in pairs], traces="none", **options)
    return corpus_bleu([one.text for one in found], [target for _, target in pairs]).value


def names_kept(model: Translator, **options: bool) -> float:
    """Percentage of sentences whose name is in the translation."""
    texts = [(frame.format(name), name) for name in NAMES for frame in FRAMES]
    found = model.translate([text for text, _ in texts], traces="none", **options)
    return 100 * sum(name in one.text for one, (_, name) in zip(found, texts, strict=True)) / len(texts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"default: {', '.join(RECIPES)}")
    parser.add_argument("--data", required=True, metavar="TATOEBA")
    parser.add_argument("--count", type=int, default=200, help="sentences of each row")
    arguments = parser.parse_args()
    table = Table("model", "input", "sentences", "measure", "as read", "default")
    for name in arguments.models or RECIPES:
        model = regard.load(name, device="cpu")
        splits = read_splits(read_recipe(RECIPES[name], {"data": {"folder": arguments.data}}).data)
        held = [*(splits.test or []), *splits.valid]
        for kind, pairs in rows(model, splits.test or [], held, arguments.count).items():
            scores = [f"{bleu(model, pairs, **options):.1f}" for options in (OFF, {})]
            table.add_row(name, kind, str(len(pairs)), "BLEU", *scores)
        scores = [f"{names_kept(model, **options):.1f}" for options in (OFF, {})]
        table.add_row(name, "names in simple sentences", str(len(NAMES) * len(FRAMES)), "% kept", *scores)
    Console().print(table)


if __name__ == "__main__":
    main()
