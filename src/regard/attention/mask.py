"""Masks: bool tensors that broadcast to (..., q, k), where True means *may attend*. Combine masks with & and |."""

from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regard.bounds import too_large
from regard.errors import DtypeError, OptionError

__all__ = ["causal", "padding", "unpadded_length", "window"]


def __dir__() -> list[str]:
    return __all__


MAX_CELLS = 2**31
"""Entries of the largest mask."""


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
    if (
        not is_traced
        and size is not None
        and (isinstance(size, bool) or not isinstance(size, (int, torch.SymInt)) or size < 0)
    ):
        raise OptionError(f"The size of a padding mask must be a whole number, 0 or more; got {size!r:.60}.")
    if isinstance(size, int) and not torch.compiler.is_compiling() and size * max(1, lengths.numel()) > MAX_CELLS // 8:
        raise OptionError(
            f"A padding mask has at most {MAX_CELLS // 8:,} entries; got size={size} for {lengths.numel()} lengths."
        )
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
                raise OptionError(
                    f"padding to size={size} would cut a length of {longest}: give at least size={longest}."
                )
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
    _check_sizes("causal", n=n, past=past)
    _check_flag("strict", strict)
    if not torch.compiler.is_compiling() and n * (past + n) > MAX_CELLS:
        raise OptionError(f"A mask has at most {MAX_CELLS:,} entries; got n={n}, past={past}.")
    _check_device(device)
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
    _check_sizes("window", num_queries=num_queries, num_keys=num_keys, before=before, after=after)
    if not torch.compiler.is_compiling() and num_queries * num_keys > MAX_CELLS // 8:  # distances take eight bytes
        raise OptionError(
            f"A mask of a window has at most {MAX_CELLS // 8:,} entries; got num_queries={num_queries}, "
            f"num_keys={num_keys}."
        )
    _check_device(device)
    distance = torch.arange(num_keys, device=device) - torch.arange(num_queries, device=device).unsqueeze(-1)
    return (distance >= -before) & (distance <= after)


def unpadded_length(mask: Bool[Tensor, "*b k"]) -> Int[Tensor, "*b"]:
    """Return one past the last key that may be attended to, which is the source length of a padding mask."""
    is_dense = isinstance(mask, Tensor) and mask.layout is torch.strided and not mask.is_nested
    if not is_dense or mask.dtype != torch.bool or mask.ndim < 1:
        given = f"{mask.dtype} {tuple(mask.shape)}" if is_dense else f"{type(mask).__name__} that is not dense"
        raise DtypeError(f"unpadded_length takes a mask, which is a bool tensor (..., k); got {given}.")
    if not mask.shape[-1]:
        return mask.sum(-1)
    return (mask * torch.arange(1, mask.shape[-1] + 1, device=mask.device)).amax(-1)


def _check_sizes(function: str, **sizes: Any) -> None:
    """Refuse what is no size; a size of torch.compile and torch.export is one."""
    for name, size in sizes.items():
        if isinstance(size, torch.SymInt):
            continue
        is_size = isinstance(size, int) and not isinstance(size, bool) and size >= 0
        if not is_size or (not torch.compiler.is_compiling() and too_large(name, size)):
            raise OptionError(f"{function} takes sizes of 0 or more, whole numbers; got {name}={size!r:.60}.")


def _check_flag(name: str, flag: Any) -> None:
    if flag is not True and flag is not False:
        raise OptionError(f"{name} must be True or False; got {flag!r:.60}.")


def _check_device(device: Any) -> None:
    if device is None or isinstance(device, torch.device) or torch.compiler.is_compiling():
        return
    try:
        torch.empty(0, device=device if isinstance(device, str) else "")
    except (RuntimeError, AssertionError) as error:
        raise OptionError(f"device must be one that torch can use here, such as 'cpu'; got {device!r:.60}.") from error
