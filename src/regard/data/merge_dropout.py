"""BPE dropout: byte-pair encoding that leaves out merges at random (Provilkov et al. 2020, section 3), from a seed.

The tokenizers library has it too, but draws from a generator of its own that cannot be seeded.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from random import Random

MAX_STATES = 200_000
"""States of words that are remembered; beyond, all are forgotten."""


class _State:
    """The pieces of a word at some point of its merges, as ids, and the states that may follow."""

    __slots__ = ("following", "ids")

    def __init__(self, ids: tuple[int, ...]) -> None:
        self.ids = ids
        self.following: tuple[_State, ...] | None = None
        """The states after each merge that is possible, that of the first rank first; None where it is not known."""


class MergeDropout:
    """Splits words into pieces by byte-pair encoding in which each possible merge is left out with a probability.

    In each step, the merges that are possible are tried in the order of their ranks; the first that is not left out is
    made. The word is done when none is left. What can follow a state of a word is remembered, since most words occur
    again and again.
    """

    def __init__(self, vocabulary: Mapping[str, int], merges: Sequence[Sequence[str]], unknown: int) -> None:
        self._vocabulary, self._unknown = vocabulary, unknown
        self._merges = {
            (vocabulary[left], vocabulary[right]): (rank, vocabulary[left + right])
            for rank, (left, right) in enumerate(merges)
        }
        self._words: dict[str, _State] = {}
        self._states: dict[tuple[int, ...], _State] = {}

    def __call__(self, word: str, dropout: float, random: Random) -> tuple[int, ...]:
        """The ids of the pieces of a word; characters that are no piece are unknown."""
        state, draw = self._words.get(word), random.random
        if state is None:
            if len(self._states) >= MAX_STATES:
                self._words, self._states = {}, {}
            characters = (self._vocabulary.get(character, self._unknown) for character in word)
            state = self._words[word] = self._state(tuple(characters))
        while True:
            following = self._after(state) if state.following is None else state.following
            for after in following:
                if draw() >= dropout:
                    state = after
                    break
            else:
                return state.ids

    def _after(self, state: _State) -> tuple[_State, ...]:
        ids = state.ids
        pairs = enumerate(pairwise(ids))
        possible = sorted((*self._merges[pair], place) for place, pair in pairs if pair in self._merges)
        state.following = tuple(self._state((*ids[:place], merged, *ids[place + 2 :])) for _, merged, place in possible)
        return state.following

    def _state(self, ids: tuple[int, ...]) -> _State:
        return self._states.setdefault(ids, _State(ids))
