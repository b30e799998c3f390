"""Names that a translator has never seen and would spell in a way of its own, and numbers that it gets wrong.

Such a name or number is replaced by one that the model is known to copy, and put back in its place in the translation.
"""

import math
import re
from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np

from regard.data.tokenizer import Tokenizer
from regard.systems.translate.joined_traces import word_of_labels, word_weights
from regard.systems.translate.segments import Form, Segment, Span
from regard.trace import Trace

MIN_PROBABILITY, MIN_PROBABILITY_OF_WORD = 0.3, 0.1
"""A model that gives a piece less than this is taken to have guessed the translation of a name. The second is for what
may be a common word, which must not be copied: the first of a sentence, or one that is better known in lower case."""
PLACEHOLDERS = 3
"""How many names that a model copies are tried in place of an unknown one."""
MIN_SCORE = -1.1
"""The mean log-probability from which on a model is known to copy a name."""
PROBED = 64
"""How many words of the vocabulary are tried as names that a model copies."""
NUMBERS = ("27", "38", "46")
"""Numbers that stand for others: any model that has seen numbers copies short ones."""
MIN_DIGITS = 3
"""Shorter numbers may be written as words, unless the sign of a currency stands before them."""
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"(?<![\w.,])[$€£¥]?([0-9]+(?:[.,/-][0-9]+)*)(?!\w)")
_CURRENCY = re.compile(r"[$€£¥]|\b(?:dollar|euro|livre|pfund|pound|yen)", re.IGNORECASE)
_WRITTEN_NUMBER = re.compile(r"[0-9]+(?:[.,\u00a0\u202f ][0-9]{3}(?![0-9]))*(?:[.,][0-9]+)?")


def find_names(segment: Segment, tokenizer: Tokenizer) -> list[Span]:
    """Words with a capital that the vocabulary has to spell from pieces, neighbours as one.

    The first word of a sentence has a capital anyway, and is a name only if the lower case has as many pieces.
    """
    if tokenizer.kind != "bpe" or tokenizer.lowercase:
        return []
    found: list[Span] = []
    text = segment.given
    for match in _WORD.finditer(text):
        word, begins = match[0], not _follows_words(text, match.start())
        if len(word) < 3 or not word[0].isupper() or any(map(str.isdigit, word)):
            continue
        if _overlaps(match.span(), segment.copied):
            continue
        pieces = len(tokenizer.encode(word))
        if pieces < (3 if begins else 2) or (begins and len(tokenizer.encode(word.lower())) < pieces):
            continue
        start = found.pop()[0] if found and text[found[-1][1] : match.start()] == " " else match.start()
        found.append((start, match.end()))
    return found


def is_guessed(name: Span, segment: Segment, written: str, trace: Trace, tokenizer: Tokenizer) -> bool:
    """Whether a name is missing from a translation, and what stands in its place was unlikely to the model itself."""
    given = segment.given[slice(*name)]
    if given in written:
        return False
    first, last = segment.words_before(name[0]), segment.words_before(name[1])
    shares = word_weights(trace, segment.form().read, written)[:, first:last].sum(1)
    shares = np.where([any(map(str.isalnum, word)) for word in written.split()], shares, 0.0)
    log_probs = trace.values("log_prob")
    if not shares.any() or log_probs is None:
        return True
    best = int(shares.argmax())
    owners = word_of_labels(trace.target, written)
    least = min(log_prob for log_prob, owner in zip(log_probs, owners, strict=True) if owner == best)
    may_be_word = not _follows_words(segment.given, name[0])
    may_be_word = may_be_word or len(tokenizer.encode(given.lower())) < len(tokenizer.encode(given))
    return math.exp(least) < (MIN_PROBABILITY_OF_WORD if may_be_word else MIN_PROBABILITY)


def _follows_words(text: str, place: int) -> bool:
    return any(map(str.isalnum, text[:place]))


def possible_placeholders(source: Tokenizer, target: Tokenizer) -> list[str]:
    """Words that may be names which a model knows: single pieces of both vocabularies, only ever with a capital."""
    if source.kind != "bpe" or source.lowercase:
        return []
    words = source.pieces(range(len(source)))
    known = set(words)
    found = (
        word
        for word in words
        if len(word) > 2
        and word.isalpha()
        and word[0].isupper()
        and word[1:].islower()
        and word.lower() not in known
        and len(source.encode(word)) == len(target.encode(word)) == 1
    )
    return list(islice(dict.fromkeys(found), PROBED))


def lost_numbers(segment: Segment, written: str) -> list[Span]:
    """Numbers of a sentence whose digits are missing from its translation, however that separates them.

    The sign of a currency before a number belongs to it: the translation must have one, or name a currency.
    """
    written_numbers = {_digits(match[0]) for match in _WRITTEN_NUMBER.finditer(written)}
    lost = []
    for match in _NUMBER.finditer(segment.given):
        spans = [match.span(), match.span(1)]  # without the sign where that is copied anyway
        free = [span for span in spans if not _overlaps(span, segment.copied)]
        digits = _digits(match[1])
        kept = digits in written_numbers or re.search(rf"(?<![0-9]){re.escape(match[1])}(?![0-9])", written)
        is_price = match.start() < match.start(1)
        lost_sign = is_price and not _CURRENCY.search(written)
        if free and (is_price or len(digits) >= MIN_DIGITS) and (lost_sign or not kept):
            lost.append(free[0])
    return lost


def _overlaps(span: Span, others: Iterable[Span]) -> bool:
    return any(start < span[1] and end > span[0] for start, end in others)


def _digits(number: str) -> str:
    return re.sub("[^0-9]", "", number)


def with_placeholders(
    segment: Segment, names: Sequence[Span], placeholders: Sequence[str], numbers: Sequence[Span] = ()
) -> list[Form]:
    """The sentence with placeholders for its names and numbers, in each order."""
    free, free_numbers = (
        [word for word in words if not re.search(rf"\b{word}\b", segment.given)] for words in (placeholders, NUMBERS)
    )
    if len(names) > len(free) or len(numbers) > len(free_numbers):
        return []
    return [
        segment.form(_in_turn(names, free, first) | _in_turn(numbers, free_numbers, first))
        for first in range(max(len(free) if names else 0, len(free_numbers) if numbers else 0))
    ]


def _in_turn(spans: Sequence[Span], words: Sequence[str], first: int) -> dict[Span, str]:
    """Each span with a word of its own, from the first on."""
    return {span: words[(first + place) % len(words)] for place, span in enumerate(spans)}


def is_kept(words: Iterable[str], text: str) -> bool:
    """Whether each of some words occurs exactly once in a text."""
    return all(len(re.findall(rf"\b{word}\b", text)) == 1 for word in words)
