"""Capitals that a translator reads badly: whole sentences, or the first letter of a rare word."""

import re
from collections.abc import Iterator
from functools import partial

from regard.data.tokenizer import Tokenizer

MIN_PIECES = 3
"""A first word of fewer pieces is read as it is."""
_WORD = re.compile(r"[^\W\d_]+")


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
