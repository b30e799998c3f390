"""Scores: dot products, cosine, learned forms, and look-ups; additive.py has the scores that are small networks.

Any plain function (query, key) -> logits serves as a score too. interfaces.py defines the contract.
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from regard.attention.additive import MLP, Additive, Concat, TanhSum
from regard.attention.interfaces import Keys, Logits, Product, Queries, Score, shared, widen
from regard.errors import OptionError

__all__ = [
    "MLP",
    "SCORES",
    "Additive",
    "Concat",
    "Context",
    "Cosine",
    "Dot",
    "Equality",
    "General",
    "Location",
    "Prefix",
    "ScaledDot",
    "Score",
    "TanhSum",
    "codes",
    "cosine",
    "dot",
    "equality",
    "prefix",
    "scaled_dot",
]


class Dot(Product):
    """s' h (Luong et al. 2015, section 3.1)."""


class ScaledDot(Product):
    """s' h / sqrt(d) (Vaswani et al. 2017, section 3.2.1)."""

    def scale(self, dim: int) -> float:
        """Return 1 / sqrt(d), which keeps the logits of random vectors at unit variance."""
        return 1 / math.sqrt(max(1, dim))


class Cosine(Product):
    """strength * cos(s, h) (Graves et al. 2014, section 3.3.1: beta is the key strength).

    `strength` is a number or a tensor that broadcasts to (..., q, 1), one key strength per query. It is learned if it
    is an nn.Parameter.
    """

    strength: float | Tensor

    def __init__(self, strength: float | Tensor = 1.0) -> None:
        super().__init__()
        if isinstance(strength, Tensor) and not isinstance(strength, nn.Parameter):
            self.register_buffer("strength", strength, persistent=False)
        else:
            self.strength = strength

    def project_query(self, query: Queries) -> Queries:
        """Scale the query to a norm of `strength`."""
        # In half precision the norm may overflow, and the epsilon that protects from dividing by 0 underflows.
        return (functional.normalize(widen(query), dim=-1) * self.strength).to(query.dtype)

    def project_key(self, key: Keys) -> Keys:
        """Scale the key to a norm of 1."""
        return functional.normalize(widen(key), dim=-1).to(key.dtype)


class General(Product):
    """s' W h (Luong et al. 2015, section 3.1); query and key may differ in size."""

    def __init__(self, query_dim: int, key_dim: int) -> None:
        super().__init__()
        self.query_dim, self.key_dim = query_dim, key_dim
        self.layer = nn.Linear(key_dim, query_dim, bias=False)

    def project_key(self, key: Keys) -> Keys:
        """Compute W h, so that each later query is a plain product."""
        projected: Tensor = self.layer(key)
        return projected


class Context(Product):
    """A learned query for each output position; `attend` then takes query=None.

    Linear form: x_i' theta_j (Fleuret, Deep Learning 13.1). With `hidden`, the tanh form of hierarchical attention:
    u_i = tanh(W h_i + b), logit u_i' u_w (Yang et al. 2016, section 2.2). The values are the h_i in both forms.
    """

    def __init__(self, num_queries: int, key_dim: int, hidden: int | None = None) -> None:
        super().__init__()
        self.key_dim = key_dim
        dim = hidden or key_dim
        self.query = nn.Parameter(torch.randn(num_queries, dim) / math.sqrt(dim))
        self.layer = nn.Linear(key_dim, dim) if hidden else None

    def learned_query(self) -> Float[Tensor, "q d"] | None:
        """Return theta, or u_w."""
        return self.query

    def project_key(self, key: Keys) -> Keys:
        """Return x_i unchanged, or tanh(W h_i + b)."""
        return key if self.layer is None else torch.tanh(self.layer(key))


class Location(Score):
    """W s: one logit per source position, independent of the keys (Luong et al. 2015, section 3.1).

    Sources shorter than `max_length` use the first logits; positions from `max_length` on get weight 0.
    """

    position_free = False

    def __init__(self, query_dim: int, max_length: int) -> None:
        super().__init__()
        if max_length < 1:
            raise OptionError(f"Location needs at least one position; got max_length={max_length}.")
        self.query_dim, self.max_length = query_dim, max_length
        self.layer = nn.Linear(query_dim, max_length, bias=False)

    def project_query(self, query: Queries) -> Queries:
        """Compute the logits of all positions."""
        projected: Tensor = self.layer(query)
        return projected

    def project_key(self, key: Keys) -> Keys:
        """Replace each key by its position."""
        positions = torch.arange(key.shape[-2], device=key.device)
        return positions.unsqueeze(-1).expand(*key.shape[:-1], 1)

    def reference(self, query: Queries, key: Keys) -> Logits:
        """Look up the logit of each key's position; minus infinity from `max_length` on."""
        lead = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2])
        query = query.expand(*lead, *query.shape[-2:])
        positions = key.long().mT.expand(*query.shape[:-1], key.shape[-2])
        logits = query.gather(-1, positions.clamp(max=self.max_length - 1))
        return logits.masked_fill(positions >= self.max_length, -math.inf)


class Equality(Score):
    """1 where the key equals the query, else 0: `WHERE key = 'query'` as attention."""

    compares_codes = True
    differentiable = False

    def reference(self, query: Queries, key: Keys) -> Logits:
        """Compare all codes."""
        query, key = _same_width(query, key)
        return (query.unsqueeze(-2) == key.unsqueeze(-3)).all(-1).float()


class Prefix(Score):
    """1 where the key starts with the query, else 0: `WHERE key LIKE 'query%'` as attention."""

    compares_codes = True
    differentiable = False

    def reference(self, query: Queries, key: Keys) -> Logits:
        """Compare the codes up to the end of the query."""
        query, key = _same_width(query, key)
        query, key = query.unsqueeze(-2), key.unsqueeze(-3)
        return ((query == key) | (query == END)).all(-1).float()


END = 0
"""Code that follows the last character of a text and fills the rest of its row."""


def codes(texts: Sequence[str]) -> Int[Tensor, "n d"]:
    """Encode texts as rows of character codes padded with END: the keys and queries of `equality` and `prefix`."""
    width = max((len(text) for text in texts), default=0)
    rows = [[ord(character) for character in text] + [END] * (width - len(text)) for text in texts]
    return torch.tensor(rows, dtype=torch.long).reshape(len(rows), width)


def _same_width(query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
    width = max(query.shape[-1], key.shape[-1])
    return (
        functional.pad(query, (0, width - query.shape[-1]), value=END),
        functional.pad(key, (0, width - key.shape[-1]), value=END),
    )


dot = shared(Dot())
scaled_dot = shared(ScaledDot())
cosine = shared(Cosine())
equality = shared(Equality())
prefix = shared(Prefix())

SCORES: dict[str, type[Score]] = {
    "additive": Additive,
    "concat": Concat,
    "context": Context,
    "cosine": Cosine,
    "dot": Dot,
    "equality": Equality,
    "general": General,
    "location": Location,
    "mlp": MLP,
    "prefix": Prefix,
    "scaled_dot": ScaledDot,
}
