"""Word alignment from attention: links between words, and their error rate against gold links.

A link (i, j) connects word i of the source with word j of the target, both counted from 0. Attention weights are
(target, source), as in a Trace.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from regard.errors import OptionError, ShapeError
from regard.metrics.attention import finite_array

Link = tuple[int, int]
Links = AbstractSet[Link]

METHODS = ("argmax", "threshold", "both")
HEURISTICS = ("intersection", "union", "grow-diag", "grow-diag-final-and")


@dataclass(frozen=True)
class AlignmentScores:
    """Error rate, precision and recall of the links of a corpus; a fraction of no links is 0."""

    error_rate: float
    """AER = 1 - (|A&S| + |A&P|) / (|A| + |S|); 0 is perfect (Och and Ney 2003, section 5)."""
    precision: float
    """|A&P| / |A|: the fraction of predicted links that are possible."""
    recall: float
    """|A&S| / |S|: the fraction of sure links that are predicted."""
    predicted: int
    """|A|, the number of predicted links."""
    sure: int
    """|S|, the number of sure links."""


@dataclass(frozen=True)
class GoldAlignment:
    """A sentence pair aligned by people; `possible` includes `sure`."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    sure: frozenset[Link]
    possible: frozenset[Link]


def alignment_error_rate(
    predicted: Sequence[Links], sure: Sequence[Links], possible: Sequence[Links]
) -> AlignmentScores:
    """Score predicted links A against sure links S and possible links P, one set of each per sentence pair.

    Links are counted over the whole corpus before dividing. Sure links count as possible even if P leaves them out.
    """
    if not len(predicted) == len(sure) == len(possible):
        raise OptionError(
            "Each sentence pair needs a set of predicted, sure and possible links; got "
            f"{len(predicted)} predicted, {len(sure)} sure and {len(possible)} possible."
        )
    links = right_sure = right_possible = all_sure = 0
    for ours, certain, allowed in zip(predicted, sure, possible, strict=True):
        links += len(ours)
        all_sure += len(certain)
        right_sure += len(ours & certain)
        right_possible += len(ours & (allowed | certain))
    return AlignmentScores(
        error_rate=1 - (right_sure + right_possible) / (links + all_sure) if links + all_sure else 0.0,
        precision=right_possible / links if links else 0.0,
        recall=right_sure / all_sure if all_sure else 0.0,
        predicted=links,
        sure=all_sure,
    )


def merge_subwords(
    weights: Float[np.ndarray, "target_pieces source_pieces"], source_words: Sequence[int], target_words: Sequence[int]
) -> Float[np.ndarray, "target_words source_words"]:
    """Merge weights between subwords to weights between words (Zenkel et al. 2019, Garg et al. 2019).

    `source_words[i]` is the index of the word that subword i belongs to. Weights are summed over the subwords of a
    source word, since attention to any of them is attention to the word, and averaged over the subwords of a target
    word. A subword of word -1, such as an end marker, is left out; its weight is not distributed to others.
    """
    weights = finite_array(weights, "(target, source) weights", axes=2)
    if weights.shape != (len(target_words), len(source_words)):
        raise ShapeError(
            "merge_subwords needs the word of each subword, (target, source); got weights "
            f"{weights.shape[0]} x {weights.shape[1]}, target_words of {len(target_words)} and source_words of "
            f"{len(source_words)}."
        )
    belongs_source, belongs_target = _membership(source_words), _membership(target_words)
    pieces = np.maximum(belongs_target.sum(0), 1)
    return np.asarray((belongs_target / pieces).T @ weights @ belongs_source)


def links_from_weights(
    weights: Float[np.ndarray, "target source"], method: str = "argmax", *, threshold: float | None = None
) -> set[Link]:
    """Return links (source, target) from a map of weights.

    "argmax" links each target word to the source word with the largest weight, the first of equals. "both" keeps only
    those links for which the target word also has the largest weight of its source word. "threshold" links all pairs
    with a weight of at least `threshold`. With the first two, a threshold drops the links below it. A weight of 0 never
    gives a link.
    """
    weights = finite_array(weights, "(target, source) weights", axes=2)
    if method not in METHODS:
        raise OptionError(f"method must be one of {', '.join(METHODS)}; got {method!r}.")
    if method == "threshold" and threshold is None:
        raise OptionError('method="threshold" needs a threshold, as in threshold=0.2.')
    chosen = weights > 0
    if threshold is not None:
        chosen &= weights >= threshold
    if method != "threshold" and weights.size:
        chosen &= np.arange(weights.shape[1]) == weights.argmax(1)[:, None]
        if method == "both":
            chosen &= np.arange(weights.shape[0])[:, None] == weights.argmax(0)
    return {(int(source), int(target)) for target, source in np.argwhere(chosen)}


def symmetrize(forward: Links, backward: Links, how: str = "grow-diag") -> set[Link]:
    """Combine the links of two models, one for each direction; both are given as (source, target).

    "grow-diag" starts from the intersection and adds neighbouring links (diagonal ones included) of the union whose
    source word or target word has no link yet, target word by target word, again and again until nothing is added
    (Koehn et al. 2003, section 4.5, in the order of Moses). "grow-diag-final-and" then adds links, first of `forward`,
    then of `backward`, of which neither word has a link yet.
    """
    if how not in HEURISTICS:
        raise OptionError(f"how must be one of {', '.join(HEURISTICS)}; got {how!r}.")
    if how == "union":
        return set(forward | backward)
    links = set(forward & backward)
    if how == "intersection":
        return links
    union = forward | backward
    sources, targets = {i for i, _ in links}, {j for _, j in links}

    def add(link: Link) -> None:
        links.add(link)
        sources.add(link[0])
        targets.add(link[1])

    before = -1
    while len(links) > before:
        before = len(links)
        for i, j in _by_target(union):
            for link in _neighbours(i, j) if (i, j) in links else ():
                if link in union and link not in links and (link[0] not in sources or link[1] not in targets):
                    add(link)
    if how == "grow-diag-final-and":
        for link in (*_by_target(forward), *_by_target(backward)):
            if link[0] not in sources and link[1] not in targets:
                add(link)
    return links


def diagonal(n: int, m: int) -> set[Link]:
    """Return links along the diagonal, one for each of m target words among n source words: a baseline."""
    return {((2 * j + 1) * n // (2 * m), j) for j in range(m)} if n else set()


def _membership(words: Sequence[int]) -> Float[np.ndarray, "pieces words"]:
    of_piece = np.asarray(words, dtype=np.int64).reshape(-1, 1)
    return np.asarray(of_piece == np.arange(max(0, int(of_piece.max(initial=-1)) + 1)), dtype=np.float64)


def _by_target(links: Links) -> list[Link]:
    return sorted(links, key=lambda link: (link[1], link[0]))


def _neighbours(i: int, j: int) -> Iterator[Link]:
    for dj, di in ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)):
        yield i + di, j + dj
