"""Local alignments: choose a window of keys, then score only those (Luong et al. 2015, section 3.2)."""

from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from regard.attention.interfaces import Align, Focus, Mask, Soft, Window, masked_softmax, widen
from regard.attention.mask import unpadded_length
from regard.errors import DtypeError, OptionError, ShapeError
from regard.kernels.autocast import is_autocast

Query = Shaped[Tensor, "... q d"]
Logits = Float[Tensor, "... q k"]


class Local(Align):
    """Base class: each query sees the keys within `window` positions of its own centre, with softmax among them.

    `extras["centre"]` is the centre, among keys counted from 0.
    """

    equivariant = False
    window: int
    """Number of positions that a query sees on each side of its centre."""

    def centre(self, query: Query, num_keys: int, mask: Mask, state: Any) -> Float[Tensor, "... q"]:
        """Return the centre of each query's window, among keys counted from 0."""
        raise TypeError(f"{type(self).__name__} must define centre(query, num_keys, mask, state).")

    @property
    def sigma(self) -> float | None:
        """Standard deviation of the Gaussian that damps weights away from the centre; None for no Gaussian."""
        return None

    def look(self, query: Query, num_keys: int, mask: Mask, state: Any) -> Window | None:
        """Return the window around the centre."""
        return Window.around(self.centre(query, num_keys, mask, state), self.window, num_keys)

    def next_state(self, num_queries: int, state: Any) -> Any:
        """Return the state after `num_queries` more queries; None for an alignment without a state."""
        return None

    def state_after(self, weights: Float[Tensor, "... q k"], state: Any) -> Any:
        """Return the state after the queries of these weights."""
        return self.next_state(weights.shape[-2], state)

    def weigh(self, logits: Logits, allowed: Mask, state: Any, window: Window | None, *, soft: Soft = False) -> Focus:
        """Compute the softmax inside the window, times the Gaussian around its centre if there is one."""
        assert window is not None  # noqa: S101 - `look` returns one
        weights = masked_softmax(logits, allowed)
        if self.sigma is not None:
            gaussian = torch.exp(-window.offset.square() / (2 * self.sigma**2)).unsqueeze(-2)
            weights = weights * gaussian.to(logits.dtype)
        return Focus(weights, state=self.next_state(logits.shape[-3], state), extras={"centre": window.centre})


class LocalMonotonic(Local):
    """local-m: query t sees the keys t - window .. t + window, with softmax among them.

    The state is the number of queries so far. A decoder that asks one query at a time passes it on:
    attention(query, memory, state=last.state).
    """

    def __init__(self, window: int = 10) -> None:
        super().__init__()
        self.window = _check_window(window, at_least=0)

    def centre(self, query: Query, num_keys: int, mask: Mask, state: Any) -> Float[Tensor, "... q"]:
        """Return the time step of each query: 0, 1, 2, ..., or continuing from the state."""
        # Half precision cannot count far: bfloat16 cannot represent 257.
        dtype = torch.float64 if query.dtype == torch.float64 else torch.float32
        times = torch.arange(query.shape[-2], device=query.device, dtype=dtype)
        return (times + (state or 0)).expand(query.shape[:-1])

    def start_at(self, step: int) -> Any:
        """Return the number of queries so far."""
        return step

    def next_state(self, num_queries: int, state: Any) -> Any:
        """Add `num_queries` to the number of queries so far."""
        return (state or 0) + num_queries


class LocalPredictive(Local):
    """local-p: the model predicts where to look, p_t = n sigmoid(v' tanh(W s_t)), n being the unpadded length.

    Softmax inside [p_t - window, p_t + window], times exp(-(s - p_t)^2 / (2 sigma^2)) with sigma = window / 2,
    positions s counted from 1 and weights not renormalised, as in the paper. Gradients reach p_t through the Gaussian.
    `extras["centre"]` is p_t - 1: the centre among keys counted from 0. n is one past the last key that a query may
    attend to, so a mask that excludes the end for some queries shortens their source.
    """

    normalised = False

    def __init__(self, query_dim: int, dim: int | None = None, window: int = 10) -> None:
        super().__init__()
        self.window = _check_window(window, at_least=1)
        self.query_dim = query_dim
        self.layer = nn.Linear(query_dim, dim or query_dim, bias=False)
        self.direction = nn.Linear(dim or query_dim, 1, bias=False)

    @property
    def sigma(self) -> float:
        """Half the window, as in the paper."""
        return self.window / 2

    def centre(self, query: Query, num_keys: int, mask: Mask, state: Any) -> Float[Tensor, "... q"]:
        """Predict the centre from the query."""
        if query.shape[-1] != self.query_dim:
            raise ShapeError(
                f"This LocalPredictive predicts its centre from queries of {self.query_dim} features; these have "
                f"{query.shape[-1]}. Create it with query_dim={query.shape[-1]}."
            )
        if not query.is_floating_point():
            raise DtypeError(
                f"LocalPredictive predicts its centre from features; this query holds {query.dtype} codes."
            )
        weight = self.layer.weight
        if query.device != weight.device:
            raise DtypeError(
                f"The parameters of LocalPredictive are on {weight.device}, the query is on {query.device}. Move one "
                "with .to(device)."
            )
        if query.dtype != weight.dtype and not is_autocast(query.device):
            raise DtypeError(
                f"The parameters of LocalPredictive are {weight.dtype}, the query is {query.dtype}. Convert one."
            )
        share = torch.sigmoid(widen(self.direction(torch.tanh(self.layer(query))))).squeeze(-1)
        length = num_keys if mask is None else unpadded_length(mask)
        centre: Tensor = length * share - 1
        return centre


class Spatial(LocalMonotonic):
    """Equal weights for the keys within `window` of the query's own position: average pooling as attention.

    weight_ji = 1{|j - i| <= window} / sum_k 1{|j - k| <= window} (Fleuret, Deep Learning 13.1), that is local-m without
    a score.
    """

    uses_scores = False


def _check_window(window: int, *, at_least: int) -> int:
    if not isinstance(window, int) or window < at_least:
        raise OptionError(f"window must be a whole number of positions, at least {at_least}; got window={window}.")
    return window
