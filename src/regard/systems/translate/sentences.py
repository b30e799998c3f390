"""Texts as a translator reads them: sentence by sentence, without what it cannot spell, in a case that it knows.

A model translates text unlike its training data into fluent nonsense. Therefore a text is split into sentences;
addresses and whatever the vocabulary cannot spell are taken out, and copied to the translation; sentences in capitals
and rare first words are tried in lower case.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

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
_PLAIN = str.maketrans(
    dict.fromkeys("\u2018\u2019\u201a\u2032", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u00ab\u00bb\u2033", '"')
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-")
)
# Addresses of pages and of mail, without the punctuation that ends a sentence.
ADDRESS = re.compile(r"(?:https?://|www\.)[^\s<>\"]*[^\s<>\".,;:!?')\]]|[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
Span = tuple[int, int]
"""Where something stands in a text: from one character to another, which is no part of it."""


@dataclass(frozen=True)
class Copied:
    """A part of a sentence that is copied to the translation."""

    text: str
    place: int
    """How many words of what is read stand before it."""


@dataclass(frozen=True)
class Piece:
    """What a model reads of a sentence: all that it can spell, in lower case, or with other names."""

    read: str
    """What the model reads; empty where there are no letters that it can read."""
    copied: tuple[Copied, ...] = ()
    stand_for: Mapping[str, str] = field(default_factory=dict)
    """Words that stand for names, and these names."""
    capitals: bool = False
    """Whether the translation is to be put into capitals."""
    capital: bool = False
    """Whether the translation is to begin with a capital, because the sentence was read without."""


@dataclass(frozen=True)
class Sentence:
    """A sentence, or the part of a text that is translated at once."""

    given: str
    """The sentence in NFC, with single spaces."""
    separator: str
    """What stands between the segment before it and this one, in the source and in the translation."""
    copied: tuple[Span, ...] = ()
    """What is to be copied: addresses, and what the vocabulary cannot spell."""

    def piece(self, names: Mapping[Span, str] | None = None) -> Piece:
        """What is read of it, with words in the place of names; what is to be copied is taken out."""
        names = names or {}
        edits = {span: None for span in self.copied if span not in names} | dict(names)
        read, end, copied = "", 0, []
        for (start, stop), word in sorted(edits.items()):
            read += self.given[end:start] + (word or "")
            if word is None:
                copied.append(Copied(self.given[start:stop], len(read.split())))
            end = stop
        read = " ".join((read + self.given[end:]).split())
        stand_for = {word: self.given[slice(*span)] for span, word in names.items()}
        return Piece(read if any(map(str.isalpha, read)) else "", tuple(copied), stand_for)

    def words_before(self, index: int) -> int:
        """How many words of what is read stand before a place of the sentence."""
        return len(Sentence(self.given[:index], "", self.copied).piece().read.split())


def split(text: str, tokenizer: Tokenizer, *, by_sentence: bool, copy: bool) -> list[Sentence]:
    """The sentences of a text; none where it has no words. With `copy`, what is to be copied is marked."""
    found: list[Sentence] = []
    for separator, sentence in _parts(text, tokenizer) if by_sentence else [("", text)]:
        given = " ".join(unicodedata.normalize("NFC", sentence).split())
        if copy and not tokenizer.alphabet.issuperset(given):
            given = "".join(_spelled(each, tokenizer) for each in given)
        if given:
            spans = _copied(given, tokenizer) if copy else ()
            found.append(Sentence(given, separator if found else "", spans))
    return found


def _copied(text: str, tokenizer: Tokenizer) -> tuple[Span, ...]:
    """Where addresses and what cannot be spelled stand; what overlaps is one."""
    spans: list[Span] = []
    for start, end in sorted([*(match.span() for match in ADDRESS.finditer(text)), *tokenizer.unspellable(text)]):
        if spans and start < spans[-1][1]:
            start, end = spans[-1][0], max(end, spans.pop()[1])
        spans.append((start, end))
    return tuple(spans)


def _parts(text: str, tokenizer: Tokenizer) -> list[tuple[str, str]]:
    """The sentences of a text, each after what stands before it: line ends, a space, or nothing inside a long word."""
    parts: list[tuple[str, str]] = []
    waiting, breaks = "", ""
    for number, line in enumerate(split_lines(text)):
        breaks += "\n" if number else ""
        for sentence in split_sentences(line):
            waiting += sentence
            if not any(map(str.isalpha, sentence)):  # "1." belongs to what it numbers
                waiting += " "
                continue
            parts += _divided(waiting, breaks or " ", tokenizer)
            waiting = breaks = ""
        if waiting.strip():
            parts += _divided(waiting, breaks or " ", tokenizer)
            waiting = breaks = ""
    return parts


def _divided(sentence: str, separator: str, tokenizer: Tokenizer) -> list[tuple[str, str]]:
    """A sentence in parts of at most MAX_SENTENCE_TOKENS."""
    parts: list[tuple[str, str]] = []
    sentence = " ".join(sentence.split())
    # A token has at least one character, so that most sentences need not be encoded here.
    while len(sentence) > MAX_SENTENCE_TOKENS:
        # No piece of a vocabulary is as long as a line may be: only the beginning is looked at.
        head = sentence[: 32 * MAX_SENTENCE_TOKENS]
        if len(head) == len(sentence) and len(tokenizer.encode(sentence)) <= MAX_SENTENCE_TOKENS:
            break
        room = _prefix(head, tokenizer)
        clauses = [match.end() for match in _CLAUSE_END.finditer(sentence, room // 4, room)]
        space = sentence.rfind(" ", 1, room + 1)
        cut = clauses[-1] if clauses else space if space > 0 else room
        parts.append((separator, sentence[:cut]))
        separator = " " if clauses or space > 0 else ""
        sentence = sentence[cut:].lstrip()
    return [*parts, (separator, sentence)] if sentence else parts


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


def _spelled(character: str, tokenizer: Tokenizer) -> str:
    if not tokenizer.alphabet or character in tokenizer.alphabet:
        return character
    plain = unicodedata.normalize("NFKC", character).translate(_PLAIN)
    return plain if tokenizer.alphabet.issuperset(plain) else character


def is_in_capitals(text: str) -> bool:
    """Whether a text has a word in capitals, and no lower-case letter."""
    return not any(map(str.islower, text)) and any(len(word) > 1 and word.isupper() for word in _WORD.findall(text))


def without_first_capital(text: str, tokenizer: Tokenizer) -> str | None:
    """A sentence with its first word in lower case; None unless that word is rare, and better known in lower case."""
    first = _WORD.match(text)
    if first is None or not first[0].istitle():
        return None
    pieces = len(tokenizer.encode(first[0]))
    if pieces < MIN_PIECES or len(tokenizer.encode(first[0].lower())) >= pieces:
        return None
    return first[0].lower() + text[first.end() :]


def recased(text: str, tokenizer: Tokenizer) -> Iterator[str]:
    """A sentence in capitals in lower case, as it may have been meant.

    Words begin with a capital where the vocabulary then needs fewer pieces, as for a name that it knows, and stay as
    they are where it has to spell them but needs no more pieces, as for an abbreviation. Words of one letter are tried
    both ways: an English "I" is a capital, an "a" is not. So are words that are spelled either way, possibly names.
    """

    def pieces(word: str) -> int:
        return len(tokenizer.encode(word))

    def word(match: re.Match[str], *, names: bool) -> str:
        given, lower, capital = match[0], match[0].lower(), match[0].capitalize()
        if names and len(given) == 1:
            return given
        if min(map(pieces, (given, lower, capital))) == 1:
            return min(lower, capital, given, key=pieces)
        return min(given, *((capital, lower) if names else (lower, capital)), key=pieces)

    forms = (_WORD.sub(partial(word, names=names), text) for names in (False, True))
    yield from dict.fromkeys(form[:1].upper() + form[1:] for form in forms)
