"""Masks: bool tensors that broadcast to (..., q, k), where True means *may attend*. Combine masks with & and |."""

from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regard.errors import DtypeError, OptionError

__all__ = ["causal", "padding", "unpadded_length", "window"]


def __dir__() -> list[str]:
    return __all__


def padding(lengths: Int[Tensor, "*b"], size: int | None = None) -> Bool[Tensor, "*b 1 k"]:
    """Create a mask that allows the first `lengths` of `size` keys; `size` defaults to the largest length.

    The content of the padding does not matter as long as it is finite. For `attend` with heads, add an axis to the
    lengths: padding(lengths[:, None]) is (b, 1, 1, k). MultiHead adds that axis itself. With a given `size`, the values
    of the lengths are read neither on a GPU nor by torch.compile, torch.export, torch.jit.trace and torch.vmap.
    """
    if not isinstance(lengths, Tensor) or lengths.is_floating_point() or lengths.dtype == torch.bool:
        given = f"{lengths.dtype} {tuple(lengths.shape)}" if isinstance(lengths, Tensor) else type(lengths).__name__
        raise DtypeError(f"padding takes the lengths as a tensor of integers, e.g. torch.tensor([3, 5]); got {given}.")
    is_traced = torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
    end: Any = lengths.max() if is_traced and size is None else size  # a trace follows tensors
    if not is_traced and size is not None and (not isinstance(size, (int, torch.SymInt)) or size < 0):
        raise OptionError(f"The size of a padding mask must be a whole number, 0 or more; got {size!r}.")
    # Lengths on a GPU are not checked: reading them would wait for all work queued there. Nor are lengths that torch
    # compiles, exports or traces: their values are unknown then, and reading them would break the graph.
    is_known = lengths.is_cpu and not torch.compiler.is_compiling() and not is_traced
    if end is None or is_known:
        try:
            longest = int(lengths.max()) if lengths.numel() else 0
            shortest = int(lengths.min()) if lengths.numel() and is_known else 0
        except RuntimeError:  # under torch.vmap, each example has lengths of its own
            if size is None:
                raise OptionError(
                    "Lengths on the meta device and under torch.vmap have no values; give the size: "
                    "padding(lengths, size=...)."
                ) from None
        else:
            if shortest < 0:
                raise OptionError(f"Lengths must be 0 or more; got {shortest}.")
            if size is not None and longest > size:
                raise OptionError(f"padding to size={size} would cut a length of {longest}.")
            end = longest if size is None else size
    positions = torch.arange(end, device=lengths.device)
    return (positions < lengths.unsqueeze(-1)).unsqueeze(-2)


def causal(
    n: int, *, strict: bool = False, past: int = 0, device: torch.device | str | None = None
) -> Bool[Tensor, "q k"]:
    """Create a mask that allows query t the keys up to t; with `strict`, only the keys before t.

    With `strict` the first query may attend to nothing. `past` earlier keys, as in a cache, are allowed to every query:
    the mask is then (n, past + n).
    """
    if n < 0 or past < 0:
        raise OptionError(f"causal takes sizes of 0 or more; got n={n}, past={past}.")
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
    """Create a mask that allows query t the keys t - before .. t + after; `after` defaults to `before`."""
    after = before if after is None else after
    if before < 0 or after < 0:
        raise OptionError(f"window takes distances of 0 or more; got before={before}, after={after}.")
    if num_queries < 0 or num_keys < 0:
        raise OptionError(f"window takes sizes of 0 or more; got num_queries={num_queries}, num_keys={num_keys}.")
    distance = torch.arange(num_keys, device=device) - torch.arange(num_queries, device=device).unsqueeze(-1)
    return (distance >= -before) & (distance <= after)


def unpadded_length(mask: Bool[Tensor, "*b k"]) -> Int[Tensor, "*b"]:
    """Return one past the last key that may be attended to, which is the source length of a padding mask."""
    return (mask * torch.arange(1, mask.shape[-1] + 1, device=mask.device)).amax(-1)
