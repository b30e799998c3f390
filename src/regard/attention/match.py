"""What a score is: how well does each key match each query?

A score works in two steps, so that a memory is prepared once and asked many times:

    logits = compare(project_query(query), project_key(key))

`reference` is the formula as its paper writes it, on the projected tensors; `compare` gives the same numbers, by a
faster or leaner way where there is one.
"""

from collections.abc import Callable
from typing import TypeGuard

from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn

from regard.errors import ShapeError

# The number of features, "_", changes with the projection.
Queries = Shaped[Tensor, "... q _"]
Keys = Shaped[Tensor, "... k _"]
Logits = Shaped[Tensor, "... q k"]


class Score(nn.Module):
    """What every score answers; a new one needs `reference`, the rest has defaults."""

    compares_codes: bool = False
    """Whether query and key are integer codes (see `codes`) rather than features."""
    position_free: bool = True
    """Whether permuting the keys only permutes the logits."""
    differentiable: bool = True
    lean: bool = False
    """Whether `compare` is a kernel of regard's own."""

    query_dim: int | None = None
    key_dim: int | None = None

    def own_query(self) -> Float[Tensor, "q d"] | None:
        """The queries, of a score that learns them; `attend` then takes query=None."""
        return None

    def project_query(self, query: Queries) -> Queries:
        """What is needed of the queries, once per query."""
        return query

    def project_key(self, key: Keys) -> Keys:
        """What is needed of the keys, once per memory."""
        return key

    def reference(self, query: Queries, key: Keys) -> Logits:
        """The plain formula, on projected queries and keys."""
        raise TypeError(f"{type(self).__name__} does not say how to score: define reference(query, key).")

    def compare(self, query: Queries, key: Keys) -> Logits:
        """The logits of projected queries and keys."""
        return self.reference(query, key)

    def read(
        self, query: Queries, key: Keys, values: Float[Tensor, "... k v"], mask: Bool[Tensor, "..."] | None
    ) -> Float[Tensor, "... q v"] | None:
        """softmax(compare(query, key)) values by one kernel, of a score that has one for these tensors."""
        return None

    def read_pays(self, query: Queries, key: Keys) -> bool:
        """Whether that kernel is faster than the plain steps."""
        return False

    def forward(self, query: Queries, key: Keys) -> Logits:
        """The logits of queries and keys as they are."""
        return self.compare(self.project_query(query), self.project_key(key))

    def check_key(self, size: int) -> None:
        """Refuse keys of another size than this score was made for."""
        if self.key_dim not in (None, size):
            raise ShapeError(
                f"This {type(self).__name__} takes keys of {self.key_dim} features; these have {size}. "
                f"Make it with key_dim={size}."
            )

    def check_query(self, size: int, projected_key_size: int) -> None:
        """Refuse queries of another size than this score was made for."""
        if self.query_dim not in (None, size):
            raise ShapeError(
                f"This {type(self).__name__} takes queries of {self.query_dim} features; these have {size}. "
                f"Make it with query_dim={size}."
            )


class Product(Score):
    """A score whose logits are one matrix product of the projections, so that torch's fused attention serves it."""

    def scale(self, dim: int) -> float:
        """The factor on the product of two vectors of `dim` features."""
        return 1.0

    def reference(self, query: Queries, key: Keys) -> Logits:
        """scale * sum_d query_d key_d."""
        return (query.unsqueeze(-2) * key.unsqueeze(-3)).sum(-1) * self.scale(query.shape[-1])

    def compare(self, query: Queries, key: Keys) -> Logits:
        """The same as one matrix product."""
        return query * self.scale(query.shape[-1]) @ key.mT

    def check_query(self, size: int, projected_key_size: int) -> None:
        """Refuse different sizes where no matrix stands between the two."""
        super().check_query(size, projected_key_size)
        if size != projected_key_size:
            raise ShapeError(
                f"{type(self).__name__} multiplies a query with a key feature by feature, so both need one size; got "
                f"{size} and {projected_key_size}. General(query_dim={size}, key_dim={projected_key_size}) joins "
                "different sizes, and so does Additive."
            )


def is_plain_product(score: Score) -> TypeGuard[Product]:
    """A product, with nothing of its own instead of it: what kernels for products serve."""
    return isinstance(score, Product) and type(score).compare is Product.compare


class Function(Score):
    """Any function of (query, key) that gives (..., q, k) logits."""

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def reference(self, query: Queries, key: Keys) -> Logits:
        """The function itself."""
        return self.function(query, key)
