"""Where the tags of a text belong in its translation: around the words that attend to the words they stood around.

Every element gets one range of units of the translation, the one that gains most: a unit counts for an element by the
share of its attention that falls on the element's words, and against it by the rest. The ranges of the elements of one
parent are apart, and within that of the parent, so that what is written is always well-formed.
"""

import bisect
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from regard.data.tokenizer import unit_spans
from regard.systems.translate.links import Block, Span
from regard.systems.translate.markup.pieces import Mark, Marked

SURE = 0.5
"""A tag is placed surely if the words in it give it at least this share of their attention on average, and all words
outside less."""
PUNCTUATION = 0.25
"""The weight of a punctuation mark when a range is chosen; that of a word is 1."""
Shares = Float[np.ndarray, "units"]


@dataclass(frozen=True)
class Placed:
    """The translation of a segment with its tags."""

    text: str
    unsure: tuple[str, ...]
    """The tags whose place is a guess, with the words in them."""


@dataclass(frozen=True)
class _Table:
    """The attention of a sentence: the first units of both sides, and the cumulated shares of the units."""

    source: int
    target: int
    cumulated: Float[np.ndarray, "target source"]
    """Column k: the share of the attention on the first k units."""

    def on(self, first: int, last: int) -> Shares:
        """The share of the attention of each unit that falls on these units of the text."""
        size = self.cumulated.shape[1] - 1
        low, high = (min(max(each - self.source, 0), size) for each in (first, last))
        return np.asarray(self.cumulated[:, high] - self.cumulated[:, low])


class Placement:
    """Finds the places of the marks of one segment."""

    def __init__(self, given: Marked, translation: str, blocks: Sequence[Block]) -> None:
        self._given, self._text = given, translation
        self._source, self._target = unit_spans(given.text), unit_spans(translation)
        starts = [[start for start, _ in spans] for spans in (self._source, self._target)]
        self._starts, self._ends = starts[0], [end for _, end in self._source]
        self._tables = [self._table(*block.grouped(*starts)) for block in blocks]
        self._weights = np.array([1.0 if translation[a:b].strip().isalnum() else PUNCTUATION for a, b in self._target])
        self._unsure: list[Mark] = []

    def _table(self, source: int, target: int, weights: Float[np.ndarray, "t s"]) -> _Table:
        """The attention of a sentence as shares, in which a unit that occurs once on both sides attends to itself."""
        shares = weights / np.maximum(weights.sum(1, keepdims=True), 1e-9)
        sides = [
            [text[start:end].casefold() for start, end in spans[first : first + count]]
            for text, spans, first, count in (
                (self._given.text, self._source, source, shares.shape[1]),
                (self._text, self._target, target, shares.shape[0]),
            )
        ]
        for row, word in enumerate(sides[1]):
            if any(map(str.isdigit, word)) and sides[0].count(word) == sides[1].count(word) == 1:
                shares[row] = np.eye(shares.shape[1])[sides[0].index(word)]
        return _Table(source, target, np.concatenate([np.zeros((len(shares), 1)), shares.cumsum(1)], axis=1))

    def place(self, escape: Callable[[str], str]) -> Placed:
        """Write the translation with the tags in it."""
        children: dict[Mark | None, list[Mark]] = defaultdict(list)
        for mark in self._given.marks:
            children[mark.parent].append(mark)
        ranges: dict[Mark | None, Span] = {None: (0, len(self._target))}
        waiting: list[Mark | None] = [None]
        writer = _Writer(self._given, self._text, self._source, self._target, ranges)
        while waiting:
            parent = waiting.pop()
            elements = [mark for mark in children[parent] if not mark.is_empty]
            found = self._ranges(elements, ranges[parent])
            for mark in children[parent]:
                if mark in found:
                    ranges[mark] = found[mark]
                    writer.surround(mark)
                    waiting.append(mark)
                else:
                    unit, is_before = self._anchor(mark, ranges[parent])
                    writer.insert(mark, unit, is_before=is_before)
        unsure = tuple(self._named(mark) for mark in self._given.marks if mark in set(self._unsure))
        return Placed(writer.written(escape), unsure)

    def _named(self, mark: Mark) -> str:
        """A mark as a report names it."""
        tag = self._given.pieces[mark.first].content
        return tag if mark.is_atom else f"{tag}{self._given.text[mark.start : mark.end]}"

    def _units(self, mark: Mark) -> Span:
        """The units of the text that a mark holds, also in part."""
        return bisect.bisect_right(self._ends, mark.start), bisect.bisect_left(self._starts, mark.end)

    def _ranges(self, elements: list[Mark], within: Span) -> dict[Mark, Span]:
        """A range of units of the translation for each of several elements, the clearest first; none for some."""
        first, last = within
        free = np.zeros(len(self._target), dtype=bool)
        free[first:last] = True
        found: dict[Mark, Span] = {}
        shares = {mark: self._shares(mark, within) for mark in elements}
        gains = {mark: self._best(*each, free)[1] for mark, each in shares.items()}
        for mark in sorted(elements, key=lambda each: -gains[each]):
            start, of_mark = shares[mark]
            (low, high), gain = self._best(start, of_mark, free)
            if gain <= 0:
                possible = np.where(
                    free[start : start + len(of_mark)], of_mark * self._weights[start:][: len(of_mark)], 0
                )
                self._unsure.append(mark)
                if not possible.any():
                    continue
                low = start + int(possible.argmax())
                high = low + 1
            elif not self._is_sure(start, of_mark, low, high):
                self._unsure.append(mark)
            free[low:high] = False
            found[mark] = low, high
        return found

    def _shares(self, mark: Mark, within: Span) -> tuple[int, Shares]:
        """The shares of a mark for the units of the translation, from the first one that a table is about."""
        low, high = self._units(mark)
        tables = [
            each for each in self._tables if each.source < high and low < each.source + each.cumulated.shape[1] - 1
        ]
        if not tables:
            return within[0], np.zeros(0)
        start = max(within[0], min(each.target for each in tables))
        end = min(within[1], max(each.target + len(each.cumulated) for each in tables))
        shares = np.zeros(max(0, end - start))
        for each in tables:
            of_table = each.on(low, high)
            first, last = max(start, each.target), min(end, each.target + len(of_table))
            if last > first:
                shares[first - start : last - start] = of_table[first - each.target : last - each.target]
        return start, shares

    def _best(self, start: int, shares: Shares, free: np.ndarray) -> tuple[Span, float]:
        """The range of free units with the largest gain, and that gain (the maximum subarray)."""
        gains = (2 * shares - 1) * self._weights[start : start + len(shares)]
        best, chosen, total, low = 0.0, (start, start), 0.0, 0
        for index, gain in enumerate(gains.tolist()):
            if not free[start + index]:
                total, low = 0.0, index + 1
                continue
            if total <= 0:
                total, low = 0.0, index
            total += gain
            if total > best:
                best, chosen = total, (start + low, start + index + 1)
        return chosen, best

    def _is_sure(self, start: int, shares: Shares, low: int, high: int) -> bool:
        """Whether the words in a range give a mark most of their attention, and none outside does."""
        weights = self._weights[start : start + len(shares)]
        is_in = np.zeros(len(shares), dtype=bool)
        is_in[low - start : high - start] = True
        inside = (shares * weights)[is_in].sum() / max(weights[is_in].sum(), 1e-9)
        outside = shares[~is_in & (weights == 1)].max(initial=0)
        return bool(inside >= SURE and outside < SURE)

    def _anchor(self, mark: Mark, within: Span) -> tuple[int, bool]:
        """The unit that a mark without words stands before or behind, and whether before."""
        before = bisect.bisect_right(self._ends, mark.start) - 1
        after = bisect.bisect_left(self._starts, mark.start)
        if not mark.space_before and before >= 0:
            unit, is_before = self._image(before, mark), False
        elif after < len(self._starts):
            unit, is_before = self._image(after, mark), True
        else:
            unit, is_before = len(self._target) - 1, False
        first, last = within
        if unit < first:
            return first, True
        return (last - 1, False) if unit >= last else (unit, is_before)

    def _image(self, unit: int, mark: Mark) -> int:
        """The unit of the translation that attends most to a unit of the text."""
        for each in self._tables:
            shares = each.on(unit, unit + 1)
            if each.source <= unit < each.source + each.cumulated.shape[1] - 1 and len(shares):
                if shares.max() < SURE:
                    self._unsure.append(mark)
                return each.target + int(shares.argmax())
        self._unsure.append(mark)
        return len(self._target) - 1


class _Writer:
    """Collects what is written between the characters of a translation."""

    def __init__(
        self, given: Marked, text: str, source: Sequence[Span], units: Sequence[Span], ranges: dict[Mark | None, Span]
    ) -> None:
        self._given, self._text, self._source, self._units, self._ranges = given, text, source, units, ranges
        # (place, what comes first there, then the depth, then the order of the source), markup.
        self._parts: list[tuple[tuple[int, int, float, int], str]] = []
        self._replaced: list[Span] = []

    def surround(self, mark: Mark) -> None:
        """Write the tags of an element around its range, or an atom in place of what stands there."""
        pieces = self._given.pieces
        start, end = self._letters(mark)
        if mark.is_atom:
            self._replaced.append((start, end))
            self._parts.append(((start, 1, mark.depth, mark.first), pieces[mark.first].content))
            return
        self._parts.append(((start, 1, mark.depth, mark.first), pieces[mark.first].content))
        self._parts.append(((end, 0, -mark.depth, -mark.first), pieces[mark.last].content))

    def _letters(self, mark: Mark) -> Span:
        """The characters of the range of a mark; inside a word that was copied, those that it holds there."""
        low, high = self._ranges[mark]
        start, end = self._units[low][0], self._units[high - 1][1]
        unit = next((each for each in self._source if each[0] <= mark.start and mark.end <= each[1]), None)
        if unit is not None and self._given.text[slice(*unit)] == self._text[start:end]:
            return start + mark.start - unit[0], end - unit[1] + mark.end
        return start, end

    def insert(self, mark: Mark, unit: int, *, is_before: bool) -> None:
        """Write a mark without words before or behind a unit; the marks inside it go with it."""
        pieces = self._given.pieces[mark.first : mark.last + 1]
        markup = "".join(piece.content for piece in pieces if piece.kind != "text")
        if not self._units:
            self._parts.append(((0, 1, 0, mark.first), markup))
        elif is_before:
            place = self._units[unit][0]
            # Inside its parent, whose tag may begin here too, and before the elements that begin here.
            self._parts.append(((place, 1, mark.depth - 0.5, mark.first), markup + " " * mark.space_after))
        else:
            place = self._units[unit][1]
            self._parts.append(((place, 0, 0.5 - mark.depth, mark.first), " " * mark.space_before + markup))

    def written(self, escape: Callable[[str], str]) -> str:
        """The translation with everything in it."""
        found, place = [], 0
        skipped = sorted(self._replaced)
        for (at, *_), markup in [*sorted(self._parts), ((len(self._text), 2, 0.0, 0), "")]:
            found.append(escape(self._text[place:at]))
            found.append(markup)
            place = max(place, at)
            while skipped and skipped[0][0] <= at:
                place = max(place, skipped.pop(0)[1])
        return "".join(found)
