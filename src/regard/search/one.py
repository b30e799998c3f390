"""One output per input, token by token: the most likely token, or a sampled one."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.decoders.protocol import Decoder, select
from regard.errors import OptionError
from regard.search.hypothesis import Hypothesis, Rules


@torch.no_grad()
def greedy(
    decoder: Decoder, encoded: Any, rules: Rules, *, prefixes: Sequence[Sequence[int]] | None = None
) -> list[Hypothesis]:
    """The most likely token at each step."""
    return _one_by_one(decoder, encoded, rules, prefixes, lambda log_probs: log_probs.argmax(-1))


@torch.no_grad()
def sample(
    decoder: Decoder,
    encoded: Any,
    rules: Rules,
    *,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    generator: torch.Generator | None = None,
    prefixes: Sequence[Sequence[int]] | None = None,
) -> list[Hypothesis]:
    """A token drawn at each step, from the `top_k` most likely or those that make up `top_p`, at a temperature."""
    if temperature <= 0 or top_k < 0 or not 0 < top_p <= 1:
        raise OptionError(
            "Sampling needs temperature > 0, top_k >= 0 and 0 < top_p <= 1; "
            f"got {temperature}, {top_k} and {top_p}. For the most likely token, decode greedily."
        )

    def draw(log_probs: Tensor) -> Tensor:
        logits = _narrow(log_probs / temperature, top_k, top_p)
        noise = -torch.empty_like(logits).exponential_(generator=generator).log()
        return (logits + noise).argmax(-1)

    return _one_by_one(decoder, encoded, rules, prefixes, draw)


def _narrow(logits: Float[Tensor, "r y"], top_k: int, top_p: float) -> Float[Tensor, "r y"]:
    if top_k:
        least = logits.topk(min(top_k, logits.shape[-1])).values[:, -1:]
        logits = logits.masked_fill(logits < least, -torch.inf)
    if top_p < 1:
        ranked, order = logits.softmax(-1).sort(descending=True)
        # A token stays if what is more likely than it does not fill top_p already.
        beyond = ranked.cumsum(-1) - ranked >= top_p
        logits = logits.masked_fill(beyond.gather(-1, order.argsort(-1)), -torch.inf)
    return logits


def _one_by_one(
    decoder: Decoder,
    encoded: Any,
    rules: Rules,
    prefixes: Sequence[Sequence[int]] | None,
    choose: Callable[[Float[Tensor, "r y"]], Int[Tensor, "r"]],
) -> list[Hypothesis]:
    batch, device = encoded.states.shape[0], encoded.states.device
    state = decoder.start(encoded)
    tokens = torch.full((batch, 1), rules.start, device=device)
    alive = list(range(batch))
    chosen: list[list[int]] = [[] for _ in alive]
    log_probs: list[list[float]] = [[] for _ in alive]
    weights: list[list[Tensor]] = [[] for _ in alive]
    for _ in range(rules.max_length + 1):
        if not alive:
            break
        step = decoder.step(tokens[:, -1], state)
        ruled = step.logits.float().log_softmax(-1)
        rules.apply_(ruled, tokens, None if prefixes is None else [prefixes[i] for i in alive])
        new = choose(ruled)
        taken = ruled.gather(-1, new.unsqueeze(-1)).squeeze(-1).tolist()
        going_on = []
        for row, (sentence, token) in enumerate(zip(alive, new.tolist(), strict=True)):
            if token != rules.end and len(chosen[sentence]) == rules.max_length:
                continue  # cut, without an end
            chosen[sentence].append(token)
            log_probs[sentence].append(taken[row])
            if step.attended is not None and step.attended.weights is not None:
                weights[sentence].append(step.attended.weights[row, 0])
            if token != rules.end:
                going_on.append(row)
        state, tokens = step.state, torch.cat([tokens, new.unsqueeze(1)], dim=1)
        if len(going_on) < len(alive):
            rows = torch.tensor(going_on, device=device, dtype=torch.long)
            alive = [alive[row] for row in going_on]
            state, tokens = select(state, rows), tokens[rows]
    return [
        Hypothesis(
            tokens=[token for token in output if token != rules.end],
            log_probs=log_probs[index],
            score=sum(log_probs[index], start=0.0),
            finished=bool(output) and output[-1] == rules.end,
            weights=torch.stack(weights[index]) if weights[index] else None,
        )
        for index, output in enumerate(chosen)
    ]
