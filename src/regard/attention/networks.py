"""Scores that are small networks: a hidden layer over query and key together, so that no matrix product serves them.

Their logits come from kernels that never hold the features of all pairs.
"""

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from regard.attention.match import Keys, Logits, Queries, Score
from regard.errors import OptionError, ShapeError
from regard.kernels.additive import additive_logits, additive_logits_reference
from regard.kernels.gpu import has_gpu_kernels, kernels_pay
from regard.kernels.hoisted import Hoisted
from regard.kernels.pairwise import pairwise_logits, pairwise_logits_reference


class TanhSum(Score):
    """v' tanh(query + key), on whatever projections: what additive and concat share."""

    lean = True

    def __init__(self, query_dim: int, key_dim: int, dim: int) -> None:
        super().__init__()
        self.query_dim, self.key_dim = query_dim, key_dim
        self.direction = nn.Parameter(torch.empty(dim).uniform_(-1, 1) / math.sqrt(dim))

    def reference(self, query: Queries, key: Keys) -> Logits:
        """v' tanh(query + key) for every pair at once."""
        return additive_logits_reference(query, key, self.direction.to(query.dtype))

    def compare(self, query: Queries, key: Keys) -> Logits:
        """The same without a tensor of all pairs' features."""
        return additive_logits(query, key, self.direction.to(query.dtype))

    def read(
        self, query: Queries, key: Keys, values: Float[Tensor, "... k v"], mask: Bool[Tensor, "..."] | None
    ) -> Float[Tensor, "... q v"] | None:
        """softmax(v' tanh(query + key)) values by kernels for a GPU."""
        if not has_gpu_kernels(query) or not has_gpu_kernels(values):
            return None
        from regard.kernels.additive_gpu import additive_attention

        lead = query.shape[:-2]
        if mask is not None:
            mask = mask.expand(*lead, *mask.shape[-2:]).reshape(lead.numel(), *mask.shape[-2:])
        query, key, values = (side.reshape(lead.numel(), *side.shape[-2:]) for side in (query, key, values))
        return additive_attention(query, key, values, self.direction, mask).view(
            *lead, query.shape[-2], values.shape[-1]
        )

    def read_pays(self, query: Queries, key: Keys) -> bool:
        """Whether there are so many pairs."""
        return kernels_pay(query, key)

    def check_query(self, size: int, projected_key_size: int) -> None:
        """Refuse a memory that another score has projected, too."""
        super().check_query(size, projected_key_size)
        if projected_key_size != len(self.direction):
            raise ShapeError(
                f"This {type(self).__name__} compares {len(self.direction)} features, but the keys of this memory were "
                f"projected to {projected_key_size}: another attention made it."
            )


class Additive(TanhSum):
    """v' tanh(W s + U h) (Bahdanau et al. 2015, appendix A.1.2)."""

    def __init__(self, query_dim: int, key_dim: int, dim: int) -> None:
        super().__init__(query_dim, key_dim, dim)
        self.query_layer = Hoisted(query_dim, dim, bias=False)
        self.key_layer = nn.Linear(key_dim, dim, bias=False)

    def project_query(self, query: Queries) -> Queries:
        """W s."""
        projected: Tensor = self.query_layer(query)
        return projected

    def project_key(self, key: Keys) -> Keys:
        """U h."""
        projected: Tensor = self.key_layer(key)
        return projected


class Concat(TanhSum):
    """v' tanh(W [s; h]) (Luong et al. 2015, section 3.1): additive, with the two matrices written as one."""

    def __init__(self, query_dim: int, key_dim: int, dim: int) -> None:
        super().__init__(query_dim, key_dim, dim)
        self.layer = nn.Linear(query_dim + key_dim, dim, bias=False)

    def project_query(self, query: Queries) -> Queries:
        """The columns of W that meet s."""
        return functional.linear(query, self.layer.weight[:, : self.query_dim])

    def project_key(self, key: Keys) -> Keys:
        """The columns of W that meet h."""
        return functional.linear(key, self.layer.weight[:, self.query_dim :])


class MLP(Score):
    """a(s, h) as a multi-layer perceptron on [s; h] (Fleuret, Deep Learning 13.1: "any form").

    The first layer is linear in s and h apart, so each is multiplied once; the other layers see every pair. The
    activation is a fixed function of its input: it is computed again for the gradient.
    """

    lean = True

    def __init__(
        self,
        query_dim: int,
        key_dim: int,
        dims: Sequence[int] = (64, 32),
        activation: Callable[[Tensor], Tensor] = torch.tanh,
    ) -> None:
        super().__init__()
        if not dims:
            raise OptionError("MLP needs at least one hidden layer, e.g. dims=(64,); got dims=().")
        if isinstance(activation, nn.Module) and not _fixed(activation):
            raise OptionError(
                f"The activation of MLP is computed again, so it must not learn or draw; got {activation}."
            )
        self.query_dim, self.key_dim, self.dims = query_dim, key_dim, tuple(dims)
        self.first = nn.Linear(query_dim + key_dim, dims[0])
        self.layers = nn.ModuleList(nn.Linear(*sizes) for sizes in zip(dims, [*dims[1:], 1], strict=True))
        self.activation = activation

    def project_query(self, query: Queries) -> Queries:
        """The part of the first layer that meets s, with its bias."""
        return functional.linear(query, self.first.weight[:, : self.query_dim], self.first.bias)

    def project_key(self, key: Keys) -> Keys:
        """The part of the first layer that meets h."""
        return functional.linear(key, self.first.weight[:, self.query_dim :])

    def reference(self, query: Queries, key: Keys) -> Logits:
        """The network on every pair at once."""
        return pairwise_logits_reference(query, key, self._after_first, *self._parameters_in(query.dtype))

    def compare(self, query: Queries, key: Keys) -> Logits:
        """The same without a tensor of all pairs' features."""
        # Each layer keeps its inputs and their activations.
        width = 2 * sum(self.dims)
        return pairwise_logits(query, key, self._after_first, *self._parameters_in(query.dtype), width=width)

    def _parameters_in(self, dtype: torch.dtype) -> list[Tensor]:
        return [parameter.to(dtype) for parameter in self.layers.parameters()]

    def _after_first(self, features: Tensor, *parameters: Tensor) -> Tensor:
        for weight, bias in zip(parameters[::2], parameters[1::2], strict=True):
            features = functional.linear(self.activation(features), weight, bias)
        return features.squeeze(-1)


def _fixed(activation: nn.Module) -> bool:
    random = (nn.Dropout, nn.AlphaDropout, nn.FeatureAlphaDropout, nn.RReLU)
    return not list(activation.parameters()) and not any(isinstance(part, random) for part in activation.modules())
