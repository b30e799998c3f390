"""BPE dropout: byte-pair encoding that leaves out merges at random (Provilkov et al. 2020, section 3), from a seed.

The tokenizers library has it too, but draws from a generator of its own that cannot be seeded.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise
from random import Random

import numpy as np
from jaxtyping import Float, Int, UInt

PART = 8192
"""Number of words that are drawn at once."""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


class MergeDropout:
    """Splits words into pieces by byte-pair encoding in which each possible merge is left out with a probability.

    In each step, the merges that are possible are tried in the order of their ranks; the first that is not left out is
    made. The word is done when none is left.
    """

    def __init__(self, vocabulary: Mapping[str, int], merges: Sequence[Sequence[str]], unknown: int) -> None:
        self._vocabulary, self._unknown = vocabulary, unknown
        self._merges = {
            (vocabulary[left], vocabulary[right]): (rank, vocabulary[left + right])
            for rank, (left, right) in enumerate(merges)
        }

    def __call__(self, word: str, dropout: float, random: Random) -> tuple[int, ...]:
        """The ids of the pieces of one word; characters that are no piece are unknown."""
        ids = self.spelled(word)
        while kept := [after for after in self.following(ids) if random.random() >= dropout][:1]:
            ids = kept[0]
        return ids

    def spelled(self, word: str) -> tuple[int, ...]:
        """A word as the ids of its characters, or of their bytes where the vocabulary has these instead."""
        return tuple(number for character in word for number in self._spelled(character))

    def _spelled(self, character: str) -> tuple[int, ...]:
        if (number := self._vocabulary.get(character)) is not None:
            return (number,)
        if "<0x00>" in self._vocabulary:
            return tuple(self._vocabulary[f"<0x{byte:02X}>"] for byte in character.encode())
        return (self._unknown,)

    def count(self, ids: tuple[int, ...]) -> int:
        """How many merges are possible."""
        return sum(pair in self._merges for pair in pairwise(ids))

    def following(self, ids: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """The pieces after each merge that is possible, that of the first rank first."""
        merges = self._merges
        possible = sorted((*merges[pair], index) for index, pair in enumerate(pairwise(ids)) if pair in merges)
        return ((*ids[:index], merged, *ids[index + 2 :]) for _, merged, index in possible)


class ManyWords:
    """Draws the pieces of many words at once: all words take one step of MergeDropout, then the next.

    A state is a word at some point of its merges: a number that stands for the ids of its pieces and for the states
    that may follow. States are remembered, since most words occur again and again.
    """

    def __init__(self, merges: MergeDropout) -> None:
        self._merges = merges
        self.forget()

    def forget(self) -> None:
        """Forget all states; their numbers have no meaning any more."""
        self._ids: list[tuple[int, ...]] = []
        self._numbers: dict[tuple[int, ...], int] = {}
        # Of each state: its pieces, and the states after each merge that is possible (-1: not known yet).
        self._pieces, self._first_piece, self._num_pieces = Column(), Column(), Column()
        self._following, self._first_following, self._num_following = Column(), Column(), Column()

    def __len__(self) -> int:
        return len(self._ids)

    def spelled(self, word: str) -> int:
        """The state of a word that is still spelled in characters."""
        return self._state(self._merges.spelled(word))

    def fixed(self, ids: Sequence[int]) -> int:
        """A state whose pieces are never merged."""
        return self._add(tuple(ids), num_following=0)

    def draw(self, states: Int[np.ndarray, "n"], keys: UInt[np.ndarray, "n"], dropout: float) -> Int[np.ndarray, "n"]:
        """The final state of each word, from its first state. A key for each word decides which merges are left out."""
        ends = states.copy()
        # Large temporary arrays would be returned to the operating system after each operation.
        for start in range(0, len(ends), PART):
            self._draw(ends[start : start + PART], keys[start : start + PART], dropout)
        return ends

    def pieces(self, states: Int[np.ndarray, "n"]) -> tuple[Int[np.ndarray, "m"], Int[np.ndarray, "n"]]:
        """The ids of the pieces of these states, concatenated, and their number for each state."""
        counts = self._num_pieces.array[states]
        return self._pieces.array[ranges(self._first_piece.array[states], counts)], counts

    def _draw(self, ends: Int[np.ndarray, "n"], keys: UInt[np.ndarray, "n"], dropout: float) -> None:
        active = np.arange(len(ends))
        while len(active):
            now = ends[active]
            keys = mixed(keys + _GOLDEN)
            skipped = _failures(keys, dropout)
            goes = np.flatnonzero(skipped < self._num_following.array[now])
            active, keys, now, skipped = active[goes], keys[goes], now[goes], skipped[goes]
            indices = self._first_following.array[now] + skipped
            after = self._following.array[indices]
            if len(new := np.flatnonzero(after < 0)):
                after[new] = [self._after(*each) for each in zip(now[new].tolist(), skipped[new].tolist(), strict=True)]
                self._following.array[indices] = after
            ends[active] = after

    def _after(self, state: int, skipped: int) -> int:
        return self._state(next(islice(self._merges.following(self._ids[state]), skipped, None)))

    def _state(self, ids: tuple[int, ...]) -> int:
        if (state := self._numbers.get(ids)) is None:
            state = self._numbers[ids] = self._add(ids, self._merges.count(ids))
        return state

    def _add(self, ids: tuple[int, ...], num_following: int) -> int:
        columns = (
            (self._pieces, self._first_piece, self._num_pieces),
            (self._following, self._first_following, self._num_following),
        )
        for row, (values, first, count) in zip((ids, (-1,) * num_following), columns, strict=True):
            first.new.append(len(values))
            count.new.append(len(row))
            values.new += row
        self._ids.append(ids)
        return len(self._ids) - 1


class Column:
    """A growing array of integers: new numbers are appended to a list, which is moved to the array when it is read."""

    def __init__(self) -> None:
        self._array, self._size = np.zeros(1024, np.int64), 0
        self.new: list[int] = []

    def __len__(self) -> int:
        return self._size + len(self.new)

    @property
    def array(self) -> Int[np.ndarray, "_"]:
        """The numbers, followed by unused space."""
        if self.new:
            size = len(self)
            if size > len(self._array):
                self._array = np.concatenate([self._array[: self._size], np.zeros(2 * size - self._size, np.int64)])
            self._array[self._size : size] = self.new
            self._size, self.new = size, []
        return self._array


def mixed(keys: UInt[np.ndarray, "*n"]) -> UInt[np.ndarray, "*n"]:
    """Hash keys of 64 bits to pseudo-random numbers: the last steps of SplitMix64 (Steele et al. 2014)."""
    keys = (keys ^ (keys >> np.uint64(30))) * _FACTORS[0]
    keys = (keys ^ (keys >> np.uint64(27))) * _FACTORS[1]
    return np.asarray(keys ^ (keys >> np.uint64(31)))


def combined(key: UInt[np.ndarray, "#n"], number: Int[np.ndarray, "n"]) -> UInt[np.ndarray, "n"]:
    """A key that depends on another key and on a number."""
    return mixed(key + _GOLDEN * (number.astype(np.uint64) + np.uint64(1)))


def ranges(starts: Int[np.ndarray, "n"], counts: Int[np.ndarray, "n"]) -> Int[np.ndarray, "m"]:
    """For each start a range of `count` numbers, start, start + 1, ...; all of them concatenated."""
    before = np.cumsum(counts) - counts
    return np.asarray(np.repeat(starts - before, counts) + np.arange(int(counts.sum())))


def _failures(random: UInt[np.ndarray, "n"], failure: float) -> Int[np.ndarray, "n"]:
    """Draw how many trials fail before the first success, if each fails with this probability."""
    uniform: Float[np.ndarray, "n"] = (random >> np.uint64(11)) * 2.0**-53
    failures = np.zeros(len(random), np.int64)
    rest = np.flatnonzero(uniform < failure)
    if failure >= 1:
        failures[rest] = np.iinfo(np.int64).max
    elif len(rest):
        # P(failures >= k) = failure ** k; a zero has failed very often.
        failures[rest] = np.log(np.maximum(uniform[rest], 2.0**-54)) / math.log(failure)
    return failures
