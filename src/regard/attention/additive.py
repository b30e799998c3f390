"""Additive scores and other small networks over query and key, whose logits are not one matrix product.

Their kernels never hold the hidden features of all (query, key) pairs at once.
"""

import math
from collections.abc import Callable, Sequence
from typing import TypeGuard

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from regard.attention.interfaces import Keys, Logits, Queries, Score
from regard.errors import OptionError, ShapeError
from regard.kernels.additive import additive_logits, additive_logits_reference
from regard.kernels.gpu import has_gpu_kernels, prefers_gpu_kernels
from regard.kernels.hoisted import Hoisted
from regard.kernels.pairwise import pairwise_logits, pairwise_logits_reference


class TanhSum(Score):
    """v' tanh(query + key) on projected queries and keys: the base of Additive and Concat."""

    has_kernel = True

    def __init__(self, query_dim: int, key_dim: int, dim: int) -> None:
        super().__init__()
        self.query_dim, self.key_dim = query_dim, key_dim
        self.direction = nn.Parameter(torch.empty(dim).uniform_(-1, 1) / math.sqrt(dim))

    def reference(self, query: Queries, key: Keys) -> Logits:
        """Compute v' tanh(query + key) with the features of all pairs in memory."""
        return additive_logits_reference(query, key, self.direction.to(query.dtype))

    def compare(self, query: Queries, key: Keys) -> Logits:
        """Compute v' tanh(query + key) in bounded memory."""
        if type(self).reference is not TanhSum.reference:
            return self.reference(query, key)
        return additive_logits(query, key, self.direction.to(query.dtype))

    def read(
        self, query: Queries, key: Keys, values: Float[Tensor, "... k v"], mask: Bool[Tensor, "..."] | None
    ) -> Float[Tensor, "... q v"] | None:
        """Compute softmax(v' tanh(query + key)) @ values with the GPU kernels."""
        if not is_plain_additive(self) or not has_gpu_kernels(query) or not has_gpu_kernels(values):
            return None
        from regard.kernels.additive_gpu import additive_attention

        lead = query.shape[:-2]
        if mask is not None:
            mask = mask.expand(*lead, *mask.shape[-2:]).reshape(lead.numel(), *mask.shape[-2:])
        query, key, values = (side.reshape(lead.numel(), *side.shape[-2:]) for side in (query, key, values))
        return additive_attention(query, key, values, self.direction, mask).view(
            *lead, query.shape[-2], values.shape[-1]
        )

    def prefers_read(self, query: Queries, key: Keys) -> bool:
        """Whether there are enough pairs for the GPU kernels."""
        return prefers_gpu_kernels(query, key)

    def check_query(self, size: int, projected_key_size: int) -> None:
        """Raise a ShapeError for queries of another size, and for a memory that another score has projected."""
        super().check_query(size, projected_key_size)
        if projected_key_size != len(self.direction):
            raise ShapeError(
                f"This {type(self).__name__} compares {len(self.direction)} features, but the keys of this memory were "
                f"projected to {projected_key_size}. Use the attention whose `remember` created the memory."
            )


def is_plain_additive(score: Score) -> TypeGuard[TanhSum]:
    """Whether a score is v' tanh(query + key) and nothing else, so that kernels for additive scores can compute it."""
    kind = type(score)
    return isinstance(score, TanhSum) and kind.compare is TanhSum.compare and kind.reference is TanhSum.reference


class Additive(TanhSum):
    """v' tanh(W s + U h) (Bahdanau et al. 2015, appendix A.1.2)."""

    def __init__(self, query_dim: int, key_dim: int, dim: int) -> None:
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

    def __init__(self, query_dim: int, key_dim: int, dim: int) -> None:
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

    has_kernel = True

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
        """Run the network block by block, in bounded memory."""
        if type(self).reference is not MLP.reference:
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
