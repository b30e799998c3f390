"""Beam search over a batch: the best outputs that a bounded look ahead finds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.decoders.protocol import Decoder, select
from regard.errors import OptionError
from regard.search.hypothesis import Hypothesis, Rules

PIECE = 64
"""Neighbouring tokens that are sorted out together."""
PAYS = 1 << 15
"""Numbers from which on that is faster than sorting them all."""


@dataclass(frozen=True)
class _Rows:
    """The hypotheses in progress, one per row; `size` rows for each input that is not done."""

    tokens: Int[Tensor, "r t"]
    log_probs: Float[Tensor, "r s"]
    weights: Float[Tensor, "r s n"]

    def grown(self, rows: Tensor, token: Tensor, log_prob: Tensor, weights: Tensor) -> "_Rows":
        """These rows, each with one more token."""
        return _Rows(
            torch.cat([self.tokens[rows], token.unsqueeze(1)], dim=1),
            torch.cat([self.log_probs[rows], log_prob.unsqueeze(1)], dim=1),
            torch.cat([self.weights[rows], weights[rows]], dim=1),
        )


@dataclass(frozen=True)
class _Found:
    """The outputs found so far, for each input at most `size`."""

    size: int
    length_penalty: float
    coverage_penalty: float
    sources: Bool[Tensor, "b 1 n"]
    """Which source positions exist."""
    outputs: list[list[Hypothesis]]

    def is_full(self, owner: int) -> bool:
        """Whether an input has all its outputs."""
        return len(self.outputs[owner]) >= self.size

    def add(self, owner: int, rows: _Rows, row: int, *, ended: bool) -> None:
        """Keep a row as an output, ranked."""
        log_probs, weights = rows.log_probs[row], rows.weights[row]
        score = log_probs.sum().item() / max(1, len(log_probs)) ** self.length_penalty
        if self.coverage_penalty:
            covered = weights.sum(0)[self.sources[owner, 0]].clamp(1e-10, 1.0)
            score += self.coverage_penalty * covered.log().sum().item()
        tokens = rows.tokens[row, 1 : -1 if ended else None].tolist()
        attention = None if weights.isnan().any() else weights
        self.outputs[owner].append(Hypothesis(tokens, log_probs.tolist(), score, ended, attention))


@dataclass(frozen=True)
class _Candidates:
    """For each input the best next tokens of all its rows, best first, twice as many as the beam keeps."""

    totals: Float[Tensor, "i c"]
    parents: Int[Tensor, "i c"]
    """The row that each goes on from."""
    tokens: Int[Tensor, "i c"]

    @classmethod
    def of(cls, scores: Float[Tensor, "i s"], log_probs: Float[Tensor, "r y"]) -> "_Candidates":
        """The best of every row's every token."""
        (inputs, size), vocabulary = scores.shape, log_probs.shape[-1]
        best, place = largest(log_probs.view(inputs, size, vocabulary), scores, min(2 * size, size * vocabulary))
        first_row = torch.arange(inputs, device=scores.device).unsqueeze(1) * size
        return cls(best, place // vocabulary + first_row, place % vocabulary)


@torch.no_grad()
def beam(
    decoder: Decoder,
    encoded: Any,
    rules: Rules,
    *,
    size: int = 5,
    length_penalty: float = 1.0,
    coverage_penalty: float = 0.0,
    prefixes: Sequence[Sequence[int]] | None = None,
) -> list[list[Hypothesis]]:
    """For each input its best outputs, at most `size` of them, best first.

    An output is ranked by log p / length^length_penalty + coverage_penalty * sum_i log min(1, sum_t weight_ti), the
    second term from Wu et al. 2016, equation 14. An input leaves the batch when `size` of its outputs have ended.
    """
    if size < 1:
        raise OptionError(f"A beam keeps at least one hypothesis; got size={size}.")
    batch, device = encoded.states.shape[0], encoded.states.device
    inputs = list(range(batch))
    found = _Found(size, length_penalty, coverage_penalty, encoded.mask, [[] for _ in inputs])
    state = select(decoder.start(encoded), torch.arange(batch, device=device).repeat_interleave(size))
    rows = _Rows(
        torch.full((batch * size, 1), rules.start, device=device),
        torch.zeros(batch * size, 0, device=device),
        torch.zeros(batch * size, 0, encoded.states.shape[1], device=device),
    )
    # All rows of an input are alike at first, so only one of them counts.
    scores = torch.tensor([0.0] + [-torch.inf] * (size - 1), device=device).repeat(batch, 1)
    for length in range(rules.max_length + 1):
        step = decoder.step(rows.tokens[:, -1], state)
        log_probs = step.logits.float().log_softmax(-1)
        forced = None if prefixes is None else [prefixes[owner] for owner in inputs for _ in range(size)]
        rules.apply_(log_probs, rows.tokens, forced)
        candidates = _Candidates.of(scores, log_probs)
        parents, tokens = candidates.parents.flatten(), candidates.tokens.flatten()
        grown = rows.grown(parents, tokens, log_probs[parents, tokens], _weights(step.attended, rows.weights))
        before = len(inputs)
        inputs, going_on = _sort_out(found, candidates, inputs, rows, grown, rules.end, cut=length == rules.max_length)
        if not inputs:
            break
        chosen = torch.tensor(going_on, device=device)
        scores = candidates.totals.flatten()[chosen].view(len(inputs), size)
        state = select(step.state, parents[chosen], same_inputs=len(inputs) == before)
        rows = _Rows(grown.tokens[chosen], grown.log_probs[chosen], grown.weights[chosen])
    return [sorted(outputs, key=lambda output: output.score, reverse=True) for outputs in found.outputs]


def largest(
    table: Float[Tensor, "i s n"], offsets: Float[Tensor, "i s"], count: int
) -> tuple[Float[Tensor, "i c"], Int[Tensor, "i c"]]:
    """The largest of each table + offset, in order, and their places; as topk finds them, with less to add and sort.

    The largest few lie in the few pieces of the rows whose own largest number is largest, and these are found at once.
    """
    offsets, width = offsets.unsqueeze(-1), table.shape[-1]
    if table.is_cuda or table.numel() < PAYS or width < PIECE * 4 * count:
        values, places = (table + offsets).flatten(1).topk(count)
        return values, places
    whole = width - width % PIECE
    pieces = table[..., :whole].unflatten(-1, (-1, PIECE))
    chosen = (pieces.amax(-1) + offsets).flatten(1).topk(count).indices.sort().values
    row, piece = chosen // pieces.shape[2], chosen % pieces.shape[2]
    inputs = torch.arange(len(table)).unsqueeze(1)
    inside, after = pieces[inputs, row, piece] + offsets[inputs, row], table[..., whole:] + offsets
    values, found = torch.cat([inside.flatten(1), after.flatten(1)], dim=1).topk(count)
    places = torch.arange(table[0].numel()).view(-1, width)
    of_pieces = places[:, :whole].unflatten(-1, (-1, PIECE))[row, piece].flatten(1)
    of_rest = places[:, whole:].flatten().expand(len(table), -1)
    return values, torch.cat([of_pieces, of_rest], dim=1).gather(1, found)


def _sort_out(
    found: _Found, candidates: _Candidates, inputs: list[int], rows: _Rows, grown: _Rows, end: int, *, cut: bool
) -> tuple[list[int], list[int]]:
    """Keep the candidates that end; give the inputs that go on, and for each the best `size` candidates that do not.

    At the length limit nothing goes on: what has not ended is kept as it was before this step.
    """
    still: list[int] = []
    going_on: list[int] = []
    everything = zip(
        inputs, candidates.tokens.tolist(), candidates.totals.tolist(), candidates.parents.tolist(), strict=True
    )
    for group, (owner, tokens, totals, parents) in enumerate(everything):
        kept: list[int] = []
        unfinished: set[int] = set()
        for rank, (token, total, parent) in enumerate(zip(tokens, totals, parents, strict=True)):
            place, possible = group * len(tokens) + rank, total > -torch.inf
            if token == end and possible:
                if rank < found.size and not found.is_full(owner):
                    found.add(owner, grown, place, ended=True)
            elif cut:
                if possible and parent not in unfinished and not found.is_full(owner):
                    unfinished.add(parent)
                    found.add(owner, rows, parent, ended=False)
            elif token != end and len(kept) < found.size:
                kept.append(place)
        if not cut and not found.is_full(owner) and len(kept) == found.size:
            still.append(owner)
            going_on += kept
    return still, going_on


def _weights(attended: Any, so_far: Float[Tensor, "r s n"]) -> Float[Tensor, "r 1 n"]:
    """The weights of this step; NaN where the decoder has no attention."""
    if attended is None or attended.weights is None:
        return so_far.new_full((so_far.shape[0], 1, so_far.shape[2]), torch.nan)
    weights: Tensor = attended.weights
    return weights.float()
