"""Collect the sentences that the recipe reader-en learns from: everyday English, each sentence once.

    python benchmarks/reader_en_data.py OUT --tatoeba fra-eng.zip deu-eng.zip --snli train.tsv --imdb train.jsonl

Tatoeba gives the English side of its pairs, SNLI its premises and hypotheses, IMDB sentences of its training reviews:
as many as are asked for, chosen by a hash. Sentences of 3 to 40 words are kept, in an order that a hash decides.
"""

import argparse
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from regard.data.labelled_sentences import read_inference
from regard.data.text import read_lines, read_tsv

MIN_WORDS, MAX_WORDS = 3, 40
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
_ENGLISH = re.compile(r"[A-Z][A-Za-z0-9 ,.;:!?'$%-]+[.!?]")
"""Sentences that begin with a capital letter and end with a mark: no titles, lists or other scripts."""
_QUOTES = str.maketrans({"\u2019": "'", "\u2018": "'"})


def tatoeba(paths: Iterable[Path]) -> Iterator[str]:
    return (english for path in paths for english, _ in read_tsv(path))


def snli(paths: Iterable[Path]) -> Iterator[str]:
    for text in chain.from_iterable(pair.texts for path in paths for pair in read_inference(path)):
        sentence = text.strip().rstrip(" .")
        yield sentence[:1].upper() + sentence[1:] + ("" if sentence.endswith(("!", "?")) else ".")


def imdb(paths: Iterable[Path]) -> Iterator[str]:
    for path in paths:
        for line in read_lines(path):
            for paragraph in json.loads(line)["text"].split("<br />"):
                yield from _SENTENCE_END.split(paragraph)


def kept(sentences: Iterable[str]) -> list[str]:
    """The sentences that are plain English, each once, in the order of their hashes."""
    clean = (" ".join(sentence.translate(_QUOTES).split()) for sentence in sentences)
    chosen = {each for each in clean if MIN_WORDS <= len(each.split()) <= MAX_WORDS and _ENGLISH.fullmatch(each)}
    return sorted(chosen, key=_digest)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="text file to write, one sentence per line")
    for name in ("tatoeba", "snli", "imdb"):
        parser.add_argument(f"--{name}", type=Path, nargs="*", default=[])
    parser.add_argument("--imdb-sentences", type=int, default=80_000)
    given = parser.parse_args()
    parts = {
        "Tatoeba": kept(tatoeba(given.tatoeba)),
        "SNLI": kept(snli(given.snli)),
        "IMDB": kept(imdb(given.imdb))[: given.imdb_sentences],
    }
    for name, part in parts.items():
        words = sum(len(sentence.split()) for sentence in part)
        print(f"{name}: {len(part):,} sentences, {words:,} words")
    every = sorted(set(chain.from_iterable(parts.values())), key=_digest)
    given.out.write_text("".join(sentence + "\n" for sentence in every), encoding="utf-8")
    print(f"{given.out}: {len(every):,} sentences")


if __name__ == "__main__":
    main()
