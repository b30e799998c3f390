"""Sampling: a random token at each step, from the distribution of the model or its most likely part."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.decoders.protocol import Decoder
from regard.errors import OptionError
from regard.search.greedy import decode_by_choice
from regard.search.hypothesis import Hypothesis, Ranking, Rules

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
