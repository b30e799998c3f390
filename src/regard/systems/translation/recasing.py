"""Capitals that a translator reads badly: whole sentences, or the first letter of a rare word."""

import re
from collections.abc import Iterator

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

    Words begin with a capital where the vocabulary then needs fewer pieces, as for a name that it knows. Words of one
    letter are tried both ways: an English "I" is a capital, an "a" is not.
    """

    def word(match: re.Match[str]) -> str:
        lower, capital = match[0].lower(), match[0].capitalize()
        return min(lower, capital, key=lambda form: len(tokenizer.encode(form)))

    plain = _WORD.sub(word, text)
    single = _WORD.sub(lambda match: match[0].upper() if len(match[0]) == 1 else match[0], plain)
    yield from dict.fromkeys(form[:1].upper() + form[1:] for form in (plain, single))
