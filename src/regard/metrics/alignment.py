"""Is the attention an alignment? Links between words, and their error rate against gold links.

A link is (i, j): word i of the source goes with word j of the target, both counted from 0. Weights stand as in a Trace,
(target, source).
"""

import gzip
import json
import os
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from regard.errors import NonFiniteError, OptionError, RegardError, ShapeError

Link = tuple[int, int]
Links = AbstractSet[Link]

METHODS = ("argmax", "threshold", "both")
JOINS = ("intersection", "union", "grow-diag")


@dataclass(frozen=True)
class AlignmentScores:
    """Error rate, precision and recall of the links of a corpus; a share of no links at all is 0."""

    error_rate: float
    """AER = 1 - (|A&S| + |A&P|) / (|A| + |S|); 0 is perfect (Och and Ney 2003, section 5)."""
    precision: float
    """|A&P| / |A|: the share of predicted links that are at least possible."""
    recall: float
    """|A&S| / |S|: the share of sure links that were predicted."""
    predicted: int
    """|A|, the links predicted."""
    sure: int
    """|S|, the sure links."""


@dataclass(frozen=True)
class GoldAlignment:
    """A sentence pair that people have aligned; `possible` contains `sure`."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    sure: frozenset[Link]
    possible: frozenset[Link]


def alignment_error_rate(
    predicted: Sequence[Links], sure: Sequence[Links], possible: Sequence[Links]
) -> AlignmentScores:
    """Scores of predicted links A against sure links S and possible links P, one set of each per sentence pair.

    Links are counted over the whole corpus before dividing. P is made to contain S, so it may hold the rest only.
    """
    if not len(predicted) == len(sure) == len(possible):
        raise OptionError(
            "Each sentence pair needs a set of predicted, sure and possible links; got "
            f"{len(predicted)} predicted, {len(sure)} sure and {len(possible)} possible."
        )
    links = right_sure = right_possible = all_sure = 0
    for guessed, certain, allowed in zip(predicted, sure, possible, strict=True):
        links += len(guessed)
        all_sure += len(certain)
        right_sure += len(guessed & certain)
        right_possible += len(guessed & (allowed | certain))
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
    """Weights between words from weights between pieces of words (Zenkel et al. 2019, Garg et al. 2019).

    `source_words[i]` is the word that piece i belongs to. The pieces of a source word are summed, since attention to
    any of them is attention to the word; the pieces of a target word are averaged, since each looked once. A piece of
    word -1 (an end mark, say) belongs to no word and is left out; its weight is not shared among the others.
    """
    weights = _map(weights)
    if weights.shape != (len(target_words), len(source_words)):
        raise ShapeError(
            "merge_subwords needs the word of each piece, (target, source); got weights "
            f"{weights.shape[0]} x {weights.shape[1]}, target_words of {len(target_words)} and source_words of "
            f"{len(source_words)}."
        )
    belongs_source, belongs_target = _membership(source_words), _membership(target_words)
    pieces = np.maximum(belongs_target.sum(0), 1)
    return np.asarray((belongs_target / pieces).T @ weights @ belongs_source)


def links_from_weights(
    weights: Float[np.ndarray, "target source"], method: str = "argmax", *, threshold: float | None = None
) -> set[Link]:
    """Links (source, target) from a map of weights.

    "argmax": each target word with its heaviest source word, the first of equals. "both": only where that target word
    is in turn the heaviest of that source word. "threshold": every pair of at least `threshold`. With the first two, a
    threshold drops the links below it. A pair of weight 0 is never linked.
    """
    weights = _map(weights)
    if method not in METHODS:
        raise OptionError(f"method must be one of {', '.join(METHODS)}; got {method!r}.")
    if method == "threshold" and threshold is None:
        raise OptionError('method="threshold" links weights of at least `threshold`: give one, as in threshold=0.2.')
    chosen = weights > 0
    if threshold is not None:
        chosen &= weights >= threshold
    if method != "threshold" and weights.size:
        chosen &= np.arange(weights.shape[1]) == weights.argmax(1)[:, None]
        if method == "both":
            chosen &= np.arange(weights.shape[0])[:, None] == weights.argmax(0)
    return {(int(source), int(target)) for target, source in np.argwhere(chosen)}


def join(forward: Links, backward: Links, how: str = "grow-diag") -> set[Link]:
    """One alignment from those of two models, one for each direction; both are given as (source, target).

    "grow-diag" starts from the links that both found and adds, again and again, neighbours (diagonal ones too) that one
    of them found, if the source word or the target word has no link yet (Koehn et al. 2003, section 4.1).
    """
    if how not in JOINS:
        raise OptionError(f"how must be one of {', '.join(JOINS)}; got {how!r}.")
    if how == "union":
        return set(forward | backward)
    joined = set(forward & backward)
    if how == "intersection":
        return joined
    union = forward | backward
    sources, targets = {i for i, _ in joined}, {j for _, j in joined}
    waiting = sorted(joined)
    # A link only ever offers its neighbours; those refused now have both words taken, and stay so.
    for i, j in waiting:
        for link in _neighbours(i, j):
            if link in union and link not in joined and (link[0] not in sources or link[1] not in targets):
                joined.add(link)
                sources.add(link[0])
                targets.add(link[1])
                waiting.append(link)
    return joined


def diagonal(n: int, m: int) -> set[Link]:
    """Links along the diagonal, one for each of m target words among n source words: the baseline to beat."""
    return {((2 * j + 1) * n // (2 * m), j) for j in range(m)} if n else set()


def read_gold(path: str | os.PathLike[str]) -> list[GoldAlignment]:
    """Gold alignments from JSON lines, plain or .gz: {"src": [...], "tgt": [...], "sure": [[i, j]], "possible": [...]}.

    `sure` and `possible` hold links counted from 0; `possible` may leave out the sure ones.
    """
    path = Path(path)
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    pairs = []
    for number, line in enumerate(text.decode("utf-8").split("\n"), 1):
        if line.strip():
            try:
                pairs.append(_gold(json.loads(line)))
            except (TypeError, ValueError) as error:
                raise RegardError(
                    f"{path}, line {number}: {error}. A line of gold links is an object with src and tgt (lists of "
                    "words) and sure and possible (lists of [i, j], counted from 0)."
                ) from error
    return pairs


def _gold(fields: Any) -> GoldAlignment:
    if missing := {"src", "tgt", "sure"} - set(fields):
        raise ValueError(f"it is without {', '.join(sorted(missing))}")
    source, target = tuple(fields["src"]), tuple(fields["tgt"])
    sure = frozenset((int(i), int(j)) for i, j in fields["sure"])
    possible = sure | {(int(i), int(j)) for i, j in fields.get("possible", [])}
    for i, j in sorted(possible):
        if not (0 <= i < len(source) and 0 <= j < len(target)):
            raise ValueError(f"link [{i}, {j}] is outside its {len(source)} x {len(target)} words")
    return GoldAlignment(source, target, sure, possible)


def _map(weights: Any) -> Float[np.ndarray, "target source"]:
    table = np.asarray(weights, dtype=np.float64)
    if table.ndim != 2:
        raise ShapeError(f"An alignment needs (target, source) weights; got shape {table.shape}.")
    if not np.isfinite(table).all():
        raise NonFiniteError("An alignment needs finite weights; some here are NaN or infinite.")
    return table


def _membership(words: Sequence[int]) -> Float[np.ndarray, "pieces words"]:
    of_piece = np.asarray(words, dtype=np.int64).reshape(-1, 1)
    return np.asarray(of_piece == np.arange(max(0, int(of_piece.max(initial=-1)) + 1)), dtype=np.float64)


def _neighbours(i: int, j: int) -> Iterator[Link]:
    for di, dj in ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)):
        yield i + di, j + dj
