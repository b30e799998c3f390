"""Greedy search and sampling: one token is chosen at each step, the most likely one or a random one."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.decoders.protocol import Decoder, select
from regard.search.hypothesis import Hypothesis, Ranking, Rules, check_finite
from regard.search.options import Search

MIN_TEMPERATURE = 1e-30
"""Lower bound on the temperature: below it logits would overflow, and sampling is greedy anyway."""

Pick = Callable[[Float[Tensor, "r y"]], Int[Tensor, "r"]]
"""Picks the next token of each row from the log-probabilities."""


@torch.no_grad()
def choose(
    decoder: Decoder, state: Any, rules: Rules, options: Search, *, num_inputs: int, device: torch.device | str
) -> list[Hypothesis]:
    """Decode one output for each of the `num_inputs` inputs: a sample if `options.sample`, otherwise greedily."""
    pick = sampling(options, device) if options.sample else most_likely
    source_mask, limits = decoder.source_mask(state), rules.limits_of(num_inputs)
    tokens = torch.full((num_inputs, 1), rules.start, device=device)
    alive = list(range(num_inputs))
    chosen: list[list[int]] = [[] for _ in alive]
    log_probs: list[list[float]] = [[] for _ in alive]
    weights: list[list[Tensor]] = [[] for _ in alive]
    for _ in range(max(limits, default=0) + 1):
        if not alive:
            break
        step = decoder.step(tokens[:, -1], state)
        allowed = step.logits.float().log_softmax(-1)
        rules.apply_(allowed, tokens, alive)
        new = pick(allowed)
        taken = allowed.gather(-1, new.unsqueeze(-1)).squeeze(-1).tolist()
        check_finite(taken)
        unfinished = []
        for row, (owner, token) in enumerate(zip(alive, new.tolist(), strict=True)):
            if taken[row] == -torch.inf or (token != rules.end and len(chosen[owner]) == limits[owner]):
                continue  # no token is possible, or the output is cut at its length limit: it has no end
            chosen[owner].append(token)
            log_probs[owner].append(taken[row])
            if step.attended is not None and step.attended.weights is not None:
                weights[owner].append(step.attended.weights[row, 0].float())
            if token != rules.end:
                unfinished.append(row)
        state, tokens = step.state, torch.cat([tokens, new.unsqueeze(1)], dim=1)
        if len(unfinished) < len(alive):
            kept = torch.tensor(unfinished, device=device, dtype=torch.long)
            alive = [alive[row] for row in unfinished]
            state, tokens = select(state, kept), tokens[kept]
    ranking, outputs = Ranking(options.length_penalty, options.coverage_penalty), []
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


def most_likely(log_probs: Float[Tensor, "r y"]) -> Int[Tensor, "r"]:
    """Pick the most likely token."""
    return log_probs.argmax(-1)


def sampling(options: Search, device: torch.device | str) -> Pick:
    """Return what draws a token, with logits divided by `options.temperature`.

    It is drawn from the `options.top_k` most likely ones (0 for all), of which those whose probabilities add up to
    `options.top_p` are kept.
    """
    generator = None if options.seed is None else torch.Generator(device).manual_seed(options.seed)

    def draw(log_probs: Tensor) -> Tensor:
        logits = truncated(log_probs / max(options.temperature, MIN_TEMPERATURE), options.top_k, options.top_p)
        noise = -torch.empty_like(logits).exponential_(generator=generator).log()
        return (logits + noise).argmax(-1)

    return draw


def truncated(logits: Float[Tensor, "r y"], top_k: int, top_p: float) -> Float[Tensor, "r y"]:
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
