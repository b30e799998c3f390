"""Which parts of a text became which parts of its translation: the attention of whole texts, by character.

A text is translated sentence by sentence, in a form that the model knows. `aligned` brings the traces of its sentences
back to the text as it was given and to the translation as it is written; addresses, which are copied, are linked with
themselves. Words and smaller units are then groups of tokens.
"""

import bisect
import difflib
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from regard.metrics.alignment import Link, links_from_weights, merge_subwords
from regard.systems.translate.sentences import PLAIN, Sentence
from regard.trace import Trace
from regard.trace.subwords import positions_of

Weights = Float[np.ndarray, "target source"]
Span = tuple[int, int]


@dataclass(frozen=True)
class Block:
    """The attention of a sentence, or a copied part of a text: where each of its tokens begins, -1 for special ones."""

    source: tuple[int, ...]
    target: tuple[int, ...]
    weights: Weights

    def grouped(self, source: Sequence[int], target: Sequence[int]) -> tuple[int, int, Weights]:
        """The weights between units that begin at these places, sums over source tokens and means over target ones.

        Before them, the numbers of the first units of both sides.
        """
        columns, rows = _owners(self.source, source), _owners(self.target, target)
        first_column, first_row = (min((each for each in owners if each >= 0), default=0) for owners in (columns, rows))
        counted = [
            [each if each < 0 else each - first for each in owners]
            for owners, first in ((columns, first_column), (rows, first_row))
        ]
        return first_column, first_row, merge_subwords(self.weights, *counted)


def _owners(places: Sequence[int], starts: Sequence[int]) -> list[int]:
    """The unit that each token belongs to."""
    return [bisect.bisect_right(starts, place) - 1 if place >= 0 else -1 for place in places]


def word_spans(text: str) -> list[Span]:
    """The words of a text, which whitespace separates."""
    return _shifted(text, text.split())


def _shifted(text: str, parts: Sequence[str]) -> list[Span]:
    spans, place = [], 0
    for part in parts:
        start = text.index(part, place)
        place = start + len(part)
        spans.append((start, place))
    return spans


def word_links(source: str, target: str, blocks: Sequence[Block]) -> tuple[Link, ...]:
    """Each word of a translation with the word of the text that it attends to most, both counted from 0.

    Punctuation that touches a word of the translation does not count: it attends to punctuation.
    """
    spans = [word_spans(text) for text in (source, target)]
    starts = [[start for start, _ in of_text] for of_text in spans]
    touching = _touching(target, spans[1])
    found: set[Link] = set()
    for block in blocks:
        bare = replace(block, target=tuple(-1 if index in touching else index for index in block.target))
        first_source, first_target, weights = bare.grouped(*starts)
        found |= {(first_source + i, first_target + j) for i, j in links_from_weights(weights)}
    return tuple(sorted(found))


def _touching(text: str, words: Sequence[Span]) -> set[int]:
    """Where the signs stand that are part of a word with letters or digits."""
    written = [span for span in words if any(map(str.isalnum, text[slice(*span)]))]
    return {index for start, end in written for index in range(start, end) if not text[index].isalnum()}


def aligned(text: str, sentences: Sequence[Sentence], written: Sequence[str], traces: Sequence[Trace]) -> list[Block]:
    """The blocks of a text, from its sentences, their translations as they are written, and their traces."""
    # The text as the model reads it, and the translation, are put together from the same parts side by side.
    read = output = ""
    blocks: list[Block] = []
    for sentence, translation, trace in zip(sentences, written, traces, strict=True):
        blocks += _copied(sentence.before, len(read), len(output))
        read, output = read + sentence.before, output + sentence.before
        source, target = trace.axis(trace.main.columns), trace.axis(trace.main.rows)
        columns = positions_of(source.labels, sentence.given)
        rows = _recased(positions_of(target.labels, target.text or ""), target.text or "", translation)
        blocks.append(Block(_moved(columns, len(read)), _moved(rows, len(output)), trace.weights))
        read, output = read + sentence.given, output + translation
        blocks += _copied(sentence.after, len(read), len(output))
        read, output = read + sentence.after, output + sentence.after
    origin = _origin(read, text)
    return [
        Block(tuple(origin[place] if place >= 0 else -1 for place in each.source), each.target, each.weights)
        for each in blocks
    ]


def copied(text: str) -> list[Block]:
    """The blocks of a text that is its own translation, but for its whitespace."""
    words = word_spans(text)
    targets = word_spans(" ".join(text.split()))
    return [
        Block((source,), (target,), np.ones((1, 1))) for (source, _), (target, _) in zip(words, targets, strict=True)
    ]


def _copied(part: str, source: int, target: int) -> list[Block]:
    return [Block((source + start,), (target + start,), np.ones((1, 1))) for start, _ in word_spans(part)]


def _moved(places: Sequence[int], by: int) -> tuple[int, ...]:
    return tuple(place + by if place >= 0 else -1 for place in places)


def _recased(places: Sequence[int], text: str, written: str) -> list[int]:
    """The places of tokens of a text in the text as it is written, which may be in capitals or have names for signs."""
    if len(text) == len(written):
        return list(places)
    # Capitals may be longer ("ß"), and so may the words that stand for unknown ones: words keep their number.
    before, after = word_spans(text), word_spans(written)
    owners = _owners(places, [start for start, _ in before])
    found = []
    for place, owner in zip(places, owners, strict=True):
        if place < 0 or owner >= len(after):
            found.append(-1)
            continue
        start, end = after[owner]
        found.append(min(start + place - before[owner][0], end - 1))
    return found


def _origin(read: str, text: str) -> list[int]:
    """For each character of what the model reads, its place in the text as it was given."""
    (letters, places), (given, origins) = _canonical(read), _canonical(text)
    if letters == given:
        origin_of = dict(zip(places, origins, strict=True))
    else:
        matching = difflib.SequenceMatcher(None, letters, given, autojunk=False).get_matching_blocks()
        origin_of = {places[a + i]: origins[b + i] for a, b, size in matching for i in range(size)}
    found, last = [], 0
    for place in range(len(read)):
        last = origin_of.get(place, last)
        found.append(last)
    return found


def _canonical(text: str) -> tuple[str, list[int]]:
    """The letters of a text in one case and in plain signs, without whitespace, and the place of each."""
    letters: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        plain = unicodedata.normalize("NFKC", character).translate(PLAIN).casefold()
        kept = [each for each in plain if not each.isspace()]
        letters += kept
        places += [place] * len(kept)
    return "".join(letters), places
