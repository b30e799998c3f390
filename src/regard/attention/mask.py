"""Masks: bool tensors that broadcast to (..., q, k), where True means *may attend*. Combine them with & and |."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regard.errors import DtypeError, OptionError


def padding(lengths: Int[Tensor, "*b"], size: int | None = None) -> Bool[Tensor, "*b 1 k"]:
    """May attend to the first `lengths` keys; `size` keys in all (the longest length when not given).

    What the padding holds does not matter, as long as it is finite. For `attend` with heads, give the lengths an axis
    for them: padding(lengths[:, None]) is (b, 1, 1, k). MultiHead adds that axis by itself.
    """
    if not isinstance(lengths, Tensor) or lengths.is_floating_point() or lengths.dtype == torch.bool:
        given = f"{lengths.dtype} {tuple(lengths.shape)}" if isinstance(lengths, Tensor) else type(lengths).__name__
        raise DtypeError(f"padding takes the lengths as a tensor of integers, e.g. torch.tensor([3, 5]); got {given}.")
    if size is None:
        size = int(lengths.max()) if lengths.numel() else 0
    elif lengths.device.type == "cpu" and lengths.numel() and int(lengths.max()) > size:
        # On a GPU this look at the lengths would stop the queue.
        raise OptionError(f"padding to size={size} would cut a length of {int(lengths.max())}.")
    positions = torch.arange(size, device=lengths.device)
    return (positions < lengths.unsqueeze(-1)).unsqueeze(-2)


def causal(
    n: int, *, strict: bool = False, past: int = 0, device: torch.device | str | None = None
) -> Bool[Tensor, "q k"]:
    """Query t may attend to keys up to t; `strict` leaves out t itself, so that the first query has nothing.

    `past` keys before the first query are open to every query (a cache): (n, past + n).
    """
    if n < 0 or past < 0:
        raise OptionError(f"causal takes sizes of zero or more; got n={n}, past={past}.")
    ones = torch.ones(n, past + n, dtype=torch.bool, device=device)
    return ones.tril(past - 1 if strict else past)


def window(
    num_queries: int,
    num_keys: int,
    *,
    before: int,
    after: int | None = None,
    device: torch.device | str | None = None,
) -> Bool[Tensor, "q k"]:
    """Query t may attend to keys t - before .. t + after (`after` is `before` when not given)."""
    after = before if after is None else after
    if before < 0 or after < 0:
        raise OptionError(f"window takes distances of zero or more; got before={before}, after={after}.")
    distance = torch.arange(num_keys, device=device) - torch.arange(num_queries, device=device).unsqueeze(-1)
    return (distance >= -before) & (distance <= after)


def unpadded_length(mask: Bool[Tensor, "*b k"]) -> Int[Tensor, "*b"]:
    """One past the last key that may be attended to: the source length behind a padding mask."""
    return (mask * torch.arange(1, mask.shape[-1] + 1, device=mask.device)).amax(-1)
