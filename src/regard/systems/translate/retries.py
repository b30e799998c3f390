"""Sentences whose translation fails a check are translated again in another form, and the best translation is kept.

A name that a translator has never seen, and would spell in a way of its own, and a number that it gets wrong are
replaced by one that the model is known to copy, and put back in its place in the translation. A sentence in capitals
and a rare first word are tried in lower case.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from regard.data.tokenizer import Tokenizer
from regard.systems.translate.config import RAW, TranslationOptions
from regard.systems.translate.joined_traces import word_of_labels, word_weights
from regard.systems.translate.sentences import Piece, Sentence, Span, is_in_capitals, recased, without_first_capital
from regard.trace import Trace

if TYPE_CHECKING:
    from regard.systems.translate.model import Translation, Translator

Decode = Callable[[Sequence[str], TranslationOptions], "list[Translation]"]
"""Translates sentences as they are, in order."""

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
"""Numbers put in place of those that a model gets wrong: any model that has seen numbers copies short ones."""
MIN_DIGITS = 3
"""Shorter numbers may be written as words, unless the sign of a currency stands before them."""
_PLACEHOLDERS_OF: "WeakKeyDictionary[Translator, tuple[Any, list[str]]]" = WeakKeyDictionary()
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"(?<![\w.,])[$€£¥]?([0-9]+(?:[.,/-][0-9]+)*)(?!\w)")
_CURRENCY = re.compile(r"[$€£¥]|\b(?:dollar|euro|livre|pfund|pound|yen)", re.IGNORECASE)
_WRITTEN_NUMBER = re.compile(r"[0-9]+(?:[.,\u00a0\u202f ][0-9]{3}(?![0-9]))*(?:[.,][0-9]+)?")


@dataclass
class Draft:
    """A sentence, what the model reads of it, and its translation so far."""

    sentence: Sentence
    names: Sequence[Span]
    """Words that may be names (see `find_names`)."""
    piece: Piece
    result: "Translation | None" = None
    """None where there is nothing that the model can read."""


def retry(model: "Translator", decode: Decode, drafts: Sequence[Draft], options: TranslationOptions) -> None:
    """Put better translations in the place of those that fail a check; nothing is decoded where none does."""
    tries = [(draft, piece) for draft in drafts for piece in _other_pieces(model, draft, options)]
    results = decode_together(
        decode, [(piece, with_attention(options) if piece.copied else options) for _, piece in tries]
    )
    improved: set[int] = set()
    for (draft, piece), result in zip(tries, results, strict=True):
        competes = id(draft) in improved or _may_be_better(model.source_tokenizer, draft.piece, piece)
        is_better = draft.result is None or not competes or result.score > draft.result.score
        if is_kept(piece.stand_for, result.text) and is_better:
            draft.piece, draft.result = piece, result
            improved.add(id(draft))


def decode_together(decode: Decode, wanted: Sequence[tuple[Piece, TranslationOptions]]) -> list["Translation"]:
    """The translations of pieces, in order; those with the same options are decoded at once."""
    groups: dict[TranslationOptions, list[int]] = {}
    for place, (_, options) in enumerate(wanted):
        groups.setdefault(options, []).append(place)
    results: dict[int, Translation] = {}
    for options, places in groups.items():
        results |= zip(places, decode([wanted[place][0].read for place in places], options), strict=True)
    return [results[place] for place in range(len(wanted))]


def with_attention(options: TranslationOptions) -> TranslationOptions:
    """The options with attention, where it is needed to check a translation, or to find the place of a copied part."""
    return replace(options, traces="main") if options.traces == "none" else options


def _other_pieces(model: "Translator", draft: Draft, options: TranslationOptions) -> list[Piece]:
    """Other ways to read a sentence whose translation fails a check: in lower case, with known names and numbers."""
    sentence, piece, result, tokenizer = draft.sentence, draft.piece, draft.result, model.source_tokenizer
    if result is None:
        return []
    if options.recase and not tokenizer.lowercase and is_in_capitals(piece.read):
        return [replace(piece, read=read, capitals=True) for read in recased(piece.read, tokenizer)]
    unknown = [span for span in sentence.copied if any(map(str.isalpha, sentence.given[slice(*span)]))]
    if unknown:  # so that the first translation, which lacks words, says nothing about the others
        unknown += draft.names
    elif result.trace is not None:
        unknown = [name for name in draft.names if is_guessed(name, sentence, result.text, result.trace, tokenizer)]
    numbers = lost_numbers(sentence, result.text) if options.copy_unknown and tokenizer.kind == "bpe" else []
    if unknown or numbers:
        return with_placeholders(sentence, unknown, placeholders(model) if unknown else (), numbers)
    small = without_first_capital(piece.read, tokenizer) if options.recase else None
    return [] if small is None else [replace(piece, read=small, capital=True)]


def _may_be_better(tokenizer: Tokenizer, first: Piece, other: Piece) -> bool:
    """Whether a sentence as it was given may have a better translation than in another form.

    Capitals that take more pieces than lower case were hardly seen in training, and a model is most certain of them
    where it copies them unread. Their score says nothing then.
    """
    if other.capitals:
        return len(tokenizer.encode(first.read)) <= len(tokenizer.encode(other.read))
    return other.capital


def find_names(sentence: Sentence, tokenizer: Tokenizer) -> list[Span]:
    """Words with a capital that the vocabulary has to spell from pieces, neighbours as one.

    The first word of a sentence has a capital anyway, and is a name only if the lower case has as many pieces.
    """
    if tokenizer.kind != "bpe" or tokenizer.lowercase:
        return []
    found: list[Span] = []
    text = sentence.given
    for match in _WORD.finditer(text):
        word, begins = match[0], not _follows_words(text, match.start())
        if len(word) < 3 or not word[0].isupper() or any(map(str.isdigit, word)):
            continue
        if _overlaps(match.span(), sentence.copied):
            continue
        pieces = len(tokenizer.encode(word))
        if pieces < (3 if begins else 2) or (begins and len(tokenizer.encode(word.lower())) < pieces):
            continue
        start = found.pop()[0] if found and text[found[-1][1] : match.start()] == " " else match.start()
        found.append((start, match.end()))
    return found


def is_guessed(name: Span, sentence: Sentence, written: str, trace: Trace, tokenizer: Tokenizer) -> bool:
    """Whether a name is missing from a translation, and what stands in its place was unlikely to the model itself."""
    given = sentence.given[slice(*name)]
    if given in written:
        return False
    first, last = sentence.words_before(name[0]), sentence.words_before(name[1])
    shares = word_weights(trace, sentence.piece().read, written)[:, first:last].sum(1)
    shares = np.where([any(map(str.isalnum, word)) for word in written.split()], shares, 0.0)
    log_probs = trace.values("log_prob")
    if not shares.any() or log_probs is None:
        return True
    best = int(shares.argmax())
    owners = word_of_labels(trace.target, written)
    least = min(log_prob for log_prob, owner in zip(log_probs, owners, strict=True) if owner == best)
    may_be_word = not _follows_words(sentence.given, name[0])
    may_be_word = may_be_word or len(tokenizer.encode(given.lower())) < len(tokenizer.encode(given))
    return math.exp(least) < (MIN_PROBABILITY_OF_WORD if may_be_word else MIN_PROBABILITY)


def _follows_words(text: str, place: int) -> bool:
    return any(map(str.isalnum, text[:place]))


def placeholders(model: "Translator") -> list[str]:
    """Names that a model copies, most frequent first: they stand for names that it does not know.

    They are found by translating each candidate, and cached until the parameters of the model change.
    """
    state = tuple((part.data_ptr(), 0 if part.is_inference() else part._version) for part in model.parameters())
    known = _PLACEHOLDERS_OF.get(model)
    if known is None or known[0] != state:
        words = possible_placeholders(model.source_tokenizer, model.target_tokenizer)
        found = model.translate([f"{word}." for word in words], beam=1, max_length=8, traces="none", **RAW)
        copied = [
            word
            for word, one in zip(words, found, strict=True)
            if one.text in (word, f"{word}.") and one.score > MIN_SCORE
        ]
        known = _PLACEHOLDERS_OF[model] = (state, copied[:PLACEHOLDERS])
    return known[1]


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


def lost_numbers(sentence: Sentence, written: str) -> list[Span]:
    """Numbers of a sentence whose digits are missing from its translation, however that separates them.

    The sign of a currency before a number belongs to it: the translation must have one, or name a currency.
    """
    written_numbers = {_digits(match[0]) for match in _WRITTEN_NUMBER.finditer(written)}
    lost = []
    for match in _NUMBER.finditer(sentence.given):
        spans = [match.span(), match.span(1)]  # without the sign where that is copied anyway
        free = [span for span in spans if not _overlaps(span, sentence.copied)]
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
    sentence: Sentence, names: Sequence[Span], placeholders: Sequence[str], numbers: Sequence[Span] = ()
) -> list[Piece]:
    """The sentence with placeholders for its names and numbers, in each order."""
    free, free_numbers = (
        [word for word in words if not re.search(rf"\b{word}\b", sentence.given)] for words in (placeholders, NUMBERS)
    )
    if len(names) > len(free) or len(numbers) > len(free_numbers):
        return []
    return [
        sentence.piece(_in_turn(names, free, first) | _in_turn(numbers, free_numbers, first))
        for first in range(max(len(free) if names else 0, len(free_numbers) if numbers else 0))
    ]


def _in_turn(spans: Sequence[Span], words: Sequence[str], first: int) -> dict[Span, str]:
    """Each span with a word of its own, from the first on."""
    return {span: words[(first + place) % len(words)] for place, span in enumerate(spans)}


def is_kept(words: Iterable[str], text: str) -> bool:
    """Whether each of some words occurs exactly once in a text."""
    return all(len(re.findall(rf"\b{word}\b", text)) == 1 for word in words)
