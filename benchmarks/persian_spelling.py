"""Put subtitles and literature in English and Persian into ordinary spelling: "i dont know ." is "I don't know.".

    python benchmarks/persian_spelling.py PAIRS.tsv[.gz|.xz] OUT.tsv

PAIRS holds English<TAB>Persian, with spaces before punctuation; subtitles are in lower case, without apostrophes.
"""

import argparse
import re
from collections.abc import Iterable
from pathlib import Path

from regard.data.text import read_tsv

CONTRACTIONS = {
    whole.replace("'", ""): whole
    for whole in [
        "i'm",
        "i've",
        "you've",
        "you're",
        "you'll",
        "you'd",
        "he's",
        "she's",
        "that's",
        "there's",
        "what's",
        "who's",
        "where's",
        "here's",
        "let's",
        "they're",
        "they've",
        "they'll",
        "we've",
        "don't",
        "doesn't",
        "didn't",
        "can't",
        "couldn't",
        "won't",
        "wouldn't",
        "shouldn't",
        "isn't",
        "aren't",
        "wasn't",
        "weren't",
        "haven't",
        "hasn't",
        "hadn't",
        "ain't",
    ]
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    with arguments.out.open("w", encoding="utf-8") as out:
        for pair in read_tsv(arguments.pairs):
            out.write("\t".join(ordinary(pair)) + "\n")


def ordinary(pair: tuple[str, str]) -> tuple[str, str]:
    """A pair in ordinary spelling; subtitles, which are in lower case, also lack all apostrophes."""
    english, persian = pair
    if english.islower():
        english = re.sub(r"\w+", lambda word: CONTRACTIONS.get(word.group(), word.group()), english)
    english, persian = (sentence(text.split()) for text in (english, persian))
    return re.sub(r"\bi\b", "I", english), persian


def sentence(words: Iterable[str]) -> str:
    """The words as a written sentence: a capital letter first, no space before punctuation."""
    text = re.sub(r" (?=[.,?!؟،])", "", " ".join(words))
    return text[:1].upper() + text[1:]


if __name__ == "__main__":
    main()
