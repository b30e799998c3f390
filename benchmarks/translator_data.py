"""Prepare the training files of the recipes en-fr, en-de and fa-en from public data sets.

    python benchmarks/translator_data.py texts en-fr DATA OUT
    regard align-corpus OUT/split.en OUT/split.fr --rounds 0 --out OUT/aligned
    python benchmarks/translator_data.py links en-fr OUT

DATA is a folder with the files that SETS names. The first command writes {train,valid,test}.{en,fr}, and those training
pairs that are to be aligned, with punctuation and l' apart, as split.{en,fr}. The second links their words; the third
writes the links of all training pairs as train.links, with an empty line for a pair that was not aligned. The source
language comes first: for fa-en, align split.fa and split.en.

Sentences of Tatoeba are held out for validation and for the test by a hash of the English sentence (1,000 and 2,000,
as by the recipes tatoeba-en-fr and tatoeba-en-de; of the few Persian ones 300 and 500); no pair that contains one of
them, in either language, is trained on. The same holds for every sentence of the development and test sets in DATA,
whatever its capitals and punctuation. The sets are repeated as MIXTURES says. Pairs with rare words are used once more,
some of them in quotation marks. For fa-en, pairs of other languages teach the decoder everyday English.
"""

import argparse
import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

import numpy as np
from hansards_spelling import FrenchSpelling, restore_english
from persian_spelling import ordinary, sentence

from regard.data.alignments import format_links
from regard.data.splits import HashHoldOut
from regard.data.text import read_lines, read_pairs, read_tsv
from regard.data.tokenizer import split_words
from regard.worlds.babel import pairs as babel_pairs

HELD_OUT = {"en-fr": (1000, 2000), "en-de": (1000, 2000), "fa-en": (300, 500)}
"""Sentences of Tatoeba for validation and for the test."""
BABEL_PAIRS = 10_000
MAX_WORDS = 60
RARE_COUNT, RARE_MINIMUM, RARE_MAX_WORDS = 6, 3, 40
"""Each English word that occurs in at least RARE_MINIMUM pairs is shown in at least RARE_COUNT pairs once more, if
there are as many; longer pairs are not used for that."""
QUOTE_EVERY = 8
"""Of the pairs that are used once more for their rare words, each 8th is put into quotation marks."""
QUOTES = {"en": ('"', '"'), "fr": ("« ", " »"), "de": ("„", "“"), "fa": ("«", "»")}
COMPARED_WORDS = 4
"""Shorter sentences of training and test sets may be the same, such as "Thank you."."""
Pair = tuple[str, str]


@dataclass(frozen=True)
class Use:
    """How a set is used: how often its pairs are repeated, how many are used, and how many of these are aligned."""

    repeats: int = 1
    count: int | None = None
    aligned: int | None = None


def _captions(language: str) -> Callable[[Path], Iterable[Pair]]:
    return lambda data: read_pairs(data / "multi30k/train.en.gz", data / f"multi30k/train.{language}.gz")


def _tsv(*names: str) -> Callable[[Path], Iterable[Pair]]:
    return lambda data: chain.from_iterable(read_tsv(data / name) for name in names)


def _news(pair: str) -> Callable[[Path], Iterable[Pair]]:
    return _tsv(*(f"translation_tests/newstest{year}.{pair}.tsv.xz" for year in (2010, 2011, 2012)))


def _hansards(data: Path) -> Iterator[Pair]:
    spelling = FrenchSpelling(french for _, french in (*SETS["europarl-fr"](data), *SETS["captions-fr"](data)))
    for english, french in read_tsv(data / "hansards_en_fr/hansards_train_250k.tsv.xz"):
        yield restore_english(english), spelling.restore(french)


def _babel(_: Path) -> Iterator[Pair]:
    return ((sentence(pair.target), sentence(pair.source)) for pair in islice(babel_pairs("fa", "en"), BABEL_PAIRS))


SETS: dict[str, Callable[[Path], Iterable[Pair]]] = {
    "tatoeba-fr": _tsv("tatoeba/fra-eng.zip/fra.txt"),
    "tatoeba-de": _tsv("tatoeba/deu-eng.zip/deu.txt"),
    "tatoeba-fa": _tsv("persian_english/tatoeba_eng-pes_2022.tsv.gz"),
    "captions-fr": _captions("fr"),
    "captions-de": _captions("de"),
    "europarl-fr": _tsv("europarl_en_fr/train.en-fr.tsv.xz"),
    "europarl-de": _tsv("europarl_en_de/train.en-de.tsv.xz"),
    "hansards": _hansards,
    "mix-fr": _tsv("mix/mix_en_fr.tsv.xz"),
    "mix-de": _tsv("mix/mix_en_de.tsv.xz"),
    "mix-fa": _tsv("mix/mix_en_fa.tsv.xz"),
    "news-fr": _news("en-fr"),
    "news-de": _news("en-de"),
    "talks-de": _tsv(
        *(f"translation_tests/iwslt16_ted_{name}.en-de.tsv.xz" for name in ("dev2010", "tst2010", "tst2011", "tst2012"))
    ),
    "several-fa": lambda data: map(ordinary, read_tsv(data / "fa_en_mix/train.en-fa.tsv.xz")),
    "messages-fa": _tsv("persian_english/debian_ui_en-fa.tsv.gz"),
    "babel": _babel,
}
"""English and another language, from files of the data sets of these names."""

MIXTURES: dict[str, dict[str, Use]] = {
    "en-fr": {
        "tatoeba-fr": Use(3),
        "captions-fr": Use(2),
        "mix-fr": Use(),
        "news-fr": Use(2),
        "europarl-fr": Use(count=190_000, aligned=80_000),
        "hansards": Use(count=80_000, aligned=60_000),
    },
    "en-de": {
        "tatoeba-de": Use(3),
        "captions-de": Use(3),
        "mix-de": Use(2),
        "news-de": Use(2),
        "talks-de": Use(2),
        "europarl-de": Use(count=190_000, aligned=100_000),
    },
    "fa-en": {
        "tatoeba-fa": Use(8),
        "several-fa": Use(3),
        "mix-fa": Use(2),
        "messages-fa": Use(),
        "babel": Use(),
        "tatoeba-fr": Use(count=80_000, aligned=0),
        "tatoeba-de": Use(count=80_000, aligned=0),
    },
}
"""What each recipe is trained on; its first set is the one that sentences are held out from."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for name, run in (("texts", write_texts), ("links", write_links)):
        command = commands.add_parser(name)
        command.set_defaults(run=run)
        command.add_argument("recipe", choices=MIXTURES)
        if run is write_texts:
            command.add_argument("data", type=Path, help="folder with the data sets")
        command.add_argument("out", type=Path, help="folder to write to")
    arguments = parser.parse_args()
    arguments.run(arguments)


def write_texts(arguments: argparse.Namespace) -> None:
    """The training, validation and test files, and the part to align."""
    recipe, data, out = arguments.recipe, arguments.data, arguments.out
    everyday = list(dict.fromkeys(SETS[next(iter(MIXTURES[recipe]))](data)))
    valid, test = _held_out(everyday, recipe)
    sources = {english for english, _ in (*valid, *test)}
    exact = {text for pair in everyday if pair[0] in sources for text in pair}
    near = {_letters(text) for text in chain(_tests(data), chain(*valid, *test))}
    aligned: list[Pair] = []
    rest: list[Pair] = []
    for name, use in MIXTURES[recipe].items():
        # Tatoeba has many sentences that differ by a sign: only the same ones are left out of it, as by tatoeba-en-fr.
        compared = _letters_of(_tests(data)) if name == next(iter(MIXTURES[recipe])) else near
        read = (_cleaned(pair, recipe) for pair in dict.fromkeys(SETS[name](data)) if not exact.intersection(pair))
        usable = (pair for pair in read if _is_usable(pair, recipe) and not _is_known(pair, compared))
        pairs = list(islice(usable, use.count))
        count = len(pairs) if use.aligned is None else use.aligned
        aligned += pairs[:count]
        rest += pairs[count:] + (use.repeats - 1) * pairs
        sys.stdout.write(f"{name}: {len(pairs)} pairs, {use.repeats} times\n")
    rest += _with_rare_words([*aligned, *rest], recipe)
    split = [tuple(" ".join(split_words(text)) for text in pair) for pair in aligned]
    out.mkdir(parents=True, exist_ok=True)
    for name, pairs in {"train": [*aligned, *rest], "valid": valid, "test": test, "split": split}.items():
        for side, language in enumerate(_languages(recipe)):
            lines = "".join(pair[side] + "\n" for pair in pairs)
            (out / f"{name}.{language}").write_text(lines, encoding="utf-8")
        sys.stdout.write(f"{name}: {len(pairs)} pairs\n")


def write_links(arguments: argparse.Namespace) -> None:
    """train.links: the links of the pairs that were aligned and of their repetitions, and empty lines."""
    recipe, out = arguments.recipe, arguments.out
    languages = recipe.split("-")
    pairs = list(read_pairs(out / f"train.{languages[0]}", out / f"train.{languages[1]}"))
    known = dict(zip(pairs, read_lines(out / "aligned/round-0/forward.links"), strict=False))
    opening, closing = (tuple(QUOTES[language][end] for language in languages) for end in (0, 1))

    def links(pair: Pair) -> str:
        if pair in known:
            return known[pair]
        inner = tuple(text.removeprefix(opening[side]).removesuffix(closing[side]) for side, text in enumerate(pair))
        if not known.get(inner):
            return ""
        moved = [tuple(int(place) + 1 for place in link.split("-")) for link in known[inner].split()]
        end = tuple(len(split_words(text)) + 1 for text in inner)
        return format_links([*moved, (0, 0), end])

    (out / "train.links").write_text("".join(links(pair) + "\n" for pair in pairs), encoding="utf-8")


def _held_out(pairs: Sequence[Pair], recipe: str) -> tuple[list[Pair], list[Pair]]:
    """The validation and test pairs: one for each English sentence that is held out."""
    valid, test = HELD_OUT[recipe]
    if recipe != "fa-en":
        return HashHoldOut.from_items(pairs, lambda pair: pair[0], valid=valid, test=test).held_out()
    # More than the tenth of all sentences that HashHoldOut would give.
    first = dict(reversed(pairs))
    chosen = sorted(first, key=lambda text: hashlib.sha256(text.encode()).digest())[: valid + test]
    return [(text, first[text]) for text in sorted(chosen[:valid])], [
        (text, first[text]) for text in sorted(chosen[valid:])
    ]


def _languages(recipe: str) -> tuple[str, str]:
    """The language of the first and of the second column of the sets: English is the first."""
    return "en", recipe.replace("en", "").strip("-")


def _tests(data: Path) -> Iterator[str]:
    """Every sentence of the development and test sets, in every language."""
    for name in ("flores200_dev.en-de-fr-fa", "newstest2013.en-de", "newstest2013.en-fr"):
        for line in read_lines(data / f"translation_tests/{name}.tsv.xz"):
            yield from line.split("\t")
    for name in ("europarl_en_fr/dev.en-fr", "europarl_en_de/dev.en-de", "fa_en_mix/dev.en-fa"):
        yield from chain.from_iterable(read_tsv(data / f"{name}.tsv.xz"))
    yield from chain.from_iterable(read_tsv(data / "persian_english/parsinlu_dev_en-fa.tsv.gz"))
    for part in ("val", "test_2016_flickr"):
        for language in ("en", "de", "fr"):
            yield from read_lines(data / f"multi30k/{part}.{language}.gz")
    for file in sorted((data / "alignment_gold").glob("*.jsonl.gz")):
        for line in read_lines(file):
            yield from (" ".join(json.loads(line)[side]) for side in ("src", "tgt"))


def _letters(text: str) -> str:
    """What two sentences have in common that differ in capitals, punctuation or spaces only."""
    return "".join(filter(str.isalpha, text.lower()))


def _letters_of(texts: Iterable[str]) -> set[str]:
    return set(map(_letters, texts))


def _is_known(pair: Pair, letters: set[str]) -> bool:
    return any(len(text.split()) >= COMPARED_WORDS and _letters(text) in letters for text in pair)


def _cleaned(pair: Pair, recipe: str) -> Pair:
    """A pair with single spaces, and with plain English and French apostrophes and usual quotation marks."""
    english, other = (" ".join(text.split()) for text in pair)
    english = re.sub("[\u201c\u201d]", '"', re.sub("[\u2018\u2019]", "'", english))
    if recipe == "en-fr":
        other = re.sub(r'["“]\s*([^"”]+?)\s*["”]', r"« \1 »", other.replace("\u2019", "'"))
    return english, other


def _is_usable(pair: Pair, recipe: str) -> bool:
    """Whether a pair is free of mark-up and not too long; in the Persian of the Quran, brackets mark explanations."""
    markup = r"[*<>|\uFFFD]" if recipe == "fa-en" else r"[*<>\[\]|]"
    return all(0 < len(text.split()) <= MAX_WORDS and not re.search(markup, text) for text in pair)


def _with_rare_words(pairs: Iterable[Pair], recipe: str) -> list[Pair]:
    """Pairs in which each word occurs some times; some of them in quotation marks."""
    unique = [pair for pair in dict.fromkeys(pairs) if len(pair[0].split()) <= RARE_MAX_WORDS]
    unique = [unique[index] for index in np.random.default_rng(1).permutation(len(unique))]
    words = [{word.lower() for word in split_words(english) if word.isalpha()} for english, _ in unique]
    known = Counter(chain.from_iterable(words))
    shown: Counter[str] = Counter()
    chosen: list[int] = []
    # Short pairs first: a word is a larger part of them.
    for index in sorted(range(len(unique)), key=lambda index: len(unique[index][0].split()) // 8):
        if any(known[word] >= RARE_MINIMUM and shown[word] < RARE_COUNT for word in words[index]):
            chosen.append(index)
            shown.update(words[index])
    quotes = [QUOTES[language] for language in _languages(recipe)]
    return [
        _quoted(unique[index], quotes) if number % QUOTE_EVERY == 0 else unique[index]
        for number, index in enumerate(sorted(chosen))
    ]


def _quoted(pair: Pair, quotes: Sequence[tuple[str, str]]) -> Pair:
    """The pair in quotation marks, as usual in each language, unless it has some."""
    if any(mark in text for text in pair for mark in '"„“”«»'):
        return pair
    english, other = (f"{start}{text}{end}" for text, (start, end) in zip(pair, quotes, strict=True))
    return english, other


if __name__ == "__main__":
    main()
