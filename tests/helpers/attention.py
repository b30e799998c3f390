"""Every score, every alignment and every option of a call: what the property, gradient and masking tests go through."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from regard import align, score

QUERY_DIM, KEY_DIM, VALUE_DIM = 5, 7, 3
NUM_QUERIES, NUM_KEYS = 3, 11

# Scores that compare feature by feature need keys of the query's size.
SAME_SIZE = {"dot", "scaled_dot", "cosine", "function"}

MAKE_SCORE: dict[str, Callable[[], Callable[[Tensor, Tensor], Tensor]]] = {
    "additive": lambda: score.Additive(QUERY_DIM, KEY_DIM, 13),
    "concat": lambda: score.Concat(QUERY_DIM, KEY_DIM, 13),
    "context": lambda: score.Context(NUM_QUERIES, KEY_DIM),
    "context_tanh": lambda: score.Context(NUM_QUERIES, KEY_DIM, hidden=QUERY_DIM),
    "cosine": lambda: score.Cosine(2.0),
    "dot": lambda: score.dot,
    "equality": lambda: score.equality,
    "function": lambda: lambda query, key: -(query.unsqueeze(-2) - key.unsqueeze(-3)).square().sum(-1),
    "general": lambda: score.General(QUERY_DIM, KEY_DIM),
    "location": lambda: score.Location(QUERY_DIM, max_length=NUM_KEYS - 2),
    "mlp": lambda: score.MLP(QUERY_DIM, KEY_DIM, dims=(13, 2)),
    "prefix": lambda: score.prefix,
    "projected": lambda: score.Projected(QUERY_DIM, KEY_DIM, 13),
    "scaled_dot": lambda: score.scaled_dot,
}


def addressing() -> align.Addressing:
    gate, shift = torch.rand(NUM_QUERIES, 1), torch.rand(NUM_QUERIES, 3).softmax(-1)
    return align.Addressing(gate, shift, 1 + 3 * torch.rand(NUM_QUERIES, 1))


def local_predictive(query_dim: int) -> align.LocalPredictive:
    return align.LocalPredictive(query_dim, dim=2, window=2)


# From the number of features of the query that the alignment sees.
MAKE_ALIGN: dict[str, Callable[[int], align.Align]] = {
    "hard": lambda _: align.Hard(),
    "hard_gumbel": lambda _: align.Hard(temperature=0.7),
    "hard_most_likely": lambda _: align.Hard().eval(),
    "local_bell": lambda query_dim: align.LocalBell(query_dim, dim=2, window=2),
    "local_m": lambda _: align.LocalMonotonic(window=2),
    "local_p": local_predictive,
    "none": lambda _: align.none,
    "normalised": lambda _: align.normalised,
    "ntm": lambda _: addressing(),
    "softmax": lambda _: align.softmax,
    "sparsemax": lambda _: align.sparsemax,
    "spatial": lambda _: align.Spatial(window=1),
    "uniform": lambda _: align.uniform,
}


def goes_together(score_name: str, align_name: str) -> bool:
    """A plain average needs scores that are not negative; a centre cannot be predicted from codes."""
    compares_codes = score_name in ("equality", "prefix")
    return (
        compares_codes
        if align_name == "normalised"
        else not (align_name in ("local_bell", "local_p") and compares_codes)
    )


PAIRS = [(s, a) for s in MAKE_SCORE for a in MAKE_ALIGN if goes_together(s, a)]


def make(score_name: str, align_name: str, dtype: torch.dtype = torch.float32) -> tuple[nn.Module, align.Align]:
    """A fresh pair with weights of the dtype."""
    sees = KEY_DIM if score_name == "context" else QUERY_DIM
    made = MAKE_SCORE[score_name](), MAKE_ALIGN[align_name](sees)
    return tuple(part.to(dtype) if isinstance(part, nn.Module) else part for part in made)  # type: ignore[return-value]


def inputs(
    score_name: str, *lead: int, dtype: torch.dtype = torch.float32, num_keys: int = NUM_KEYS, device: str = "cpu"
) -> tuple[Tensor | None, Tensor, Tensor]:
    """A query, key and value that the score takes."""
    value = torch.randn(*lead, num_keys, VALUE_DIM, dtype=dtype, device=device)
    if score_name in ("equality", "prefix"):
        query = torch.randint(1, 3, (*lead, NUM_QUERIES, 2), device=device)
        return query, torch.randint(1, 3, (*lead, num_keys, 3 if score_name == "prefix" else 2), device=device), value
    key_dim = QUERY_DIM if score_name in SAME_SIZE else KEY_DIM
    key = torch.randn(*lead, num_keys, key_dim, dtype=dtype, device=device)
    if score_name.startswith("context"):
        return None, key, value
    return torch.randn(*lead, NUM_QUERIES, QUERY_DIM, dtype=dtype, device=device), key, value


MAKE_OPTIONS: dict[str, Callable[[torch.dtype], dict[str, Any]]] = {
    "plain": lambda _: {},
    "bias": lambda dtype: {"bias": torch.rand(NUM_QUERIES, NUM_KEYS, dtype=dtype)},  # not negative, for `normalised`
    "dropout": lambda _: {"dropout": 0.3},
    "grouped": lambda _: {"grouped": True},
}


def inputs_for(option: str, score_name: str, **options: Any) -> tuple[Tensor | None, Tensor, Tensor]:
    """A query, key and value that the score takes with an option: with groups, heads of queries share those of keys."""
    if option != "grouped":
        return inputs(score_name, 1, **options)
    query, key, value = inputs(score_name, 1, 4, **options)
    return query, key[:, :2], value[:, :2]
