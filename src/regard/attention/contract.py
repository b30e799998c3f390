"""Checks of what users hand in: every refusal shows what was given and says what to change."""

import torch
from torch import Tensor

from regard.attention.focus import Align
from regard.attention.match import Score
from regard.attention.memory import Memory
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
    if query.ndim != keys.ndim:
        raise ShapeError(
            f"query {tuple(query.shape)} and key {tuple(keys.shape)} must have the same number of axes. For one query "
            "per example use query.unsqueeze(-2); for queries that all examples share, query.unsqueeze(0)."
        )
    if not score.compares_codes:
        _check_floating("query", query)
    _check_alike("query", query, "value", values, dtypes=not score.compares_codes)
    score.check_query(query.shape[-1], keys.shape[-1])
    return query


def lead_of(query: Tensor, keys: Tensor, values: Tensor) -> torch.Size:
    """The leading axes that all three broadcast to."""
    lead = query.shape[:-2]
    if lead == keys.shape[:-2] and lead == values.shape[:-2]:
        return lead
    try:
        return torch.Size(torch.broadcast_shapes(query.shape[:-2], keys.shape[:-2], values.shape[:-2]))
    except RuntimeError:
        shapes = f"{tuple(query.shape)}, {tuple(keys.shape)}, {tuple(values.shape)}"
        raise ShapeError(
            "The leading axes (all but the last two) of query, key and value must agree or be 1; "
            f"got query, key, value of {shapes}."
        ) from None


def check_score(score: object) -> None:
    """A score, or a function of (query, key)."""
    if isinstance(score, type) and issubclass(score, Score):
        raise OptionError(f"A score is made before it is used: {score.__name__}(...), not the class {score.__name__}.")
    if not callable(score):
        raise OptionError(
            "A score is made by regard.score, e.g. score.dot or score.Additive(...), or is a function of "
            f"(query, key); got {_describe(score)}."
        )


def check_align(align: object) -> None:
    """An alignment that was made already."""
    if isinstance(align, type) and issubclass(align, Align):
        raise OptionError(f"An alignment is made before it is used: {align.__name__}(...), not the class itself.")
    if not isinstance(align, Align):
        raise OptionError(
            f"An alignment is made by regard.align, e.g. align.softmax or align.Hard(); got {_describe(align)}."
        )


def check_memory(memory: object) -> None:
    """What `remember` gives."""
    if not isinstance(memory, Memory):
        raise OptionError(f"A memory is made by remember(states), and then asked; got {_describe(memory)}.")


def check_past(query: Tensor, memory: Memory) -> int:
    """How many keys stand before the first query, when the last query stands at the last key."""
    past = len(memory) - query.shape[-2]
    if past < 0:
        raise ShapeError(
            f"causal=True lines up the last query with the last key, but there are {query.shape[-2]} queries and only "
            f"{len(memory)} keys. Remember all that the queries may look back at."
        )
    return past


def check_logits(logits: Tensor, query: Tensor, keys: Tensor, score: Score) -> None:
    """One logit for each query and key: what a score of the user's own may get wrong."""
    wanted = (*query.shape[:-1], keys.shape[-2])
    if logits.shape != wanted:
        name = getattr(getattr(score, "function", score), "__name__", type(score).__name__)
        raise ShapeError(
            f"The score {name} gave logits {tuple(logits.shape)} for queries {tuple(query.shape)} and keys "
            f"{tuple(keys.shape)}; it must give (..., q, k) = {wanted}."
        )


def check_override(override: Tensor, wanted: tuple[int, ...]) -> Tensor:
    """Weights that broadcast to (..., q, k), as wide as that."""
    try:
        return override.expand(wanted)
    except RuntimeError:
        raise ShapeError(
            f"The override is {tuple(override.shape)} and does not broadcast to (..., q, k) = {wanted}."
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
    if mask.ndim >= 3 and mask.shape[-2] == 1 and mask.shape[-1] != num_keys:
        hint = f"A padding mask covers all keys: mask.padding(lengths, size={num_keys})."
    if lead and mask.ndim == 2 and tuple(mask.shape) == (lead[0], num_keys):
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
