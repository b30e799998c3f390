"""Prepare the training files of the recipe en-fr: everyday sentences, debates of two parliaments, image captions.

    python benchmarks/en_fr_data.py texts OUT fra-eng.zip europarl.tsv.xz hansards.tsv.xz train.en.gz train.fr.gz
    regard align-corpus OUT/split.en OUT/split.fr --rounds 0 --out OUT/aligned
    python benchmarks/en_fr_data.py links OUT
    python benchmarks/en_fr_data.py rare OUT

The first command reads Tatoeba, Europarl and the Hansards (English<TAB>French) and Multi30k. From Tatoeba, 1,000
English sentences are held out for validation and 2,000 for the test, as by the recipe tatoeba-en-fr; no pair that
contains one of them, in either language, is trained on. The Hansards are put into ordinary spelling, and Tatoeba is
used three times. It writes {train,valid,test}.{en,fr}, and the pairs that are to be aligned, the first of the training
pairs, as split.{en,fr}, with punctuation and l' apart. The second command links their words; the third
writes these links as train.links, with an empty line for every other pair.

The fourth writes files of the same names into OUT/rare, for a second, short training: a selection of the training
pairs in which rare words and quotations are frequent.
"""

import argparse
import re
import shutil
import sys
from collections import Counter
from itertools import chain, zip_longest
from pathlib import Path

import numpy as np
from hansards_spelling import FrenchSpelling, restore_english

from regard.data.alignments import format_links
from regard.data.splits import HashHoldOut
from regard.data.text import read_lines, read_pairs, read_tsv
from regard.data.tokenizer import split_words

VALID_SENTENCES, TEST_SENTENCES = 1000, 2000
EVERYDAY_REPEATS = 3
"""How often each pair of Tatoeba is used: its sentences are short, and few beside those of the debates."""
ALIGNED_DEBATES = 60_000
"""Pairs of Europarl to align; the others are too many for a few minutes."""
MAX_WORDS = 60
RARE_COUNT, RARE_MAX_WORDS = 12, 40
"""In how many pairs of the second training each English word occurs, if there are as many, and how long these are."""
RARE_MINIMUM = 5
"""In how many pairs an English word must occur to be sought."""
QUOTE_EVERY = 25
"""Of the pairs without a quotation, each 25th is put into quotation marks."""
Pair = tuple[str, str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    texts = commands.add_parser("texts")
    texts.set_defaults(run=write_texts)
    texts.add_argument("out", type=Path)
    for name in ("tatoeba", "europarl", "hansards", "captions_en", "captions_fr"):
        texts.add_argument(name, type=Path)
    links = commands.add_parser("links")
    links.set_defaults(run=write_links)
    links.add_argument("out", type=Path)
    rare = commands.add_parser("rare")
    rare.set_defaults(run=write_rare)
    rare.add_argument("out", type=Path)
    arguments = parser.parse_args()
    arguments.run(arguments)


def write_texts(arguments: argparse.Namespace) -> None:
    """The training, validation and test files, and the part to align."""
    tatoeba, europarl = (list(dict.fromkeys(read_tsv(file))) for file in (arguments.tatoeba, arguments.europarl))
    captions = list(read_pairs(arguments.captions_en, arguments.captions_fr))
    held = HashHoldOut.from_items(tatoeba, lambda pair: pair[0], valid=VALID_SENTENCES, test=TEST_SENTENCES)
    valid, test = held.held_out()
    sources = {source for source, _ in (*valid, *test)}
    held_out = {text for pair in tatoeba if pair[0] in sources for text in pair}
    spelling = FrenchSpelling(french for _, french in (*europarl, *captions))
    hansards = [
        (restore_english(english), spelling.restore(french)) for english, french in read_tsv(arguments.hansards)
    ]

    def usable(pairs: list[Pair]) -> list[Pair]:
        cleaned = [_cleaned(pair) for pair in pairs if not held_out.intersection(pair)]
        return [pair for pair in cleaned if _is_usable(pair)]

    to_align = usable([*tatoeba, *captions, *europarl[:ALIGNED_DEBATES]])
    train = to_align + usable([*europarl[ALIGNED_DEBATES:], *hansards, *(EVERYDAY_REPEATS - 1) * tatoeba])
    arguments.out.mkdir(parents=True, exist_ok=True)
    split = [(" ".join(split_words(english)), " ".join(split_words(french))) for english, french in to_align]
    for name, pairs in {"train": train, "valid": valid, "test": test, "split": split}.items():
        for side, language in enumerate(("en", "fr")):
            lines = "".join(pair[side] + "\n" for pair in pairs)
            (arguments.out / f"{name}.{language}").write_text(lines, encoding="utf-8")
        sys.stdout.write(f"{name}: {len(pairs)} pairs\n")


def write_links(arguments: argparse.Namespace) -> None:
    """train.links: the links of the pairs that were aligned, and an empty line for every other training pair."""
    out: Path = arguments.out
    links = read_lines(out / "aligned/round-0/forward.links")
    lines = "".join((line or "") + "\n" for _, line in zip_longest(read_lines(out / "train.en"), links))
    (out / "train.links").write_text(lines, encoding="utf-8")


def write_rare(arguments: argparse.Namespace) -> None:
    """rare/train.{en,fr,links}: pairs in which each word occurs some times, and all quotations; rare/{valid,test}."""
    out: Path = arguments.out
    files = (read_lines(out / f"train.{name}") for name in ("en", "fr", "links"))
    pairs = [line for line in dict.fromkeys(zip(*files, strict=True)) if len(line[0].split()) <= RARE_MAX_WORDS]
    pairs = [pairs[index] for index in np.random.default_rng(1).permutation(len(pairs))]
    words = [{word.lower() for word in split_words(english) if word.isalpha()} for english, _, _ in pairs]
    known = Counter(chain.from_iterable(words))
    shown: Counter[str] = Counter()
    chosen: list[int] = []
    # Short pairs first: a word is a larger part of them.
    for index in sorted(range(len(pairs)), key=lambda index: len(pairs[index][0].split()) // 8):
        sought = any(known[word] >= RARE_MINIMUM and shown[word] < RARE_COUNT for word in words[index])
        if sought or '"' in pairs[index][0]:
            chosen.append(index)
            shown.update(words[index])
    folder = out / "rare"
    folder.mkdir(exist_ok=True)
    lines = [_quotation(*pairs[index], add=number % QUOTE_EVERY == 0) for number, index in enumerate(sorted(chosen))]
    for name, column in zip(("en", "fr", "links"), zip(*lines, strict=True), strict=True):
        (folder / f"train.{name}").write_text("".join(f"{line}\n" for line in column), encoding="utf-8")
    for name in ("valid.en", "valid.fr", "test.en", "test.fr"):
        shutil.copyfile(out / name, folder / name)
    sys.stdout.write(f"rare/train: {len(lines)} pairs\n")


def _quotation(english: str, french: str, links: str, *, add: bool) -> tuple[str, str, str]:
    """The pair with quotation marks as usual in each language; with `add`, a pair without them is put into them."""
    english, french = re.sub("[“”]", '"', english), re.sub(r'"\s*([^"]+?)\s*"', r"« \1 »", french)
    if not add or '"' in english or "«" in french:
        return english, french, links
    moved = [tuple(int(place) + 1 for place in link.split("-")) for link in links.split()]
    ends = [(0, 0), (len(split_words(english)) + 1, len(split_words(french)) + 1)] if links else []
    return f'"{english}"', f"« {french} »", format_links([*moved, *ends])


def _cleaned(pair: Pair) -> Pair:
    english, french = (" ".join(text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").split()) for text in pair)
    return english, french


def _is_usable(pair: Pair) -> bool:
    """Whether a pair is free of mark-up and not too long."""
    return all(0 < len(text.split()) <= MAX_WORDS and not re.search(r"[*<>\[\]|]", text) for text in pair)


if __name__ == "__main__":
    main()
