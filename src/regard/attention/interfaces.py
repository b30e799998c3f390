"""The contracts of attention: a Score gives logits, an Align turns them into a Focus, a call returns an Attended.

A score works in two steps, so that a memory is projected once and queried many times:

    logits = score.compare(score.project_query(query), score.project_key(key))

An alignment may first restrict each query to a window of keys, and then turns logits into weights. Each score and each
alignment declares its properties (differentiable, normalised, equivariant), and the property tests read them.
"""

import math
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, field
from typing import Any, TypeGuard, TypeVar

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from regard.errors import ShapeError

# The number of features, "_", changes with the projection.
Queries = Shaped[Tensor, "... q _"]
Keys = Shaped[Tensor, "... k _"]
Logits = Shaped[Tensor, "... q k"]
Mask = Bool[Tensor, "... k"] | None
Shareable = TypeVar("Shareable", bound="Score | Align")
Soft = bool | Bool[Tensor, "b"]
"""Whether hard attention reads softly in this call: for the whole batch, or for each of its rows."""


@dataclass(frozen=True)
class Attended:
    """The result of attention: unpack it as `context, weights = attend(...)`, or read its fields."""

    context: Float[Tensor, "... q v"]
    weights: Float[Tensor, "... q k"] | None = None
    """The attention weights, if the call asked for them."""
    log_prob: Float[Tensor, "... q"] | None = None
    """The log-probability of a sampled choice."""
    state: Any = None
    """What the alignment needs at the next step."""
    extras: dict[str, Any] = field(default_factory=dict)
    """Further results of the alignment, such as a predicted centre, a chosen index or an entropy."""

    def __iter__(self) -> Iterator[Any]:
        return iter((self.context, self.weights))


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
    has_kernel: bool = False
    """Whether `compare` is a kernel that avoids the (..., q, k, d) tensor, so that kernel="fused" accepts it."""

    query_dim: int | None = None
    """Number of query features; None accepts any number."""
    key_dim: int | None = None
    """Number of key features; None accepts any number."""

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

    def read(
        self, query: Queries, key: Keys, values: Float[Tensor, "... k v"], mask: Bool[Tensor, "..."] | None
    ) -> Float[Tensor, "... q v"] | None:
        """Compute softmax(compare(query, key)) @ values in one kernel; None if there is none for these tensors."""
        return None

    def prefers_read(self, query: Queries, key: Keys) -> bool:
        """Whether `read` is faster than separate steps for these tensors."""
        return False

    def forward(self, query: Queries, key: Keys) -> Logits:
        """Compute the logits of unprojected queries and keys."""
        return self.compare(self.project_query(query), self.project_key(key))

    def check_key(self, size: int) -> None:
        """Raise a ShapeError if keys of this size do not fit the score."""
        if self.key_dim not in (None, size):
            raise ShapeError(
                f"This {type(self).__name__} takes keys of {self.key_dim} features; these have {size}. "
                f"Create it with key_dim={size}."
            )

    def check_query(self, size: int, projected_key_size: int) -> None:
        """Raise a ShapeError if queries of this size do not fit the score or the projected keys."""
        if self.query_dim not in (None, size):
            raise ShapeError(
                f"This {type(self).__name__} takes queries of {self.query_dim} features; these have {size}. "
                f"Create it with query_dim={size}."
            )


class Product(Score):
    """A score whose logits are one matrix product of the projections, as torch's fused attention requires."""

    def scale(self, dim: int) -> float:
        """Return the factor on the product of two vectors of `dim` features."""
        return 1.0

    def reference(self, query: Queries, key: Keys) -> Logits:
        """Compute scale * sum_d query_d key_d."""
        return (query.unsqueeze(-2) * key.unsqueeze(-3)).sum(-1) * self.scale(query.shape[-1])

    def compare(self, query: Queries, key: Keys) -> Logits:
        """Compute scale * query key' as a matrix product."""
        if type(self).reference is not Product.reference:
            return self.reference(query, key)
        return query * self.scale(query.shape[-1]) @ key.mT

    def check_query(self, size: int, projected_key_size: int) -> None:
        """Raise a ShapeError if query and projected key differ in size."""
        super().check_query(size, projected_key_size)
        if size != projected_key_size:
            raise ShapeError(
                f"{type(self).__name__} multiplies a query with a key feature by feature, so both need one size; got "
                f"{size} and {projected_key_size}. General(query_dim={size}, key_dim={projected_key_size}) joins "
                "different sizes, and so does Additive."
            )


def is_plain_product(score: Score) -> TypeGuard[Product]:
    """Whether a score is a matrix product and nothing else, so that kernels for products can compute it."""
    kind = type(score)
    return isinstance(score, Product) and kind.compare is Product.compare and kind.reference is Product.reference


class ScoreFunction(Score):
    """A plain function of (query, key) as a score; it returns (..., q, k) logits."""

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def reference(self, query: Queries, key: Keys) -> Logits:
        """Call the function."""
        return self.function(query, key)


@dataclass(frozen=True)
class Window:
    """The keys that each query sees: their indices, and which of them exist (the others lie beyond an edge)."""

    index: Int[Tensor, "*b q w"]
    inside: Bool[Tensor, "*b q w"]
    offset: Float[Tensor, "*b q w"]
    """Distance of each position from the centre; gradients flow to a predicted centre through it."""
    centre: Float[Tensor, "*b q"]

    @classmethod
    def around(cls, centre: Float[Tensor, "*b q"], radius: int, num_keys: int) -> "Window":
        """Create the window of the positions within `radius` of a centre, counted from 0."""
        first = (centre.detach() - radius).ceil().long()
        index = first.unsqueeze(-1) + torch.arange(2 * radius + 1, device=centre.device)
        offset = index - centre.unsqueeze(-1)
        inside = (offset.detach().abs() <= radius) & (index >= 0) & (index < num_keys)
        return cls(index.clamp(0, num_keys - 1), inside, offset, centre)

    def allowed(self, mask: Mask, num_keys: int) -> Bool[Tensor, "*b q w"]:
        """Return which positions of the window exist and may be attended to."""
        if mask is None:
            return self.inside
        return self.inside & mask.expand(*self.index.shape[:-1], num_keys).gather(-1, self.index)

    def spread(self, weights: Float[Tensor, "*b q w"], num_keys: int) -> Float[Tensor, "*b q k"]:
        """Turn the weights of the window into weights of all keys, 0 outside."""
        everywhere = weights.new_zeros(*weights.shape[:-1], num_keys)
        return everywhere.scatter_add(-1, self.index, weights.masked_fill(~self.inside, 0))


@dataclass(frozen=True)
class Focus:
    """Where each query looks: the weights of the keys, or the index of the one chosen key."""

    weights: Float[Tensor, "... q k"] | None = None
    index: Int[Tensor, "... q"] | None = None
    """The chosen key; -1 where no key may be attended to."""
    always: bool = False
    """Whether every query has a key to choose, so that `index` is never -1."""
    log_prob: Float[Tensor, "... q"] | None = None
    state: Any = None
    extras: dict[str, Any] = field(default_factory=dict)

    def read(self, values: Float[Tensor, "... k v"]) -> Float[Tensor, "... q v"]:
        """Return the weighted average of the values, or the chosen value."""
        if self.index is None:
            return self.all_weights(values.shape[-2]) @ values
        if self.always:
            return take_rows(values, self.index)
        return take_rows(values, self.index.clamp_min(0)).masked_fill(self.index.unsqueeze(-1) < 0, 0)

    def all_weights(self, num_keys: int) -> Float[Tensor, "... q k"]:
        """Return the weights, one-hot where one key was chosen."""
        if self.weights is not None:
            return self.weights
        if self.index is None:
            raise TypeError("A Focus needs weights or an index.")
        return (self.index.unsqueeze(-1) == torch.arange(num_keys, device=self.index.device)).float()


class Align(nn.Module):
    """Base class of all alignments: turns logits into a focus. Subclasses define `weigh`.

    A plain function (logits, mask) -> weights serves as an alignment too.
    """

    is_shared: bool = False
    """Whether this object is one of the package's own, such as `align.softmax`, which models copy."""

    normalised: bool = True
    """Weights are not negative and sum to 1, or to 0 where nothing may be attended to."""
    equivariant: bool = True
    """Permuting the keys permutes the weights."""
    differentiable: bool = True
    """Gradients reach the logits through the context."""
    uses_scores: bool = True
    """Whether the focus depends on the logits; otherwise they are not computed."""

    def look(self, query: Shaped[Tensor, "... q d"], num_keys: int, mask: Mask, state: Any) -> Window | None:
        """Return the window of keys that each query sees; None if it sees all keys."""
        return None

    def start_at(self, step: int) -> Any:
        """Return the state after `step` queries, for an alignment that counts them; otherwise None."""
        return None

    def state_after(self, weights: Float[Tensor, "... q k"], state: Any) -> Any:
        """Return the state after a focus with these weights; None for an alignment without a state."""
        return None

    def weigh(
        self, logits: Float[Tensor, "... q k"], allowed: Mask, state: Any, window: Window | None, *, soft: Soft = False
    ) -> Focus:
        """Turn logits into a focus.

        `allowed` is the mask, if there is one; its True entries may be attended to. `state` is the state of the last
        focus. With a window, each query has its own keys: logits are (..., q, 1, w). `soft` asks hard attention to
        read softly in this call; other alignments ignore it.
        """
        raise TypeError(f"{type(self).__name__} must define weigh(logits, allowed, state, window, *, soft=False).")


class AlignFunction(Align):
    """A plain function (logits, mask) -> weights as an alignment; `mask` is None where everything is allowed.

    Its properties are unknown, so it declares the weakest ones. Masked keys get weight 0 in any case.
    """

    normalised = False
    equivariant = False

    def __init__(self, function: Callable[[Tensor, Tensor | None], Tensor]) -> None:
        super().__init__()
        self.function = function

    def weigh(
        self, logits: Float[Tensor, "... q k"], allowed: Mask, state: Any, window: Window | None, *, soft: Soft = False
    ) -> Focus:
        """Call the function and set the weights of masked keys to 0."""
        weights = self.function(logits, allowed)
        name = getattr(self.function, "__name__", type(self.function).__name__)
        if not isinstance(weights, Tensor) or not weights.is_floating_point() or weights.shape != logits.shape:
            given = f"{weights.dtype} {tuple(weights.shape)}" if isinstance(weights, Tensor) else type(weights).__name__
            raise ShapeError(
                f"The alignment {name} returned {given} for logits {tuple(logits.shape)}; it must return weights of "
                "that shape. For a state or a window, write a subclass of regard.align.Align that defines weigh(...)."
            )
        return Focus(weights if allowed is None else weights.masked_fill(~allowed, 0))


def masked_softmax(logits: Float[Tensor, "... q k"], allowed: Mask) -> Float[Tensor, "... q k"]:
    """Softmax over the allowed keys; exactly 0 elsewhere, and in every row where nothing is allowed."""
    if allowed is not None:
        logits = logits.masked_fill(~allowed, -math.inf)
    closed = logits.detach().amax(-1, keepdim=True) == -math.inf
    return torch.softmax(logits.masked_fill(closed, 0), dim=-1).masked_fill(closed, 0)


def take_rows(table: Shaped[Tensor, "*b k d"], index: Int[Tensor, "..."]) -> Shaped[Tensor, "... d"]:
    """Return table[b, index[b, ...]] for an index (*b, ...), touching only those rows."""
    lead, (num_rows, width) = table.shape[:-2], table.shape[-2:]
    if table.is_cuda or not table.is_contiguous():
        # One launch on a GPU; and an expanded or transposed table need not be copied.
        places = index.flatten(len(lead)).unsqueeze(-1)
        return table.gather(-2, places.expand(*places.shape[:-1], width)).view(*index.shape, width)
    first_row = (
        torch.arange(math.prod(lead), device=index.device).view(*lead, *(1,) * (index.ndim - len(lead))) * num_rows
    )
    return table.view(-1, width).index_select(0, (index + first_row).flatten()).view(*index.shape, width)


def widen(tensor: Tensor) -> Tensor:
    """Convert half precision to float32, in which scores, softmax and sums are computed; return others unchanged."""
    return tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor


def shared(module: Shareable) -> Shareable:
    """Mark an object of this package, such as `align.softmax`, that many models use: each gets a copy of it."""
    module.is_shared = True
    return module


def unshared(module: Shareable) -> Shareable:
    """Return a copy of a shared object, so that `train()` and `eval()` of one model do not reach another."""
    if not module.is_shared:
        return module
    own = copy(module)
    own.is_shared = False
    own.train()  # as every new module, whatever mode the shared one is in
    return own
