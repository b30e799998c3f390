"""Checks of what users hand in: every refusal shows what was given and says what to change."""

import torch
from torch import Tensor

from regard.attention.match import Score
from regard.errors import DtypeError, KernelError, MaskError, NonFiniteError, OptionError, ShapeError

AXES = {"query": "(..., q, d)", "key": "(..., k, d)", "value": "(..., k, v)"}
KERNELS = ("auto", "reference", "fused")


def check_states(key: Tensor, value: Tensor | None, score: Score) -> None:
    """What is to be remembered: keys that the score can take, and one value for each."""
    _check_tensor("key", key)
    if value is None and not key.is_floating_point() and score.compares_codes:
        raise DtypeError(
            f"{type(score).__name__} compares codes, which cannot be averaged; give a value to read, e.g. "
            "torch.eye(number of keys) to read which rows match."
        )
    if not score.compares_codes:
        _check_floating("key", key)
    score.check_key(key.shape[-1])
    weight = next(score.parameters(), None)
    if weight is not None:
        _check_alike("key", key, f"the weights of {type(score).__name__}", weight, dtypes=True)
    if value is None:
        return
    _check_tensor("value", value)
    _check_floating("value", value)
    if key.shape[-2] != value.shape[-2]:
        raise ShapeError(
            f"There must be one value per key: the key {tuple(key.shape)} holds {key.shape[-2]}, the value "
            f"{tuple(value.shape)} holds {value.shape[-2]}, along the last axis but one."
        )
    _check_alike("key", key, "value", value, dtypes=not score.compares_codes)


def check_query(query: Tensor | None, keys: Tensor, values: Tensor, score: Score) -> Tensor:
    """The query, if it fits the score and the (projected) keys; the score's own where it learns them."""
    name, own_query = type(score).__name__, score.own_query()
    if own_query is not None:
        if query is not None:
            raise OptionError(f"{name} learns its own queries, so it takes query=None; got {_describe(query)}.")
        return own_query
    if query is None:
        raise OptionError(f"{name} needs a query. Only a score that learns its queries (score.Context) takes None.")
    _check_tensor("query", query)
    if not score.compares_codes:
        _check_floating("query", query)
    _check_alike("query", query, "value", values, dtypes=not score.compares_codes)
    score.check_query(query.shape[-1], keys.shape[-1])
    return query


def lead_of(query: Tensor, keys: Tensor, values: Tensor) -> torch.Size:
    """The leading axes that all three broadcast to."""
    try:
        return torch.Size(torch.broadcast_shapes(query.shape[:-2], keys.shape[:-2], values.shape[:-2]))
    except RuntimeError:
        shapes = f"{tuple(query.shape)}, {tuple(keys.shape)}, {tuple(values.shape)}"
        raise ShapeError(
            "The leading axes (all but the last two) of query, key and value must agree or be 1; "
            f"got query, key, value of {shapes}."
        ) from None


def check_kernel(kernel: str) -> None:
    """One of the known names."""
    if kernel not in KERNELS:
        raise KernelError(f"kernel is one of {', '.join(map(repr, KERNELS))}; got {kernel!r}.")


def check_mask(mask: object, lead: torch.Size, num_queries: int, num_keys: int, device: torch.device) -> None:
    """A bool tensor that broadcasts to (..., q, k)."""
    wanted = (*lead, num_queries, num_keys)
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        raise MaskError(
            f"A mask is a bool tensor in which True means 'may attend'; got {_describe(mask)}. Of a mask of zeros and "
            "minus infinities make one with `mask == 0`; of one in which True means 'ignore', with `~mask`."
        )
    if mask.device != device:
        raise MaskError(f"The mask is on {mask.device}, the values on {device}. Move it: mask.to({str(device)!r}).")
    sizes = zip(reversed(mask.shape), reversed(wanted), strict=False)
    if mask.ndim <= len(wanted) and all(have in (1, want) for have, want in sizes):
        return
    hint = "Give it those axes, with size 1 where it is the same for all."
    if len(lead) == 1 and tuple(mask.shape) == (lead[0], num_keys):
        hint = "A padding mask needs an axis for the queries: use mask.padding(lengths), or mask.unsqueeze(1)."
    elif len(lead) > 1 and mask.ndim == len(wanted) - 1:
        hint = "There are heads: give the mask an axis for them, mask.unsqueeze(1)."
    raise MaskError(f"The mask is {tuple(mask.shape)} and does not broadcast to (..., q, k) = {wanted}. {hint}")


def check_all_finite(**tensors: Tensor | None) -> None:
    """No NaN, no infinity; the first offender is named with its place."""
    for role, tensor in tensors.items():
        if not isinstance(tensor, Tensor) or tensor.isfinite().all():
            continue
        places = (~tensor.isfinite()).nonzero()
        first = places[0].tolist()
        raise NonFiniteError(
            f"The {role} {tuple(tensor.shape)} has {len(places)} value(s) that are not finite, the first "
            f"{tensor[tuple(first)].item()} at {first}. Look for a division by zero or a too large learning rate."
        )


def _check_tensor(role: str, part: object) -> None:
    if not isinstance(part, Tensor):
        raise DtypeError(f"The {role} must be a tensor; got {_describe(part)}.")
    if part.ndim < 2:
        raise ShapeError(f"The {role} must have the axes {AXES[role]}; got {tuple(part.shape)}. Add axes of size 1.")


def _check_floating(role: str, part: Tensor) -> None:
    if not part.is_floating_point():
        hint = "" if role == "value" else " To compare codes, use score.equality or score.prefix."
        raise DtypeError(f"The {role} must be of a floating dtype; got {part.dtype}: use {role}.float().{hint}")


def _check_alike(first_role: str, first: Tensor, second_role: str, second: Tensor, *, dtypes: bool) -> None:
    if first.device != second.device:
        raise DtypeError(
            f"{first_role} and {second_role} must be on one device; got {first.device} and {second.device}. "
            "Move one with .to(device)."
        )
    if dtypes and first.dtype != second.dtype and not torch.is_autocast_enabled(first.device.type):
        raise DtypeError(
            f"{first_role} and {second_role} must be of one dtype; got {first.dtype} and {second.dtype}. "
            "Convert one with .to(dtype)."
        )


def _describe(value: object) -> str:
    if isinstance(value, Tensor):
        return f"a {value.dtype} tensor {tuple(value.shape)}"
    return f"{type(value).__name__} {value!r}"[:80]
