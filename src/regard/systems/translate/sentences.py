"""Texts as a translator reads them: sentence by sentence, without addresses, in signs and in a case that it knows.

A model translates text unlike its training data into fluent nonsense. Therefore a text is split into sentences;
typographic signs that the vocabulary lacks are read as plain ones, and sentences in capitals and rare first words in
lower case. Addresses, and lines without letters, are not read: they stand between sentences as spaces do.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace

from regard.data.text import split_lines, split_sentences
from regard.data.tokenizer import Tokenizer
from regard.systems.translate.config import MAX_SENTENCE_TOKENS

MIN_PIECES = 3
"""A first word of fewer pieces is read as it is."""
_WORD = re.compile(r"[^\W\d_]+")
# Commas, colons and semicolons of several scripts, with what may close before the space; a dash between spaces.
_CLAUSE_END = re.compile(
    "[,;:\\u060c\\u061b\\u3001\\uff0c\\uff1b\\uff1a][\"')\\u201d\\u00bb]*\\s|\\s[-\\u2013\\u2014]\\s"
)
# Typographic quotation marks, apostrophes and dashes.
PLAIN = str.maketrans(
    dict.fromkeys("\u2018\u2019\u201a\u2032", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u00ab\u00bb\u2033", '"')
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-")
)
# Addresses of pages and of mail, without the punctuation that ends a sentence, with the spaces around them.
_ADDRESS = re.compile(r"\s*(?:(?:https?://|www\.)[^\s<>\"]*[^\s<>\".,;:!?')\]]|[\w.+-]+@[\w-]+(?:\.[\w-]+)+)\s*")


@dataclass(frozen=True)
class Sentence:
    """A sentence, or the part of a text that is translated at once."""

    given: str
    """What the model reads of it: in NFC, with single spaces; in lower case where it is in capitals."""
    before: str = ""
    """What stands between the sentence before it and this one, in the source and in the translation."""
    after: str = ""
    """What stands after it, where it is the last."""
    in_capitals: bool = False
    """Whether the translation is to be put into capitals."""


def split(text: str, tokenizer: Tokenizer, *, by_sentence: bool) -> list[Sentence]:
    """The sentences of a text; none where it has no letters."""
    if not by_sentence:
        given = _normalised(text, tokenizer)
        return [Sentence(given)] if given else []
    found: list[Sentence] = []
    before = ""
    for separator, sentence in _parts(text, tokenizer):
        before += separator if found or before else ""
        position = 0
        for address in (*_ADDRESS.finditer(sentence), None):
            part = sentence[position : address.start() if address else len(sentence)]
            if any(map(str.isalpha, part)):
                capitals = is_in_capitals(part)
                given = part.lower() if capitals else _without_rare_capital(part, tokenizer)
                found.append(Sentence(_normalised(given, tokenizer), before, in_capitals=capitals))
                before = ""
            else:
                before += part
            if address:
                before += address[0]
                position = address.end()
    return [*found[:-1], replace(found[-1], after=before.rstrip())] if found else []


def _normalised(text: str, tokenizer: Tokenizer) -> str:
    """A text in NFC with single spaces, with plain signs for those that have no piece."""
    given = " ".join(unicodedata.normalize("NFC", text).split())
    return "".join(_spelled(each, tokenizer) for each in given)


def is_in_capitals(text: str) -> bool:
    """Whether a text has a word in capitals, and no lower-case letter."""
    return not any(map(str.islower, text)) and any(len(word) > 1 and word.isupper() for word in _WORD.findall(text))


def _without_rare_capital(text: str, tokenizer: Tokenizer) -> str:
    """A sentence with its first word in lower case if it is rare, and better known so."""
    first = _WORD.match(text)
    if first is None or not first[0].istitle() or tokenizer.lowercase:
        return text
    pieces, lower = len(tokenizer.encode(first[0])), first[0].lower()
    is_rare = pieces >= MIN_PIECES and len(tokenizer.encode(lower)) < pieces
    return lower + text[first.end() :] if is_rare else text


def _spelled(character: str, tokenizer: Tokenizer) -> str:
    if not tokenizer.alphabet or character in tokenizer.alphabet:
        return character
    plain = unicodedata.normalize("NFKC", character).translate(PLAIN)
    return plain if tokenizer.alphabet.issuperset(plain) else character


def _parts(text: str, tokenizer: Tokenizer) -> Iterator[tuple[str, str]]:
    """The sentences of a text, each after what stands before it: line ends, a space, or nothing inside a long word."""
    waiting, breaks = "", ""
    for number, line in enumerate(split_lines(text)):
        breaks += "\n" if number else ""
        for sentence in split_sentences(line):
            waiting += sentence
            if not any(map(str.isalpha, sentence)):  # "1." belongs to what it numbers
                waiting += " "
                continue
            yield from _divided(waiting, breaks or " ", tokenizer)
            waiting = breaks = ""
        if waiting.strip():
            yield from _divided(waiting, breaks or " ", tokenizer)
            waiting = breaks = ""


def _divided(sentence: str, separator: str, tokenizer: Tokenizer) -> Iterator[tuple[str, str]]:
    """A sentence in parts of at most MAX_SENTENCE_TOKENS."""
    sentence = " ".join(sentence.split())
    # A token has at least one character, so that most sentences need not be encoded here; one in bytes takes four.
    while len(sentence) > MAX_SENTENCE_TOKENS // 4:
        # No piece of a vocabulary is as long as a line may be: only the beginning is looked at.
        head = sentence[: 32 * MAX_SENTENCE_TOKENS]
        if len(head) == len(sentence) and len(tokenizer.encode(sentence)) <= MAX_SENTENCE_TOKENS:
            break
        room = _prefix(head, tokenizer)
        clauses = [match.end() for match in _CLAUSE_END.finditer(sentence, room // 4, room)]
        space = sentence.rfind(" ", 1, room + 1)
        cut = clauses[-1] if clauses else space if space > 0 else room
        yield separator, sentence[:cut]
        separator = " " if clauses or space > 0 else ""
        sentence = sentence[cut:].lstrip()
    if sentence:
        yield separator, sentence


def _prefix(sentence: str, tokenizer: Tokenizer) -> int:
    """About the longest prefix of at most MAX_SENTENCE_TOKENS tokens, in characters."""
    low, high = 1, len(sentence)
    while low < high:
        middle = (low + high + 1) // 2
        if len(tokenizer.encode(sentence[:middle])) <= MAX_SENTENCE_TOKENS:
            low = middle
        else:
            high = middle - 1
    return low
