"""Greedy search: the most likely token at each step; and the loop that it shares with sampling."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.decoders.protocol import Decoder, select
from regard.search.hypothesis import Hypothesis, Ranking, Rules, check_finite


@torch.no_grad()
def greedy(
    decoder: Decoder,
    state: Any,
    rules: Rules,
    *,
    rows: int,
    device: torch.device | str,
    length_penalty: float = 1.0,
    coverage_penalty: float = 0.0,
    prefixes: Sequence[Sequence[int]] | None = None,
    limits: Sequence[int] | None = None,
) -> list[Hypothesis]:
    """Decode one output for each of the `rows` inputs of a state; the penalties only affect `Hypothesis.score`.

    `limits` has the maximum length of each output; without it, that of `rules` holds.
    """
    ranking = Ranking(length_penalty, coverage_penalty)
    return decode_by_choice(
        decoder,
        state,
        rules,
        lambda log_probs: log_probs.argmax(-1),
        ranking,
        rows=rows,
        device=device,
        prefixes=prefixes,
        limits=limits,
    )


def decode_by_choice(
    decoder: Decoder,
    state: Any,
    rules: Rules,
    choose: Callable[[Float[Tensor, "r y"]], Int[Tensor, "r"]],
    ranking: Ranking,
    *,
    rows: int,
    device: torch.device | str,
    prefixes: Sequence[Sequence[int]] | None,
    limits: Sequence[int] | None,
) -> list[Hypothesis]:
    """Decode one output per input, in which `choose` picks each token from the log-probabilities."""
    source_mask = decoder.source_mask(state)
    tokens = torch.full((rows, 1), rules.start, device=device)
    alive = list(range(rows))
    chosen: list[list[int]] = [[] for _ in alive]
    log_probs: list[list[float]] = [[] for _ in alive]
    weights: list[list[Tensor]] = [[] for _ in alive]
    limits = [rules.max_length] * rows if limits is None else limits
    for _ in range(max(limits, default=0) + 1):
        if not alive:
            break
        step = decoder.step(tokens[:, -1], state)
        allowed = step.logits.float().log_softmax(-1)
        rules.apply_(allowed, tokens, None if prefixes is None else [prefixes[i] for i in alive])
        new = choose(allowed)
        taken = allowed.gather(-1, new.unsqueeze(-1)).squeeze(-1).tolist()
        check_finite(taken)
        unfinished = []
        for row, (owner, token) in enumerate(zip(alive, new.tolist(), strict=True)):
            if taken[row] == -torch.inf or (token != rules.end and len(chosen[owner]) == limits[owner]):
                continue  # no token is possible, or the output is cut at its length limit: it has no end
            chosen[owner].append(token)
            log_probs[owner].append(taken[row])
            if step.attended is not None and step.attended.weights is not None:
                weights[owner].append(step.attended.weights[row, 0])
            if token != rules.end:
                unfinished.append(row)
        state, tokens = step.state, torch.cat([tokens, new.unsqueeze(1)], dim=1)
        if len(unfinished) < len(alive):
            kept = torch.tensor(unfinished, device=device, dtype=torch.long)
            alive = [alive[row] for row in unfinished]
            state, tokens = select(state, kept), tokens[kept]
    outputs = []
    for owner, output in enumerate(chosen):
        attention = torch.stack(weights[owner]) if weights[owner] else None
        exists = None if source_mask is None else source_mask[owner]
        outputs.append(
            Hypothesis(
                tokens=[token for token in output if token != rules.end],
                log_probs=log_probs[owner],
                score=ranking.score(torch.tensor(log_probs[owner]), attention, exists),
                finished=bool(output) and output[-1] == rules.end,
                weights=attention,
            )
        )
    return outputs
