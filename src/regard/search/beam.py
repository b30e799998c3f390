"""Beam search over a batch: the best outputs that a bounded look ahead finds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.decoders.protocol import Decoder, select
from regard.errors import OptionError
from regard.search.hypothesis import Hypothesis, Rules


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
    found: list[list[Hypothesis]] = [[] for _ in inputs]
    state = select(decoder.start(encoded), torch.arange(batch, device=device).repeat_interleave(size))
    rows = _Rows(
        torch.full((batch * size, 1), rules.start, device=device),
        torch.zeros(batch * size, 0, device=device),
        torch.zeros(batch * size, 0, encoded.states.shape[1], device=device),
    )
    # All rows of an input are alike at first, so only one of them counts.
    scores = torch.tensor([0.0] + [-torch.inf] * (size - 1), device=device).repeat(batch, 1)

    def keep(grown: _Rows, row: int, *, ended: bool, owner: int) -> None:
        log_probs, weights = grown.log_probs[row], grown.weights[row]
        score = log_probs.sum().item() / max(1, len(log_probs)) ** length_penalty
        if coverage_penalty:
            covered = weights.sum(0)[encoded.mask[owner, 0]].clamp(1e-10, 1.0)
            score += coverage_penalty * covered.log().sum().item()
        tokens = grown.tokens[row, 1 : -1 if ended else None].tolist()
        attention = None if weights.isnan().any() else weights
        found[owner].append(Hypothesis(tokens, log_probs.tolist(), score, ended, attention))

    for length in range(rules.max_length + 1):
        step = decoder.step(rows.tokens[:, -1], state)
        weights = _weights(step.attended, rows.weights)
        owners = [owner for owner in inputs for _ in range(size)]
        plain = step.logits.float().log_softmax(-1)
        ruled = rules.apply(plain, rows.tokens, None if prefixes is None else [prefixes[owner] for owner in owners])
        vocabulary = ruled.shape[-1]
        totals = (scores.unsqueeze(-1) + ruled.view(len(inputs), size, vocabulary)).flatten(1)
        best, place = totals.topk(min(2 * size, totals.shape[1]))
        parents = place // vocabulary + torch.arange(len(inputs), device=device).unsqueeze(1) * size
        tokens = place % vocabulary
        flat_parents, flat_tokens = parents.flatten(), tokens.flatten()
        grown = rows.grown(flat_parents, flat_tokens, plain[flat_parents, flat_tokens], weights)

        going_on: list[int] = []
        still: list[int] = []
        for group, (owner, group_tokens, group_best) in enumerate(
            zip(inputs, tokens.tolist(), best.tolist(), strict=True)
        ):
            first = group * len(group_tokens)
            kept: list[int] = []
            cut: set[int] = set()
            for rank, (token, total) in enumerate(zip(group_tokens, group_best, strict=True)):
                possible = total > -torch.inf
                if token == rules.end and possible:
                    if rank < size and len(found[owner]) < size:
                        keep(grown, first + rank, ended=True, owner=owner)
                elif length == rules.max_length:
                    parent = int(flat_parents[first + rank])
                    if possible and parent not in cut and len(found[owner]) < size:
                        cut.add(parent)
                        keep(rows, parent, ended=False, owner=owner)
                elif token != rules.end and len(kept) < size:
                    kept.append(first + rank)
            if len(found[owner]) < size and length < rules.max_length and len(kept) == size:
                going_on += kept
                still.append(owner)
        if not still:
            break
        chosen = torch.tensor(going_on, device=device)
        scores = best.flatten()[chosen].view(len(still), size)
        state = select(step.state, flat_parents[chosen])
        rows = _Rows(grown.tokens[chosen], grown.log_probs[chosen], grown.weights[chosen])
        inputs = still
    return [sorted(outputs, key=lambda output: output.score, reverse=True) for outputs in found]


def _weights(attended: Any, so_far: Float[Tensor, "r s n"]) -> Float[Tensor, "r 1 n"]:
    """The weights of this step; NaN where the decoder has no attention."""
    if attended is None or attended.weights is None:
        return so_far.new_full((so_far.shape[0], 1, so_far.shape[2]), torch.nan)
    weights: Tensor = attended.weights
    return weights.float()
