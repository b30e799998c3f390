"""Greedy search and sampling: one token is chosen at each step, the most likely one or a random one."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.decoders.protocol import Decoder, select
from regard.errors import OptionError
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


MIN_TEMPERATURE = 1e-30
"""Lower temperatures are taken for this one, at which the most likely token is certain: logits stay finite."""


@torch.no_grad()
def sample(
    decoder: Decoder,
    state: Any,
    rules: Rules,
    *,
    rows: int,
    device: torch.device | str,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    generator: torch.Generator | None = None,
    length_penalty: float = 1.0,
    coverage_penalty: float = 0.0,
    prefixes: Sequence[Sequence[int]] | None = None,
    limits: Sequence[int] | None = None,
) -> list[Hypothesis]:
    """Draw one output for each of the `rows` inputs of a state.

    Each token is drawn from the `top_k` most likely ones (0 for all), of which those whose probabilities add up to
    `top_p` are kept, with logits divided by `temperature`. The penalties only affect `Hypothesis.score`.
    """
    if temperature <= 0 or top_k < 0 or not 0 < top_p <= 1:
        raise OptionError(
            "Sampling requires temperature > 0, top_k >= 0 and 0 < top_p <= 1; "
            f"got {temperature}, {top_k} and {top_p}. For the most likely token, use greedy search."
        )

    def draw(log_probs: Tensor) -> Tensor:
        logits = _truncate(log_probs / max(temperature, MIN_TEMPERATURE), top_k, top_p)
        noise = -torch.empty_like(logits).exponential_(generator=generator).log()
        return (logits + noise).argmax(-1)

    ranking = Ranking(length_penalty, coverage_penalty)
    return decode_by_choice(
        decoder, state, rules, draw, ranking, rows=rows, device=device, prefixes=prefixes, limits=limits
    )


def _truncate(logits: Float[Tensor, "r y"], top_k: int, top_p: float) -> Float[Tensor, "r y"]:
    """Set the logits of all but the most likely tokens to minus infinity."""
    if top_k:
        least = logits.topk(min(top_k, logits.shape[-1])).values[:, -1:]
        logits = logits.masked_fill(logits < least, -torch.inf)
    if top_p < 1:
        ranked, order = logits.softmax(-1).sort(descending=True)
        # A token is kept if the more likely ones do not add up to top_p already.
        beyond = ranked.cumsum(-1) - ranked >= top_p
        logits = logits.masked_fill(beyond.gather(-1, order.argsort(-1)), -torch.inf)
    return logits
