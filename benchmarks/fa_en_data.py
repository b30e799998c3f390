"""Prepare the training files of the recipe fa-en: all Persian there is, and sentences of other languages beside it.

    python benchmarks/fa_en_data.py OUT tatoeba-fa.tsv.gz messages.tsv.gz fra-eng.zip deu-eng.zip [--mix mix.tsv.xz]

The first two files hold English<TAB>Persian, the mix English<TAB>Persian<TAB>source, the others English and another
language. Validation and test sentences come only from the first file, 300 and 500 English sentences; a pair that
contains one of them, in either language, is not trained on. There is little Persian, so it is repeated three times;
with a mix, everyday sentences eight times, messages once and the mix three times; 20,000 sentences of the world
babel add grammar, and 80,000 pairs of each other language teach the decoder everyday English. Subtitles and
literature, which come with spaces before punctuation and in lower case, are put into ordinary spelling. Writes
{train,valid,test}.{fa,en} to OUT.
"""

import argparse
import hashlib
import re
import sys
from itertools import islice
from pathlib import Path

from regard.data.text import read_tsv
from regard.worlds.babel import pairs

VALID_SENTENCES, TEST_SENTENCES = 300, 500
PERSIAN_REPEATS, BABEL_PAIRS, OTHER_PAIRS = 3, 20_000, 80_000
EVERYDAY_REPEATS, MESSAGE_REPEATS, MIX_REPEATS = 8, 1, 3
"""How often each kind of Persian is repeated where there is a mix."""

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
    parser.add_argument("out", type=Path, help="folder to write to")
    parser.add_argument("everyday", type=Path, help="English<TAB>Persian; also held out from")
    parser.add_argument("messages", type=Path, help="English<TAB>Persian")
    parser.add_argument("others", type=Path, nargs="*", help="English<TAB>another language")
    parser.add_argument("--mix", type=Path, help="English<TAB>Persian<TAB>source")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    files = [arguments.everyday, arguments.messages, *arguments.others]
    everyday, messages, *others = [list(dict.fromkeys(read_tsv(file))) for file in files]
    shuffled = sorted({english for english, _ in everyday}, key=_digest)
    splits = {
        "valid": set(shuffled[:VALID_SENTENCES]),
        "test": set(shuffled[VALID_SENTENCES : VALID_SENTENCES + TEST_SENTENCES]),
    }
    held_out = {text for pair in everyday if any(pair[0] in split for split in splits.values()) for text in pair}
    mix = [] if arguments.mix is None else [_ordinary(pair) for pair in dict.fromkeys(read_tsv(arguments.mix))]
    repeats = (PERSIAN_REPEATS, PERSIAN_REPEATS) if arguments.mix is None else (EVERYDAY_REPEATS, MESSAGE_REPEATS)
    train = repeats[0] * everyday + repeats[1] * messages + MIX_REPEATS * mix
    train += [(_sentence(pair.target), _sentence(pair.source)) for pair in islice(pairs("fa", "en"), BABEL_PAIRS)]
    for other in others:
        train += sorted(other, key=lambda pair: _digest("".join(pair)))[:OTHER_PAIRS]
    _write(arguments.out, "train", [pair for pair in train if not held_out.intersection(pair)])
    for name, split in splits.items():
        first = {english: persian for english, persian in reversed(everyday) if english in split}
        _write(arguments.out, name, sorted(first.items()))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _ordinary(pair: tuple[str, str]) -> tuple[str, str]:
    """A pair in ordinary spelling; subtitles, which are in lower case, also lack all apostrophes."""
    english, persian = pair
    if english.islower():
        english = re.sub(r"\w+", lambda word: CONTRACTIONS.get(word.group(), word.group()), english)
    english, persian = (_sentence(tuple(text.split())) for text in (english, persian))
    return re.sub(r"\bi\b", "I", english), persian


def _sentence(words: tuple[str, ...]) -> str:
    """The words as a written sentence: a capital letter first, no space before punctuation."""
    text = re.sub(r" (?=[.,?!؟،])", "", " ".join(words))
    return text[:1].upper() + text[1:]


def _write(out: Path, name: str, chosen: list[tuple[str, str]]) -> None:
    for side, language in enumerate(("en", "fa")):
        (out / f"{name}.{language}").write_text("".join(pair[side] + "\n" for pair in chosen), encoding="utf-8")
    sys.stdout.write(f"{name}: {len(chosen)} pairs\n")


if __name__ == "__main__":
    main()
