"""Beam search: the best outputs that a bounded number of hypotheses per step leads to."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.decoders.protocol import Decoder, select
from regard.errors import OptionError
from regard.search.hypothesis import Hypothesis, Ranking, Rules, check_finite
from regard.search.options import Search

CHUNK = 64
"""Number of neighbouring tokens whose maximum `largest` compares first."""
MIN_SIZE_FOR_CHUNKS = 1 << 15
"""Number of elements from which on comparing chunks is faster than sorting all elements."""


@dataclass(frozen=True)
class _Rows:
    """The unfinished hypotheses, one per row; `size` rows for each unfinished input."""

    tokens: Int[Tensor, "r t"]
    log_probs: Float[Tensor, "r s"]
    lineage: Int[Tensor, "r s"]
    """The row that each hypothesis came from at each step, by which its attention is found in the end: copying all the
    weights so far at every step would take time that grows with the cube of the length."""

    def extended(self, rows: Tensor, token: Tensor, log_prob: Tensor) -> "_Rows":
        """Select rows and append one token to each, with its log-probability."""
        return _Rows(
            torch.cat([self.tokens[rows], token.unsqueeze(1)], dim=1),
            torch.cat([self.log_probs[rows], log_prob.unsqueeze(1)], dim=1),
            torch.cat([self.lineage[rows], rows.unsqueeze(1)], dim=1),
        )

    def select(self, rows: Tensor) -> "_Rows":
        """Select rows."""
        return _Rows(self.tokens[rows], self.log_probs[rows], self.lineage[rows])


@dataclass(frozen=True)
class _Outputs:
    """The outputs of each input so far; the best `size` of them count."""

    size: int
    ranking: Ranking
    source_mask: Bool[Tensor, "b n"] | None
    """Which source positions exist; None if all of them do."""
    limits: Sequence[int]
    """The most tokens that each input's outputs may have."""
    outputs: list[list[tuple[Hypothesis, list[int]]]]
    """The outputs of each input, without their attention, and the lineage of each."""
    weights: list[Float[Tensor, "r n"]]
    """The attention weights of all rows at each step; [] for a decoder without attention."""

    def is_full(self, owner: int) -> bool:
        """Whether an input has as many outputs as it needs."""
        return len(self.outputs[owner]) >= self.size

    def add(self, owner: int, rows: _Rows, row: int, *, ended: bool) -> None:
        """Score a row and keep it as an output."""
        log_probs, lineage = rows.log_probs[row], rows.lineage[row].tolist()
        exists = None if self.source_mask is None else self.source_mask[owner]
        weights = self.attention(lineage) if self.ranking.coverage_penalty else None
        score = self.ranking.score(log_probs, weights, exists)
        tokens = rows.tokens[row, 1 : -1 if ended else None].tolist()
        self.outputs[owner].append((Hypothesis(tokens, log_probs.tolist(), score, ended, None), lineage))

    def attention(self, lineage: list[int]) -> Float[Tensor, "m n"] | None:
        """The attention weights of an output, step by step."""
        if not self.weights:
            return None
        if not lineage:
            return self.weights[0][:0].float()
        return torch.stack([weights[row] for weights, row in zip(self.weights, lineage, strict=False)]).float()

    def best(self, owner: int, count: int) -> list[Hypothesis]:
        """The best outputs of an input with their attention, best first."""
        ranked = sorted(self.outputs[owner], key=lambda output: output[0].score, reverse=True)
        return [replace(output, weights=self.attention(lineage)) for output, lineage in ranked[:count]]


@dataclass(frozen=True)
class _Candidates:
    """The best next tokens of each input over all its rows, best first; twice as many as the beam keeps."""

    totals: Float[Tensor, "i c"]
    parents: Int[Tensor, "i c"]
    """The row that each candidate extends."""
    tokens: Int[Tensor, "i c"]

    @classmethod
    def from_scores(cls, scores: Float[Tensor, "i s"], log_probs: Float[Tensor, "r y"]) -> "_Candidates":
        """Find the best extensions of all rows by all tokens."""
        (inputs, size), vocabulary = scores.shape, log_probs.shape[-1]
        best, index = largest(log_probs.view(inputs, size, vocabulary), scores, min(2 * size, size * vocabulary))
        first_row = torch.arange(inputs, device=scores.device).unsqueeze(1) * size
        return cls(best, index // vocabulary + first_row, index % vocabulary)


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
    weights: Float[Tensor, "r n"] | None
    """The attention of each hypothesis at this step; None for a decoder without attention."""


@torch.no_grad()
def beam(
    decoder: Decoder,
    state: Any,
    rules: Rules,
    options: Search,
    *,
    num_inputs: int,
    device: torch.device | str,
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
    collected = _Outputs(size, ranking, decoder.source_mask(state), limits, [[] for _ in inputs], [])
    state = select(state, torch.arange(num_inputs, device=device).repeat_interleave(size))
    hypotheses = _Rows(
        torch.full((num_inputs * size, 1), rules.start, device=device),
        torch.zeros(num_inputs * size, 0, device=device),
        torch.zeros(num_inputs * size, 0, device=device, dtype=torch.long),
    )
    # All rows of an input are equal at first, so only one of them counts.
    scores = torch.tensor([0.0] + [-torch.inf] * (size - 1), device=device).repeat(num_inputs, 1)
    for _ in range(max(limits, default=0) + 1):
        step = decoder.step(hypotheses.tokens[:, -1], state)
        if step.attended is not None and step.attended.weights is not None:
            collected.weights.append(step.attended.weights[:, 0])
        log_probs = step.logits.float().log_softmax(-1)
        rules.apply_(log_probs, hypotheses.tokens, inputs)
        candidates = _Candidates.from_scores(scores, log_probs)
        parents, tokens = candidates.parents.flatten(), candidates.tokens.flatten()
        extended = hypotheses.extended(parents, tokens, log_probs[parents, tokens])
        before = len(inputs)
        inputs, kept = _separate(collected, candidates, inputs, hypotheses, extended, scores, rules.end)
        if record is not None:
            record.append(_recorded(candidates, extended, kept, collected.weights))
        if not inputs:
            break
        kept_rows = torch.tensor(kept, device=device)
        scores = candidates.totals.flatten()[kept_rows].view(len(inputs), size)
        state = select(step.state, parents[kept_rows], same_inputs=len(inputs) == before)
        hypotheses = extended.select(kept_rows)
    return [collected.best(owner, options.nbest) for owner in range(num_inputs)]


def _recorded(candidates: _Candidates, extended: _Rows, kept: list[int], weights: list[Tensor]) -> BeamStep:
    return BeamStep(
        candidates.parents.flatten().tolist(),
        candidates.tokens.flatten().tolist(),
        extended.log_probs[:, -1].tolist(),
        candidates.totals.flatten().tolist(),
        kept,
        weights[-1] if weights else None,
    )


def largest(
    table: Float[Tensor, "i s n"], offsets: Float[Tensor, "i s"], count: int
) -> tuple[Float[Tensor, "i c"], Int[Tensor, "i c"]]:
    """Find the `count` largest elements of table + offset for each input, in order, and their flat indices.

    The result is that of topk. For large tables on a CPU, rows are cut into chunks: the largest elements lie in the
    chunks with the largest maxima, so that only the elements of those chunks are sorted.
    """
    offsets, width = offsets.unsqueeze(-1), table.shape[-1]
    if table.device.type != "cpu" or table.numel() < MIN_SIZE_FOR_CHUNKS or width < CHUNK * 4 * count:
        values, indices = (table + offsets).flatten(1).topk(count)
        return values, indices
    whole = width - width % CHUNK
    chunks = table[..., :whole].unflatten(-1, (-1, CHUNK))
    chosen = (chunks.amax(-1) + offsets).flatten(1).topk(count).indices.sort().values
    row, chunk = chosen // chunks.shape[2], chosen % chunks.shape[2]
    inputs = torch.arange(len(table)).unsqueeze(1)
    inside, after = chunks[inputs, row, chunk] + offsets[inputs, row], table[..., whole:] + offsets
    values, positions = torch.cat([inside.flatten(1), after.flatten(1)], dim=1).topk(count)
    indices = torch.arange(table[0].numel()).view(-1, width)
    in_chunks = indices[:, :whole].unflatten(-1, (-1, CHUNK))[row, chunk].flatten(1)
    in_rest = indices[:, whole:].flatten().expand(len(table), -1)
    return values, torch.cat([in_chunks, in_rest], dim=1).gather(1, positions)


def _separate(
    collected: _Outputs,
    candidates: _Candidates,
    inputs: list[int],
    rows: _Rows,
    extended: _Rows,
    scores: Float[Tensor, "i s"],
    end: int,
) -> tuple[list[int], list[int]]:
    """Add the candidates that end to the outputs; return the unfinished inputs and their best `size` other candidates.

    All that end among the best `size` of a step become outputs, since they may be better than those before.
    An input at its length limit, or one that no token can continue, is finished: its unfinished hypotheses become
    outputs as they were before this step.
    """
    still: list[int] = []
    kept: list[int] = []
    length, size = rows.log_probs.shape[1], collected.size
    by_input = zip(
        inputs, candidates.tokens.tolist(), candidates.totals.tolist(), candidates.parents.tolist(), strict=True
    )
    for group, (owner, tokens, totals, parents) in enumerate(by_input):
        check_finite(totals)
        cut = length >= collected.limits[owner]
        others: list[int] = []
        ended: set[int] = set()
        unfinished: set[int] = set()
        for rank, (token, total, parent) in enumerate(zip(tokens, totals, parents, strict=True)):
            index, possible = group * len(tokens) + rank, total > -torch.inf
            if token == end and possible:
                if rank < size:
                    ended.add(parent)
                    collected.add(owner, extended, index, ended=True)
            elif cut:
                if possible and parent not in unfinished and not collected.is_full(owner):
                    unfinished.add(parent)
                    collected.add(owner, rows, parent, ended=False)
            elif token != end and len(others) < size:
                others.append(index)
        if cut or max(totals) == -torch.inf:
            for index, score in enumerate(scores[group].tolist(), group * size):
                if score > -torch.inf and index not in ended | unfinished and not collected.is_full(owner):
                    collected.add(owner, rows, index, ended=False)
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
    weights: Float[Tensor, "r n"] | None
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

    def attention(self, index: int) -> Float[Tensor, "m n"] | None:
        """The attention of a hypothesis, one row per token."""
        if self.weights is None:
            return None
        rows = [row for each in self.path(index) if (row := self.nodes[each].attention) is not None]
        return self.weights[torch.tensor(rows, dtype=torch.long, device=self.weights.device)]


def beam_tree(steps: Sequence[BeamStep], outputs: Sequence[Hypothesis], *, end: int) -> BeamTree:
    """Build the tree of a recorded search; `outputs` are all its hypotheses, best first, as `beam` returns them."""
    nodes = [BeamNode(None, 0, None, 0.0, 0.0, "root")]
    rows, tables = [0], []  # the nodes that are the hypotheses of the step, by row
    first = 0
    for depth, step in enumerate(steps, 1):
        indices: dict[int, int] = {}
        for rank, (parent, token) in enumerate(zip(step.parents, step.tokens, strict=True)):
            if step.totals[rank] == -torch.inf:
                continue
            fate: Fate = "kept" if rank in step.kept else "pruned"
            row = None if step.weights is None else first + parent
            indices[rank] = len(nodes)
            node = BeamNode(rows[parent], depth, token, step.log_probs[rank], step.totals[rank], fate, attention=row)
            nodes.append(node)
        # At first, rows may stand for nothing: fewer tokens than hypotheses are possible.
        rows = [indices.get(rank, 0) for rank in step.kept]
        if step.weights is not None:
            tables.append(step.weights.float())
            first += len(step.weights)
    children = {(node.parent, node.token): index for index, node in enumerate(nodes)}
    for rank, output in enumerate(outputs):
        index = 0
        for token in (*output.tokens, *([end] if output.finished else [])):
            index = children[index, token]
        fate = "finished" if output.finished else "cut"
        nodes[index] = replace(nodes[index], fate=fate, rank=rank, score=output.score)
    return BeamTree(tuple(nodes), torch.cat(tables) if tables else None)
