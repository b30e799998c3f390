"""Word alignment by two hidden Markov models that have to agree (Vogel et al. 1996, Liang et al. 2006).

The model of one direction explains the words of the target: word j translates source word a_j, and a_j depends on how
far it is from a_(j-1):

    p(y, a | x) = prod_j  jump(a_j - a_(j-1)) ((1 - NULL) t(y_j | x_(a_j)) + NULL p(y_j))

The posteriors p(a_j = i | x, y) are attention weights whose score is a table of word translations. Both directions are
estimated together by expectation maximisation: what is counted is the product of the posteriors of both, so that each
learns only what the other confirms. The first iterations ignore the positions (model 1 of Brown et al. 1993).

Links that are known before, such as those of another aligner, guide both: t is LINKED times as large for linked words.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.data.progress import progress_bar
from regard.errors import DataError
from regard.metrics.alignment import Link

NULL = 0.1
"""Probability that a word translates none of the other sentence; it is then drawn by its frequency alone."""
LINKED = 4.0
"""How many times as probable the translation of a word is where a link was given."""
MAX_JUMP = 6
"""Distances between neighbouring words that have a probability of their own; longer ones share one at each end."""
LONG_JUMPS = 4
"""About how many distances within a sentence are longer."""
MAX_WORDS = 100
"""Pairs with a longer side are not aligned."""
MAX_CELLS = 1 << 20
"""Cells (pairs x source words x target words) that are computed at a time."""
SMALLEST = 1e-30
WordPair = tuple[Sequence[str], Sequence[str]]


def align_by_agreement(
    pairs: Sequence[WordPair],
    *,
    links: Sequence[Collection[Link]] | None = None,
    word_iterations: int = 5,
    position_iterations: int = 5,
    threshold: float = 0.5,
    device: torch.device | str = "cpu",
    progress: bool = False,
) -> list[set[Link]]:
    """Link the words of (source words, target words) from these pairs alone; words are compared in lower case.

    Two words are linked if the geometric mean of their posteriors in both directions is at least `threshold`. A pair
    with an empty side, or with more than MAX_WORDS words on a side, has no links. `links` are links of each pair that
    are probably right, by another aligner or a person; they may be incomplete, or missing for some pairs.
    """
    found: list[set[Link]] = [set() for _ in pairs]
    if links is not None:
        _check_links(pairs, links)
    corpus = _Corpus.from_pairs(pairs, links, torch.device(device))
    if not corpus.groups:
        return found
    state = _State.start(corpus)
    total = len(corpus.groups) * (word_iterations + position_iterations + 1)
    with progress_bar("Aligning", total, "groups", enabled=progress) as advance:
        for iteration in range(word_iterations + position_iterations):
            uses_positions = iteration >= word_iterations
            counts = _Counts.empty(corpus)
            for group in corpus.groups:
                forward, backward = state.posteriors(corpus, group, counts, uses_positions=uses_positions)
                counts.pairs.index_add_(0, group.cells.flatten().long(), (forward * backward).flatten().double())
                advance(1)
            state = state.updated(corpus, counts, uses_positions=uses_positions)
        for group in corpus.groups:
            forward, backward = state.posteriors(corpus, group, None, uses_positions=True)
            chosen = (forward * backward).sqrt() >= threshold
            for index, source, target in chosen.nonzero().tolist():
                found[group.indices[index]].add((source, target))
            advance(1)
    return found


def markov_posteriors(
    translations: Float[Tensor, "b n m"], null: Float[Tensor, "b m"], jumps: Float[Tensor, "w"]
) -> tuple[Float[Tensor, "b n m"], Float[Tensor, "w"]]:
    """The posterior of each link (state i emits word j), and the expected number of jumps of each distance.

    `translations` are t(y_j | x_i), `null` the frequencies p(y_j), `jumps` the weights of the distances -MAX_JUMP - 1
    to MAX_JUMP + 1. The forward-backward algorithm, for sentences of one length; a sentence begins before its first
    word.
    """
    batch, n, m = translations.shape
    emissions = (1 - NULL) * translations + NULL * null.unsqueeze(1)
    positions = torch.arange(n, device=jumps.device)
    distances = (positions - torch.arange(-1, n, device=jumps.device).unsqueeze(1)).clamp(-MAX_JUMP - 1, MAX_JUMP + 1)
    distances = distances + MAX_JUMP + 1
    moves = jumps[distances]
    first, moves = (moves / moves.sum(1, keepdim=True)).split([1, n])
    ahead: list[Tensor] = []
    scales: list[Tensor] = []
    state = first * emissions[..., 0]
    for j in range(m):
        if j:
            state = (ahead[-1] @ moves) * emissions[..., j]
        scales.append(state.sum(1, keepdim=True).clamp_min(SMALLEST))
        ahead.append(state / scales[-1])
    behind = [emissions.new_ones(batch, n)]
    together = emissions.new_zeros(n, n)
    for j in range(m - 1, 0, -1):
        weighed = emissions[..., j] * behind[-1] / scales[j]
        together += ahead[j - 1].T @ weighed
        behind.append(weighed @ moves.T)
    states = torch.stack(ahead, -1) * torch.stack(behind[::-1], -1)
    expected = torch.cat([states[..., 0].sum(0, keepdim=True), together * moves]).flatten()
    counts = torch.zeros_like(jumps).index_add_(0, distances.flatten(), expected)
    return states * ((1 - NULL) * translations / emissions.clamp_min(SMALLEST)), counts


def word_posteriors(translations: Float[Tensor, "b n m"], null: Float[Tensor, "b m"]) -> Float[Tensor, "b n m"]:
    """The posterior of each link if all positions are equally probable (model 1)."""
    n = translations.shape[1]
    total = (1 - NULL) * translations.sum(1, keepdim=True) + NULL * n * null.unsqueeze(1)
    return (1 - NULL) * translations / total.clamp_min(SMALLEST)


class _Group(NamedTuple):
    """Pairs with the same numbers of words."""

    indices: list[int]
    source: Int[Tensor, "b n"]
    target: Int[Tensor, "b m"]
    cells: Int[Tensor, "b n m"]
    """For each pair of words its number in the table of translations."""
    linked: Int[Tensor, "l"]
    """The cells with a link that was given, counted through the group."""


@dataclass(frozen=True)
class _Corpus:
    groups: list[_Group]
    source_of: Int[Tensor, "p"]
    """The source word of each entry of the table of translations."""
    target_of: Int[Tensor, "p"]
    source_frequencies: Float[Tensor, "v"]
    target_frequencies: Float[Tensor, "w"]

    @classmethod
    def from_pairs(
        cls, pairs: Sequence[WordPair], links: Sequence[Collection[Link]] | None, device: torch.device
    ) -> "_Corpus":
        numbers: tuple[dict[str, int], dict[str, int]] = ({}, {})
        by_length: dict[tuple[int, int], list[int]] = defaultdict(list)
        for index, (source, target) in enumerate(pairs):
            if 0 < len(source) <= MAX_WORDS and 0 < len(target) <= MAX_WORDS:
                by_length[len(source), len(target)].append(index)
        encoded: list[tuple[list[int], np.ndarray, np.ndarray]] = []
        for (n, m), indices in sorted(by_length.items()):
            rows = max(1, MAX_CELLS // (n * m))
            for start in range(0, len(indices), rows):
                chosen = indices[start : start + rows]
                source_ids = _number([pairs[index][0] for index in chosen], numbers[0])
                encoded.append((chosen, source_ids, _number([pairs[index][1] for index in chosen], numbers[1])))
        if not encoded:
            empty = torch.zeros(0, dtype=torch.int64)
            return cls([], empty, empty, empty.float(), empty.float())
        size = len(numbers[1])
        keys = [(source[:, :, None] * size + target[:, None]).ravel() for _, source, target in encoded]
        table, cells = np.unique(np.concatenate(keys), return_inverse=True)
        groups, first = [], 0
        for (chosen, source_ids, target_ids), key in zip(encoded, keys, strict=True):
            own = cells[first : first + len(key)].astype(np.int32).reshape(*source_ids.shape, target_ids.shape[1])
            linked = _linked_cells(chosen, links, own.shape)
            tensors = (torch.from_numpy(each).to(device) for each in (source_ids, target_ids, own, linked))
            groups.append(_Group(chosen, *tensors))
            first += len(key)
        frequencies = [
            torch.bincount(torch.cat([ids.flatten() for ids in side]), minlength=len(words))
            for side, words in zip(
                ([group.source for group in groups], [group.target for group in groups]), numbers, strict=True
            )
        ]
        return cls(
            groups,
            torch.from_numpy(table // size).to(device),
            torch.from_numpy(table % size).to(device),
            *(each / each.sum() for each in frequencies),
        )


@dataclass(frozen=True)
class _Counts:
    """What an iteration expects to see: translations, and jumps in both directions."""

    pairs: Float[Tensor, "p"]
    forward_jumps: Float[Tensor, "w"]
    backward_jumps: Float[Tensor, "w"]

    @classmethod
    def empty(cls, corpus: _Corpus) -> "_Counts":
        device = corpus.source_of.device
        jumps = (torch.zeros(2 * MAX_JUMP + 3, dtype=torch.float64, device=device) for _ in range(2))
        return cls(torch.zeros(len(corpus.source_of), dtype=torch.float64, device=device), *jumps)


@dataclass(frozen=True)
class _State:
    """The parameters of both directions."""

    forward: Float[Tensor, "p"]
    """t(target word | source word)."""
    backward: Float[Tensor, "p"]
    """t(source word | target word)."""
    forward_jumps: Float[Tensor, "w"]
    backward_jumps: Float[Tensor, "w"]

    @classmethod
    def start(cls, corpus: _Corpus) -> "_State":
        """Equal probabilities for all words that occur together, and for all distances."""
        even = torch.ones(len(corpus.source_of), dtype=torch.float64, device=corpus.source_of.device)
        jumps = torch.ones(2 * MAX_JUMP + 3, device=even.device)
        return cls(_shares(even, corpus.source_of), _shares(even, corpus.target_of), jumps, jumps)

    def updated(self, corpus: _Corpus, counts: _Counts, *, uses_positions: bool) -> "_State":
        """The parameters that make the counts most probable."""
        jumps = self.forward_jumps, self.backward_jumps
        if uses_positions:
            jumps = _jump_weights(counts.forward_jumps), _jump_weights(counts.backward_jumps)
        return _State(_shares(counts.pairs, corpus.source_of), _shares(counts.pairs, corpus.target_of), *jumps)

    def posteriors(
        self, corpus: _Corpus, group: _Group, counts: _Counts | None, *, uses_positions: bool
    ) -> tuple[Float[Tensor, "b n m"], Float[Tensor, "b n m"]]:
        """The posteriors of both directions; the jumps are added to the counts."""
        cells = group.cells.long()
        forward, backward = self.forward[cells], self.backward[cells]
        for translations in (forward, backward):
            translations.view(-1)[group.linked] *= LINKED
        backward = backward.mT
        target_null, source_null = corpus.target_frequencies[group.target], corpus.source_frequencies[group.source]
        if not uses_positions:
            return word_posteriors(forward, target_null), word_posteriors(backward, source_null).mT
        forward, forward_jumps = markov_posteriors(forward, target_null, self.forward_jumps)
        backward, backward_jumps = markov_posteriors(backward, source_null, self.backward_jumps)
        if counts is not None:
            counts.forward_jumps.add_(forward_jumps)
            counts.backward_jumps.add_(backward_jumps)
        return forward, backward.mT


def _number(texts: Sequence[Sequence[str]], numbers: dict[str, int]) -> Int[np.ndarray, "b n"]:
    return np.array([[numbers.setdefault(word.lower(), len(numbers)) for word in text] for text in texts], np.int64)


def _check_links(pairs: Sequence[WordPair], links: Sequence[Collection[Link]]) -> None:
    if len(links) != len(pairs):
        raise DataError(f"The links must be those of the {len(pairs)} pairs; got links of {len(links)}.")
    for number, ((source, target), given) in enumerate(zip(pairs, links, strict=True), 1):
        for i, j in given:
            if not (0 <= i < len(source) and 0 <= j < len(target)):
                raise DataError(
                    f"Pair {number} has {len(source)} source and {len(target)} target words, counted from 0; "
                    f"got the link {i}-{j}."
                )


def _linked_cells(
    indices: Sequence[int], links: Sequence[Collection[Link]] | None, shape: tuple[int, ...]
) -> Int[np.ndarray, "l"]:
    """The numbers of the linked cells in an array (pair, source word, target word)."""
    if links is None:
        return np.zeros(0, np.int64)
    _, n, m = shape
    cells = {(row * n + i) * m + j for row, index in enumerate(indices) for i, j in links[index]}
    return np.array(sorted(cells), np.int64)


def _shares(counts: Float[Tensor, "p"], owners: Int[Tensor, "p"]) -> Float[Tensor, "p"]:
    """Each count as a share of all counts of its owner."""
    totals = torch.zeros(int(owners.max()) + 1, dtype=counts.dtype, device=counts.device).index_add_(0, owners, counts)
    return (counts / totals.clamp_min(SMALLEST)[owners]).float()


def _jump_weights(counts: Float[Tensor, "w"]) -> Float[Tensor, "w"]:
    weights = (counts / counts.sum() + 1e-6).float()
    weights[[0, -1]] /= LONG_JUMPS
    return weights
