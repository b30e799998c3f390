"""Put the tokenised Hansards back into ordinary spelling: "de les droits" is "des droits", "don ' t" is "don't".

    python benchmarks/hansards_spelling.py HANSARDS.tsv[.gz|.xz] OUT.tsv FRENCH...

HANSARDS holds English<TAB>French; FRENCH are files with French in ordinary spelling, one sentence per line.
The Hansards of the word-alignment task have spaces around punctuation, a first word in lower case, and French
contractions and elisions undone. Which of them apply before a word ("de le ministre" is "du ministre", but "de le dire"
stays, and "le onze" is no "l'onze") is learned from French in ordinary spelling.
"""

import argparse
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from regard.data.text import read_lines, read_tsv

CONTRACTED = {"de le": "du", "de les": "des", "à le": "au", "à les": "aux"}
ELIDED = {
    word: word[:-1] + "'"
    for word in ("le", "la", "de", "que", "ne", "se", "ce", "je", "me", "te", "lorsque", "puisque", "quoique", "jusque")
}
_VOWEL = "aeiouâàéèêëîïôöûùAEIOUÂÀÉÈÊËÎÏÔÖÛÙ"
_INFINITIVE = re.compile(r"(er|ir|re)$")
_ACCENT = "éèêëçôîïâàûùÉÈÊËÇÔÎÏÂÀÛÙ"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hansards", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("french", type=Path, nargs="+")
    arguments = parser.parse_args()
    spelling = FrenchSpelling(line for file in arguments.french for line in read_lines(file))
    with arguments.out.open("w", encoding="utf-8") as out:
        for english, french in read_tsv(arguments.hansards):
            out.write(f"{restore_english(english)}\t{spelling.restore(french)}\n")


class FrenchSpelling:
    """What ordinary French does before each word."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._elided: Counter[str] = Counter()
        self._contracted: Counter[str] = Counter()
        for text in texts:
            line = text.lower()
            for _, word in re.findall(r"\b(l|d|qu|n|s|c|j|m)'(\w+)", line):
                self._elided[word] += 1
            for _, word in re.findall(r"\b(le|la|de|que|ne|se|je)\s(?=([" + _VOWEL + r"hy]\w*))", line):
                self._elided[word] -= 1
            for _, word in re.findall(r"\b(du|des|aux?)\s(?=(\w+))", line):
                self._contracted[word] += 1
            for _, word in re.findall(r"\b((?:de|à) les?)\s(?=(\w+))", line):
                self._contracted[word] -= 20  # "des" is also the plural of "un", and far more common

    def restore(self, line: str) -> str:
        """A French line in ordinary spelling."""
        line = re.sub(r"(\d)p\. 100\b", r"\1 %", line)
        line = re.sub(r"(?<=[a-zà])M\.", " M.", line).replace("Lehon.", "L'hon.").replace("aujourd' hui", "aujourd'hui")
        line = re.sub(r"\b(de|à) (les?) (?=(\w+))", self._contract, line)
        line = re.sub(rf"\b({'|'.join(ELIDED)}) (?=(\w+))", self._elide, line, flags=re.IGNORECASE)
        return _sentence(_without_spaces(line, after="(["))

    def _contract(self, match: re.Match[str]) -> str:
        preposition, article, word = match.groups()
        is_elided = article == "le" and self._elides(word)
        known = self._contracted[word.lower()]
        applies = known > 0 or (known == 0 and not _INFINITIVE.search(word))
        return match.group() if is_elided or not applies else CONTRACTED[f"{preposition} {article}"] + " "

    def _elide(self, match: re.Match[str]) -> str:
        word, following = match.groups()
        return word[:-1] + "'" if self._elides(following) else match.group()

    def _elides(self, word: str) -> bool:
        if word[0] not in _VOWEL + "hHyY":
            return False
        known = self._elided[word.lower()]
        return known > 0 or (known == 0 and word[0] not in "yY")


def restore_english(line: str) -> str:
    """An English line in ordinary spelling."""
    line = re.sub(rf"(?<=\w) ([{_ACCENT}]) (?=\w)", r"\1", line).replace("''", '"')
    line = re.sub(r" ' (?=(s|t|re|ve|ll|d|m|a)\b)", "'", line)
    line = re.sub(r"\bi(?= |$)", "I", line)
    return _sentence(_without_spaces(line, before="?!;:%", after="([$"))


def _without_spaces(line: str, *, before: str = "", after: str) -> str:
    line = re.sub(rf" (?=[.,)\]{re.escape(before)}])", "", line)
    line = re.sub(rf"(?<=[{re.escape(after)}]) ", "", line)
    line = re.sub(r"(?<=\w) - (?=\w)", "-", line)
    parts = line.split('"')
    # Between an opening and a closing quotation mark there are spaces, which go.
    return '"'.join(part.strip() if number % 2 else part for number, part in enumerate(parts))


def _sentence(line: str) -> str:
    line = " ".join(line.split())
    start = re.search(r"\w", line)
    return line if start is None else line[: start.start()] + start.group().upper() + line[start.end() :]


if __name__ == "__main__":
    main()
