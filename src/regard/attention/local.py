"""Local alignments: choose where to look, then score only those keys (Luong et al. 2015, section 3.2)."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.focus import Align, Focus, Logits, Mask, Query, Window, masked_softmax, widen
from regard.attention.mask import unpadded_length
from regard.errors import DtypeError, OptionError, ShapeError


class Local(Align):
    """Each query looks at the keys within `reach` of a centre of its own, softmax inside.

    `extras["centre"]` is the centre, among keys counted from 0.
    """

    equivariant = False
    reach: int

    def centre(self, query: Query, num_keys: int, mask: Mask, state: Any) -> Float[Tensor, "... q"]:
        """The middle of each query's window, among keys counted from 0."""
        raise TypeError(f"{type(self).__name__} does not say where to look: define centre(...).")

    @property
    def sigma(self) -> float | None:
        """The width of the bell that damps the weights away from the centre; None for no bell."""
        return None

    def look(self, query: Query, num_keys: int, mask: Mask, state: Any) -> Window | None:
        """Around the centre."""
        return Window.around(self.centre(query, num_keys, mask, state), self.reach, num_keys)

    def next_state(self, num_queries: int, state: Any) -> Any:
        """The state after so many queries more; None of an alignment that needs none."""
        return None

    def state_after(self, weights: Float[Tensor, "... q k"], state: Any) -> Any:
        """So many queries more."""
        return self.next_state(weights.shape[-2], state)

    def weigh(self, logits: Logits, allowed: Mask, state: Any, window: Window | None) -> Focus:
        """Softmax inside the window, damped away from its centre where there is a bell."""
        assert window is not None  # noqa: S101 - `look` gives one
        weights = masked_softmax(logits, allowed)
        if self.sigma is not None:
            bell = torch.exp(-window.offset.square() / (2 * self.sigma**2)).unsqueeze(-2)
            weights = weights * bell.to(logits.dtype)
        return Focus(weights, state=self.next_state(logits.shape[-3], state), extras={"centre": window.centre})


class LocalMonotonic(Local):
    """local-m: query t looks at the keys t - reach .. t + reach, softmax inside.

    The state is the number of queries so far: a decoder that asks one query at a time hands it on,
    attention(query, memory, state=last.state).
    """

    def __init__(self, reach: int = 10) -> None:
        super().__init__()
        self.reach = _check_reach(reach, at_least=0)

    def centre(self, query: Query, num_keys: int, mask: Mask, state: Any) -> Float[Tensor, "... q"]:
        """The time of each query: 0, 1, 2, ... or, with a state, going on from there."""
        # Half precision cannot count far: bfloat16 has no 257.
        dtype = torch.float64 if query.dtype == torch.float64 else torch.float32
        times = torch.arange(query.shape[-2], device=query.device, dtype=dtype)
        return (times + (state or 0)).expand(query.shape[:-1])

    def start_at(self, step: int) -> Any:
        """The number of queries so far."""
        return step

    def next_state(self, num_queries: int, state: Any) -> Any:
        """So many queries more."""
        return (state or 0) + num_queries


class LocalPredictive(Local):
    """local-p: the model predicts where to look, p_t = n sigmoid(v' tanh(W s_t)), n the unpadded length.

    Softmax inside [p_t - reach, p_t + reach], times exp(-(s - p_t)^2 / (2 sigma^2)) with sigma = reach / 2, positions s
    counted from 1 and weights not renormalised, as in the paper. Gradients reach p_t through the Gaussian.
    `extras["centre"]` is p_t - 1: the centre among keys counted from 0. n is one past the last key that a query may
    attend to, so a mask that closes the end for some queries makes their source shorter.
    """

    normalised = False

    def __init__(self, query_dim: int, dim: int | None = None, reach: int = 10) -> None:
        super().__init__()
        self.reach = _check_reach(reach, at_least=1)
        self.query_dim = query_dim
        self.layer = nn.Linear(query_dim, dim or query_dim, bias=False)
        self.direction = nn.Linear(dim or query_dim, 1, bias=False)

    @property
    def sigma(self) -> float:
        """Half the reach, as in the paper."""
        return self.reach / 2

    def centre(self, query: Query, num_keys: int, mask: Mask, state: Any) -> Float[Tensor, "... q"]:
        """The predicted position."""
        if query.shape[-1] != self.query_dim:
            raise ShapeError(
                f"This LocalPredictive predicts its centre from queries of {self.query_dim} features; these have "
                f"{query.shape[-1]}. Make it with query_dim={query.shape[-1]}."
            )
        if not query.is_floating_point():
            raise DtypeError(
                f"LocalPredictive predicts its centre from features; this query holds {query.dtype} codes."
            )
        weight = self.layer.weight
        if query.dtype != weight.dtype and not torch.is_autocast_enabled(query.device.type):
            raise DtypeError(
                f"The weights of LocalPredictive are {weight.dtype}, the query is {query.dtype}. Convert one."
            )
        share = torch.sigmoid(widen(self.direction(torch.tanh(self.layer(query))))).squeeze(-1)
        length = num_keys if mask is None else unpadded_length(mask)
        centre: Tensor = length * share - 1
        return centre


class Spatial(LocalMonotonic):
    """The plain average of the keys within `reach` of the query's own position: average pooling as attention.

    weight_ji = 1{|j - i| <= reach} / sum_k 1{|j - k| <= reach} (Fleuret, Deep Learning 13.1). That is local-m without
    any score.
    """

    uses_scores = False


def _check_reach(reach: int, *, at_least: int) -> int:
    if not isinstance(reach, int) or reach < at_least:
        raise OptionError(f"A window reaches at least {at_least} whole positions to each side; got reach={reach}.")
    return reach
