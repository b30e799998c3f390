"""Scores: how well does each key match each query? Dot products, cosine, learned forms, small networks, and look-ups.

A score works in two steps, so that a memory is projected once and queried many times:

    logits = score.compare(score.project_query(query), score.project_key(key))

Any plain function (query, key) -> logits serves as a score too. Each score declares its properties (position_free,
differentiable), and the property tests read them.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from torch.nn import functional

from regard.arguments import checked
from regard.config import PositiveInt
from regard.errors import DtypeError, OptionError
from regard.kernels.additive import MAX_FEATURES_FOR_FORMULA, additive_logits
from regard.kernels.hoisted import Hoisted
from regard.kernels.numerics import widen
from regard.kernels.pairs import pairwise_logits, pairwise_logits_reference

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
    "Product",
    "Projected",
    "ScaledDot",
    "Score",
    "ScoreFunction",
    "TanhSum",
    "codes",
    "cosine",
    "dot",
    "equality",
    "prefix",
    "scaled_dot",
]


def __dir__() -> list[str]:
    return __all__


# The number of features, "_", changes with the projection.
Queries = Shaped[Tensor, "... q _"]
Keys = Shaped[Tensor, "... k _"]
Logits = Shaped[Tensor, "... q k"]
Form = Literal["product", "additive", "pairs"]
"""scale query' key; v' tanh(query + key); a network over query + key, computed block by block."""


class Score(nn.Module):
    """Base class of all scores: how well does each key match each query?

    Subclasses define `reference`, the formula on projected queries and keys; everything else has a default. `compare`
    must give the same logits and may compute them in a faster way.
    """

    compares_codes: bool = False
    """Whether query and key are integer codes (see `codes`) rather than features."""
    position_free: bool = True
    """Whether permuting the keys only permutes the logits."""
    is_shared: bool = False
    """Whether this object is one of the package's own, such as `score.dot`, which models copy."""
    differentiable: bool = True
    """Whether gradients reach the query and the key."""
    form: ClassVar[Form | None] = None
    """What the logits are, for the kernels that compute this; None if `reference` alone says it.

    A subclass with a `reference` or `compare` of its own has the form None, unless it names one.
    """

    query_dim: int | None = None
    """Number of query features; None accepts any number."""
    key_dim: int | None = None
    """Number of key features; None accepts any number."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "form" not in vars(cls) and not {"reference", "compare"}.isdisjoint(vars(cls)):
            cls.form = None

    def learned_query(self) -> Float[Tensor, "q d"] | None:
        """The queries of a score that learns them, in which case `attend` takes query=None; otherwise None."""
        return None

    def project_query(self, query: Queries) -> Queries:
        """Transform the queries, once per query."""
        return query

    def project_key(self, key: Keys) -> Keys:
        """Transform the keys, once per memory."""
        return key

    def reference(self, query: Queries, key: Keys) -> Logits:
        """Compute the logits of projected queries and keys by the plain formula."""
        raise TypeError(f"{type(self).__name__} must define reference(query, key), which returns (..., q, k) logits.")

    def compare(self, query: Queries, key: Keys) -> Logits:
        """Compute the logits of projected queries and keys; by default with `reference`."""
        return self.reference(query, key)

    def forward(self, query: Queries, key: Keys) -> Logits:
        """Compute the logits of unprojected queries and keys."""
        return self.compare(self.project_query(query), self.project_key(key))

    def shape_error(self, query_size: int, key_size: int) -> str:
        """The message of the error where queries and projected keys of these sizes do not fit; "" if they fit."""
        return ""


class Product(Score):
    """A score whose logits are one matrix product of the projections, as torch's fused attention requires."""

    form = "product"

    def scale(self, dim: int) -> float:
        """Return the factor on the product of two vectors of `dim` features."""
        return 1.0

    def reference(self, query: Queries, key: Keys) -> Logits:
        """Compute scale * sum_d query_d key_d."""
        return (query.unsqueeze(-2) * key.unsqueeze(-3)).sum(-1) * self.scale(query.shape[-1])

    def compare(self, query: Queries, key: Keys) -> Logits:
        """Compute scale * query key' as a matrix product."""
        if self.form is None:
            return self.reference(query, key)
        return query * self.scale(query.shape[-1]) @ key.mT

    def shape_error(self, query_size: int, key_size: int) -> str:
        """Say that query and projected key differ in size."""
        if query_size == key_size:
            return ""
        return (
            f"{type(self).__name__} multiplies a query with a key feature by feature, so both need one size; got "
            f"{query_size} and {key_size}. General(query_dim={query_size}, key_dim={key_size}) joins different sizes, "
            "and so does Additive."
        )


class ScoreFunction(Score):
    """A plain function of (query, key) as a score; it returns (..., q, k) logits."""

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        if not callable(function):
            raise OptionError(f"A score must be a function (query, key) -> logits; got {function!r:.80}.")
        self.function = function

    def reference(self, query: Queries, key: Keys) -> Logits:
        """Call the function."""
        return self.function(query, key)


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

    @checked
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

    @checked
    def __init__(self, query_dim: PositiveInt, key_dim: PositiveInt) -> None:
        super().__init__()
        self.query_dim, self.key_dim = query_dim, key_dim
        self.layer = nn.Linear(key_dim, query_dim, bias=False)

    def project_key(self, key: Keys) -> Keys:
        """Compute W h, so that each later query is a plain product."""
        projected: Tensor = self.layer(key)
        return projected


class Projected(Product):
    """(W s)' (W' h): queries and keys are projected to `dim` features each (Fleuret, Deep Learning 13.1).

    The product of the two matrices is a General of rank `dim`. Values are not projected: in `attend(x, x)` they are x.
    """

    def __init__(self, query_dim: int, key_dim: int, dim: int) -> None:
        super().__init__()
        self.query_dim, self.key_dim = query_dim, key_dim
        self.query_layer = Hoisted(query_dim, dim, bias=False)
        self.key_layer = nn.Linear(key_dim, dim, bias=False)

    def project_query(self, query: Queries) -> Queries:
        """Compute W s."""
        projected: Tensor = self.query_layer(query)
        return projected

    def project_key(self, key: Keys) -> Keys:
        """Compute W' h."""
        projected: Tensor = self.key_layer(key)
        return projected

    def shape_error(self, query_size: int, key_size: int) -> str:
        """Say that another score has projected the keys."""
        return _projected_by_another(self, self.key_layer.out_features, key_size)


def _projected_by_another(score: Score, own: int, size: int) -> str:
    """The message of an error for the keys of a memory that were projected to another size than `own`; "" if not."""
    if own == size:
        return ""
    return (
        f"This {type(score).__name__} compares {own} features, but the keys of this memory were projected to {size}. "
        "Use the attention whose `remember` created the memory."
    )


class Context(Product):
    """A learned query for each output position; `attend` then takes query=None.

    Linear form: x_i' theta_j (Fleuret, Deep Learning 13.1). With `hidden`, the tanh form of hierarchical attention:
    u_i = tanh(W h_i + b), logit u_i' u_w (Yang et al. 2016, section 2.2). The values are the h_i in both forms.
    """

    @checked
    def __init__(self, num_queries: PositiveInt, key_dim: PositiveInt, hidden: PositiveInt | None = None) -> None:
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


class TanhSum(Score):
    """v' tanh(query + key) on projected queries and keys: the base of Additive and Concat."""

    form = "additive"

    @checked
    def __init__(self, query_dim: PositiveInt, key_dim: PositiveInt, dim: PositiveInt) -> None:
        super().__init__()
        self.query_dim, self.key_dim = query_dim, key_dim
        self.direction = nn.Parameter(torch.empty(dim).uniform_(-1, 1) / math.sqrt(dim))

    def reference(self, query: Queries, key: Keys) -> Logits:
        """Compute v' tanh(query + key) with the features of all pairs in memory."""
        return (query.unsqueeze(-2) + key.unsqueeze(-3)).tanh_() @ self.direction.to(query.dtype)

    def compare(self, query: Queries, key: Keys) -> Logits:
        """Compute v' tanh(query + key) in bounded memory."""
        if self.form is None or query.numel() * key.shape[-2] <= MAX_FEATURES_FOR_FORMULA:
            return self.reference(query, key)
        return additive_logits(query, key, self.direction.to(query.dtype))

    def shape_error(self, query_size: int, key_size: int) -> str:
        """Say that another score has projected the keys."""
        return _projected_by_another(self, len(self.direction), key_size)


class Additive(TanhSum):
    """v' tanh(W s + U h) (Bahdanau et al. 2015, appendix A.1.2)."""

    @checked
    def __init__(self, query_dim: PositiveInt, key_dim: PositiveInt, dim: PositiveInt) -> None:
        super().__init__(query_dim, key_dim, dim)
        self.query_layer = Hoisted(query_dim, dim, bias=False)
        self.key_layer = nn.Linear(key_dim, dim, bias=False)

    def project_query(self, query: Queries) -> Queries:
        """Compute W s."""
        projected: Tensor = self.query_layer(query)
        return projected

    def project_key(self, key: Keys) -> Keys:
        """Compute U h."""
        projected: Tensor = self.key_layer(key)
        return projected


class Concat(TanhSum):
    """v' tanh(W [s; h]) (Luong et al. 2015, section 3.1): Additive with the two matrices stored as one."""

    @checked
    def __init__(self, query_dim: PositiveInt, key_dim: PositiveInt, dim: PositiveInt) -> None:
        super().__init__(query_dim, key_dim, dim)
        self.layer = nn.Linear(query_dim + key_dim, dim, bias=False)

    def project_query(self, query: Queries) -> Queries:
        """Multiply s with its columns of W."""
        return functional.linear(query, self.layer.weight[:, : self.query_dim])

    def project_key(self, key: Keys) -> Keys:
        """Multiply h with its columns of W."""
        return functional.linear(key, self.layer.weight[:, self.query_dim :])


class MLP(Score):
    """a(s, h) as a multi-layer perceptron on [s; h] (Fleuret, Deep Learning 13.1).

    The first layer is a sum of a term in s and a term in h, so each is computed once per query or key; the other
    layers run on every pair. The activation must be deterministic, since the backward pass computes it again.
    """

    form = "pairs"

    @checked
    def __init__(
        self,
        query_dim: PositiveInt,
        key_dim: PositiveInt,
        dims: Sequence[PositiveInt] = (64, 32),
        activation: Callable[[Tensor], Tensor] = torch.tanh,
    ) -> None:
        super().__init__()
        dims = list(dims)
        if not dims:
            raise OptionError("MLP needs at least one hidden layer, e.g. dims=(64,); got dims=().")
        if not callable(activation):
            raise OptionError(f"The activation of MLP must be a function of a tensor; got {activation!r:.80}.")
        if isinstance(activation, nn.Module) and not _is_deterministic(activation):
            raise OptionError(
                "The activation of MLP is computed again in the backward pass, so it must have no parameters and draw "
                f"no random numbers; got {activation}."
            )
        self.query_dim, self.key_dim, self.dims = query_dim, key_dim, tuple(dims)
        self.first = nn.Linear(query_dim + key_dim, dims[0])
        self.layers = nn.ModuleList(nn.Linear(*sizes) for sizes in zip(dims, [*dims[1:], 1], strict=True))
        self.activation = activation

    def project_query(self, query: Queries) -> Queries:
        """Multiply s with its columns of the first layer, and add the bias."""
        return functional.linear(query, self.first.weight[:, : self.query_dim], self.first.bias)

    def project_key(self, key: Keys) -> Keys:
        """Multiply h with its columns of the first layer."""
        return functional.linear(key, self.first.weight[:, self.query_dim :])

    def reference(self, query: Queries, key: Keys) -> Logits:
        """Run the network with the features of all pairs in memory."""
        return pairwise_logits_reference(query, key, self._after_first, *self._parameters_as(query.dtype))

    def compare(self, query: Queries, key: Keys) -> Logits:
        """Run the network block by block, in bounded memory; small calls that torch compiles, as one graph."""
        is_small = query.numel() * key.shape[-2] <= MAX_FEATURES_FOR_FORMULA
        if self.form is None or (is_small and torch.compiler.is_compiling()):
            return self.reference(query, key)
        # Each layer keeps its inputs and their activations.
        width = 2 * sum(self.dims)
        return pairwise_logits(query, key, self._after_first, *self._parameters_as(query.dtype), width=width)

    def _parameters_as(self, dtype: torch.dtype) -> list[Tensor]:
        return [parameter.to(dtype) for parameter in self.layers.parameters()]

    def _after_first(self, features: Tensor, *parameters: Tensor) -> Tensor:
        for weight, bias in zip(parameters[::2], parameters[1::2], strict=True):
            features = functional.linear(self.activation(features), weight, bias)
        return features.squeeze(-1)


def _is_deterministic(activation: nn.Module) -> bool:
    random = (nn.Dropout, nn.AlphaDropout, nn.FeatureAlphaDropout, nn.RReLU)
    return not list(activation.parameters()) and not any(isinstance(part, random) for part in activation.modules())


class Location(Score):
    """W s: one logit per source position, independent of the keys (Luong et al. 2015, section 3.1).

    Sources shorter than `max_length` use the first logits; positions from `max_length` on get weight 0.
    """

    position_free = False

    @checked
    def __init__(self, query_dim: PositiveInt, max_length: PositiveInt) -> None:
        super().__init__()
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
    if isinstance(texts, str) or not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise DtypeError(f"codes takes a list of texts; got {texts!r:.80}.")
    width = max((len(text) for text in texts), default=0)
    rows = [[ord(character) for character in text] + [END] * (width - len(text)) for text in texts]
    return torch.tensor(rows, dtype=torch.long).reshape(len(rows), width)


def _same_width(query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
    width = max(query.shape[-1], key.shape[-1])
    return (
        functional.pad(query, (0, width - query.shape[-1]), value=END),
        functional.pad(key, (0, width - key.shape[-1]), value=END),
    )


dot = Dot()
scaled_dot = ScaledDot()
cosine = Cosine()
equality = Equality()
prefix = Prefix()
for _score in (dot, scaled_dot, cosine, equality, prefix):
    _score.is_shared = True

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
    "projected": Projected,
    "scaled_dot": ScaledDot,
}
