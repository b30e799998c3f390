"""Beam search: the best outputs that a bounded number of hypotheses per step leads to."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float

from regard.errors import OptionError
from regard.search.hypothesis import Hypothesis, Ranking, Rules, check_finite
from regard.search.log_probs import LogProbs
from regard.search.options import Search
from regard.search.steps import Steps
from regard.work import proceed


@dataclass(frozen=True, slots=True)
class _Row:
    """An unfinished hypothesis; each unfinished input has `Search.beam` of them, one after another."""

    tokens: tuple[int, ...]
    log_probs: tuple[float, ...]
    lineage: tuple[int, ...]
    """The row that it came from at each step, by which its attention is found in the end: copying all the weights so
    far at every step would take time that grows with the cube of the length."""
    total: float
    """The sum of the log-probabilities; minus infinity for a row that stands for nothing."""


@dataclass(frozen=True)
class _Outputs:
    """The outputs of each input so far; the best `size` of them count."""

    size: int
    ranking: Ranking
    steps: Steps
    source_mask: Bool[np.ndarray, "b n"] | None
    """Which source positions exist; None if all of them do."""
    limits: Sequence[int]
    """The most tokens that each input's outputs may have."""
    outputs: list[list[tuple[Hypothesis, tuple[int, ...]]]]
    """The outputs of each input, without their attention, and the lineage of each."""
    weights: list[Any]
    """The attention weights of all rows at each step; [] for a decoder without attention."""

    def is_full(self, owner: int) -> bool:
        """Whether an input has as many outputs as it needs."""
        return len(self.outputs[owner]) >= self.size

    def add(self, owner: int, row: _Row, *, ended: bool) -> None:
        """Score a row and keep it as an output."""
        exists = None if self.source_mask is None else self.source_mask[owner]
        weights = self.attention(row.lineage) if self.ranking.coverage_penalty else None
        score = self.ranking.score(row.log_probs, weights, exists)
        tokens = list(row.tokens[:-1] if ended else row.tokens)
        self.outputs[owner].append((Hypothesis(tokens, list(row.log_probs), score, ended, None), row.lineage))

    def attention(self, lineage: Sequence[int]) -> Float[np.ndarray, "m n"] | None:
        """The attention weights of an output, step by step."""
        if not self.weights:
            return None
        if not lineage:
            return self.steps.stack([self.weights[0][0]])[:0]
        return self.steps.stack([weights[row] for weights, row in zip(self.weights, lineage, strict=False)])

    def best(self, owner: int, count: int) -> list[Hypothesis]:
        """The best outputs of an input with their attention, best first."""
        ranked = sorted(self.outputs[owner], key=lambda output: output[0].score, reverse=True)
        return [replace(output, weights=self.attention(lineage)) for output, lineage in ranked[:count]]


@dataclass(frozen=True)
class BeamStep:
    """One step of a recorded search of one input: the candidates, best first, and which of them are kept."""

    parents: list[int]
    """The hypothesis that each candidate extends, counted among those that the step before kept."""
    tokens: list[int]
    log_probs: list[float]
    """The log-probability of each token."""
    totals: list[float]
    """The sum over the whole hypothesis; minus infinity for what the rules forbid."""
    kept: list[int]
    """The candidates that are the next step's hypotheses."""
    weights: Float[np.ndarray, "r n"] | None
    """The attention of each hypothesis at this step; None for a decoder without attention."""


def beam(
    steps: Steps,
    state: Any,
    rules: Rules,
    options: Search,
    *,
    num_inputs: int,
    record: list[BeamStep] | None = None,
) -> list[list[Hypothesis]]:
    """Return the `options.nbest` best outputs for each of the `num_inputs` inputs of a state, best first.

    Outputs are ranked as `Ranking` says. An input leaves the batch after the step in which `options.beam` of its
    outputs have ended, or at its length limit. If `record` is a list, each step of the search of a single input is
    appended to it.
    """
    if record is not None and num_inputs != 1:
        raise OptionError(f"The search of one input can be recorded; got num_inputs={num_inputs}.")
    inputs, size, limits = list(range(num_inputs)), options.beam, rules.limits_of(num_inputs)
    ranking = Ranking(options.length_penalty, options.coverage_penalty)
    mask = steps.source_mask(state) if options.coverage_penalty else None
    collected = _Outputs(size, ranking, steps, mask, limits, [[] for _ in inputs], [])
    state = steps.select(state, [owner for owner in inputs for _ in range(size)])
    # All rows of an input are equal at first, so only one of them counts.
    rows = [_Row((), (), (), 0.0 if index == 0 else -math.inf) for _ in inputs for index in range(size)]
    for _ in range(max(limits, default=0) + 1):
        proceed()
        step = steps.step([row.tokens[-1] if row.tokens else rules.start for row in rows], state)
        if step.weights is not None:
            collected.weights.append(step.weights)
        rules.apply_(step.log_probs, [row.tokens for row in rows], inputs)
        candidates = _best(step.log_probs, rows, size)
        count = len(inputs)
        inputs, kept = _separate(collected, candidates, inputs, rows, rules.end)
        if record is not None:
            weights = None if step.weights is None else steps.stack(list(step.weights))
            found = candidates
            record.append(BeamStep(found.parents, found.tokens, found.log_probs, found.totals, kept, weights))
        if not inputs:
            break
        parents = [candidates.parents[index] for index in kept]
        state = steps.select(step.state, parents, same_inputs=len(inputs) == count)
        rows = candidates.extend(rows, kept)
    return [collected.best(owner, options.nbest) for owner in range(num_inputs)]


@dataclass(frozen=True)
class _Candidates:
    """The best next tokens of each input over all its rows, best first; twice as many as the beam keeps.

    A candidate is known by its index in the lists, in which those of an input stand together.
    """

    parents: list[int]
    """The row that each candidate extends."""
    tokens: list[int]
    log_probs: list[float]
    totals: list[float]

    def extend(self, rows: Sequence[_Row], indices: Sequence[int]) -> list[_Row]:
        """The hypotheses that these candidates are."""
        found = []
        for index in indices:
            parent, row = self.parents[index], rows[self.parents[index]]
            tokens = (*row.tokens, self.tokens[index])
            log_probs = (*row.log_probs, self.log_probs[index])
            found.append(_Row(tokens, log_probs, (*row.lineage, parent), self.totals[index]))
        return found


def _best(log_probs: LogProbs, rows: Sequence[_Row], size: int) -> _Candidates:
    """Find the best extensions of all rows of each input by all tokens."""
    totals, indices = log_probs.largest([row.total for row in rows], size, 2 * size)
    width, parents, tokens = log_probs.width, [], []
    for group, found in enumerate(indices):
        for index in found:
            parents.append(group * size + index // width)
            tokens.append(index % width)
    return _Candidates(parents, tokens, log_probs.at(parents, tokens), [each for found in totals for each in found])


def _separate(
    collected: _Outputs, candidates: _Candidates, inputs: Sequence[int], rows: Sequence[_Row], end: int
) -> tuple[list[int], list[int]]:
    """Add the candidates that end to the outputs; return the unfinished inputs and their best `size` other candidates.

    All that end among the best `size` of a step become outputs, since they may be better than those before.
    An input at its length limit, or one that no token can continue, is finished: its unfinished hypotheses become
    outputs as they were before this step.
    """
    still: list[int] = []
    kept: list[int] = []
    length, size, count = len(rows[0].tokens), collected.size, len(candidates.totals) // len(inputs)
    check_finite(candidates.totals)
    for group, owner in enumerate(inputs):
        totals = candidates.totals[group * count : (group + 1) * count]
        cut = length >= collected.limits[owner]
        others: list[int] = []
        ended: set[int] = set()
        unfinished: set[int] = set()
        for rank, total in enumerate(totals):
            index, possible = group * count + rank, total > -math.inf
            parent, token = candidates.parents[index], candidates.tokens[index]
            if token == end and possible:
                if rank < size:
                    ended.add(parent)
                    collected.add(owner, candidates.extend(rows, [index])[0], ended=True)
            elif cut:
                if possible and parent not in unfinished and not collected.is_full(owner):
                    unfinished.add(parent)
                    collected.add(owner, rows[parent], ended=False)
            elif token != end and len(others) < size:
                others.append(index)
        if cut or max(totals) == -math.inf:
            for index in range(group * size, (group + 1) * size):
                row = rows[index]
                if row.total > -math.inf and index not in ended | unfinished and not collected.is_full(owner):
                    collected.add(owner, row, ended=False)
        elif not collected.is_full(owner) and len(others) == size:
            still.append(owner)
            kept += others
    return still, kept


Fate = Literal["root", "kept", "pruned", "finished", "cut"]
"""What became of a hypothesis: it was extended, dropped, ended, or cut at the length limit."""


@dataclass(frozen=True)
class BeamNode:
    """A hypothesis of the search: that of its parent, and one token more."""

    parent: int | None
    """The index of its parent in `BeamTree.nodes`; None for the root, which is empty."""
    depth: int
    """Number of its tokens, that of the end included."""
    token: int | None
    log_prob: float
    """The log-probability of the token."""
    total: float
    """The sum of the log-probabilities of all its tokens."""
    fate: Fate
    rank: int | None = None
    """The index among the outputs, 0 for the best; None for what is no output."""
    score: float | None = None
    """What outputs are ranked by; None for what is no output."""
    attention: int | None = None
    """The row of `BeamTree.weights` with the attention of the step that predicted the token."""


@dataclass(frozen=True)
class BeamTree:
    """All hypotheses of a search, parents before their children, and their attention."""

    nodes: tuple[BeamNode, ...]
    weights: Float[np.ndarray, "r n"] | None
    """The attention of each step of each hypothesis that was extended; None for a decoder without attention."""

    def path(self, index: int) -> list[int]:
        """The indices of the nodes from the first token to this node."""
        found: list[int] = []
        while (parent := self.nodes[index].parent) is not None:
            found.append(index)
            index = parent
        return found[::-1]

    def tokens(self, index: int) -> list[int]:
        """The tokens of a hypothesis, that of the end included."""
        return [token for each in self.path(index) if (token := self.nodes[each].token) is not None]

    def attention(self, index: int) -> Float[np.ndarray, "m n"] | None:
        """The attention of a hypothesis, one row per token."""
        if self.weights is None:
            return None
        rows = [row for each in self.path(index) if (row := self.nodes[each].attention) is not None]
        return self.weights[rows]


def beam_tree(steps: Sequence[BeamStep], outputs: Sequence[Hypothesis], *, end: int) -> BeamTree:
    """Build the tree of a recorded search; `outputs` are all its hypotheses, best first, as `beam` returns them."""
    nodes = [BeamNode(None, 0, None, 0.0, 0.0, "root")]
    rows, tables = [0], []  # the nodes that are the hypotheses of the step, by row
    first = 0
    for depth, step in enumerate(steps, 1):
        indices: dict[int, int] = {}
        for rank, (parent, token) in enumerate(zip(step.parents, step.tokens, strict=True)):
            if step.totals[rank] == -math.inf:
                continue
            fate: Fate = "kept" if rank in step.kept else "pruned"
            row = None if step.weights is None else first + parent
            indices[rank] = len(nodes)
            node = BeamNode(rows[parent], depth, token, step.log_probs[rank], step.totals[rank], fate, attention=row)
            nodes.append(node)
        # At first, rows may stand for nothing: fewer tokens than hypotheses are possible.
        rows = [indices.get(rank, 0) for rank in step.kept]
        if step.weights is not None:
            tables.append(step.weights)
            first += len(step.weights)
    children = {(node.parent, node.token): index for index, node in enumerate(nodes)}
    for rank, output in enumerate(outputs):
        index = 0
        for token in (*output.tokens, *([end] if output.finished else [])):
            index = children[index, token]
        fate = "finished" if output.finished else "cut"
        nodes[index] = replace(nodes[index], fate=fate, rank=rank, score=output.score)
    return BeamTree(tuple(nodes), np.concatenate(tables) if tables else None)
