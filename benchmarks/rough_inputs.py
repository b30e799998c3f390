"""Measure the shipped translators on inputs that are not clean sentences: capitals, emoji, names and numbers.

    python benchmarks/rough_inputs.py --data TATOEBA             # two minutes for each model
    python benchmarks/rough_inputs.py --data TATOEBA en-fr

TATOEBA is a folder with fra-eng.zip and deu-eng.zip (`regard data get tatoeba-fra`). Sentences are held out ones that
the models have never seen, names and numbers stand in simple sentences. All are translated as by default.
"""

import argparse
import re

from rich.console import Console
from rich.table import Table

import regard
from regard.metrics.translation import corpus_bleu
from regard.systems.plan import read_recipe
from regard.systems.translate.data import read_splits
from regard.systems.translate.model import Translator

RECIPES = {"en-fr": "tatoeba-en-fr", "en-de": "tatoeba-en-de"}
NAMES = [
    *("Tehran", "Isfahan", "Nairobi", "Lagos", "Bogota", "Kyiv", "Priya", "Aarav", "Zhang", "Kowalski", "Mombasa"),
    *("Reykjavik", "Aarhus", "Fatima", "Olumide", "Haruki", "Dmitri", "Svetlana", "Ankara", "Baku", "Tbilisi"),
    *("Accra", "Kigali", "Saskatoon", "Winnipeg", "Okafor", "Gustafsson", "Petrov", "Khadija", "Zagreb"),
]
NAME_FRAMES = ("I live in {}.", "Do you know {}?", "My friend {} is here.")
NUMBERS = ("1987", "2031", "347", "1,250", "86,400", "19.99", "3.75", "512", "7,305", "24601", "0.85", "99.5")
NUMBER_FRAMES = ("It costs {} dollars.", "He counted {} of them.", "The number is {}.", "They sold {} books in a year.")

Pairs = list[tuple[str, str]]


def rows(test: Pairs, count: int) -> dict[str, Pairs]:
    """Sources and references of each kind of input."""
    some = test[:: max(1, len(test) // count)][:count]  # they are sorted: an even sample
    two = list(zip(some[::2], some[1::2], strict=False))
    return {
        "sentences": some,
        "two sentences in a line": [(f"{a[0]} {b[0]}", f"{a[1]} {b[1]}") for a, b in two],
        "in capitals": [(source.upper(), target.upper()) for source, target in some],
        "in lower case": [(source.lower(), target) for source, target in some],
        "with an emoji at the end": [(f"{source} 🙂", f"{target} 🙂") for source, target in some],
    }


def bleu(model: Translator, pairs: Pairs) -> float:
    """BLEU of the translations of some sources."""
    found = model.translate([source for source, _ in pairs], traces="none")
    return corpus_bleu([one.text for one in found], [target for _, target in pairs]).value


def kept(model: Translator, words: tuple[str, ...], frames: tuple[str, ...]) -> str:
    """In how many sentences the translation has the name or the number, with any marks of thousands and decimals."""
    texts = [(frame.format(word), word) for word in words for frame in frames]
    found = model.translate([text for text, _ in texts], traces="none")
    good = sum(bool(re.search(_pattern(word), one.text)) for one, (_, word) in zip(found, texts, strict=True))
    return f"{good} of {len(texts)}"


def _pattern(word: str) -> str:
    if not word[0].isdigit():
        return re.escape(word)
    marks = {".": "[.,]", ",": r"[.,\s]?"}
    return r"(?<!\d)" + "".join(marks.get(sign, sign) for sign in word) + r"(?!\d)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"shipped models; default: {', '.join(RECIPES)}")
    parser.add_argument("--data", required=True, metavar="TATOEBA")
    parser.add_argument("--count", type=int, default=200, help="sentences of each row")
    arguments = parser.parse_args()
    table = Table("model", "input", "sentences", "measure", "result")
    for name in arguments.models or RECIPES:
        model = regard.load(name, device="cpu")
        splits = read_splits(read_recipe(RECIPES[name], {"data": {"folder": arguments.data}}).data)
        for kind, pairs in rows(splits.test or [], arguments.count).items():
            table.add_row(name, kind, str(len(pairs)), "BLEU", f"{bleu(model, pairs):.1f}")
        for kind, words, frames in (("names", tuple(NAMES), NAME_FRAMES), ("numbers", NUMBERS, NUMBER_FRAMES)):
            row = kept(model, words, frames)
            table.add_row(name, f"{kind} in simple sentences", str(len(words) * len(frames)), "kept", row)
    Console().print(table)


if __name__ == "__main__":
    main()
