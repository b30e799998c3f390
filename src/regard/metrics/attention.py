"""Attention metrics that need no gold: entropy, and how much attention moves from query to query."""

from typing import Any

import numpy as np
from jaxtyping import Float

from regard.errors import NonFiniteError, OptionError, ShapeError


def entropy(weights: Float[np.ndarray, "*rows k"]) -> Float[np.ndarray, "*rows"]:
    """H = -sum_i w_i ln w_i of each row, in nats: 0 if all weight is on one key, ln k if it is uniform.

    Rows are first normalized to sum to 1. A row of zeros, which attends to nothing, gives 0.
    """
    return np.asarray(0.0 - _times_log(_normalized(weights)).sum(-1))


def map_variation(weights: Float[np.ndarray, "q k"]) -> float:
    """Mean Jensen-Shannon divergence (base 2) between consecutive rows: how much attention moves from query to query.

    It is 0 if all rows are equal and 1 if consecutive rows never overlap. Pairs with a row of zeros are left out.
    """
    shares = _normalized(weights)
    if shares.ndim != 2:
        raise ShapeError(f"map_variation needs a (queries, keys) map; got shape {shares.shape}.")
    attends = np.asarray(shares.any(-1))
    pairs = attends[:-1] & attends[1:]
    before, after = shares[:-1][pairs], shares[1:][pairs]
    if not len(before):
        return 0.0
    middle = (before + after) / 2
    # JS(p, q) = H((p + q) / 2) - (H(p) + H(q)) / 2
    divergence = (_times_log(before) + _times_log(after)) / 2 - _times_log(middle)
    return float(np.clip(divergence.sum(-1) / np.log(2), 0, 1).mean())


def finite_array(
    values: Any, what: str, *, axes: int | None = None, length: int | None = None
) -> Float[np.ndarray, "..."]:
    """The values in float64, refused unless they are finite and have this number of axes and length."""
    array = np.asarray(values, dtype=np.float64)
    if axes not in (None, array.ndim) or length not in (None, len(array)):
        raise ShapeError(f"There must be {what}; got shape {array.shape}.")
    if not np.isfinite(array).all():
        raise NonFiniteError(f"There must be {what}, all finite; some are NaN or infinite.")
    return array


def nonnegative_array(weights: Any) -> Float[np.ndarray, "*rows k"]:
    """The attention weights in float64, refused unless they are finite and not negative."""
    array = finite_array(weights, "attention weights")
    if (array < 0).any():
        raise OptionError(f"Attention weights must not be negative; the smallest weight is {array.min():g}.")
    return array


def _normalized(weights: Any) -> Float[np.ndarray, "*rows k"]:
    array = nonnegative_array(weights)
    total = array.sum(-1, keepdims=True)
    return np.asarray(np.divide(array, total, out=np.zeros_like(array), where=total > 0))


def _times_log(shares: Float[np.ndarray, "*rows k"]) -> Float[np.ndarray, "*rows k"]:
    """p ln p, with 0 for p = 0."""
    return np.asarray(shares * np.log(shares, out=np.zeros_like(shares), where=shares > 0))
