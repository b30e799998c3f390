"""Argument checks of the public attention functions: errors show what was given and say what to change."""

import inspect
from dataclasses import replace
from typing import TypeGuard

import torch
from torch import Tensor, nn

from regard.attention.align import Align, Focus, Soft
from regard.attention.memory import Memory
from regard.attention.score import Score
from regard.errors import DtypeError, KernelError, MaskError, NonFiniteError, OptionError, ShapeError
from regard.kernels.numerics import is_autocast

AXES = {"query": "(..., q, d)", "key": "(..., k, d)", "value": "(..., k, v)"}
KERNELS = ("auto", "reference", "fused")
AXIS_NAMES = ("dim", "axis")


def check_states(key: Tensor, value: Tensor | None, score: Score) -> None:
    """Check that the keys fit the score and that there is one value per key."""
    _check_part("key", key, is_floating=not score.compares_codes)
    if score.compares_codes and value is None and not key.is_floating_point():
        raise DtypeError(
            f"{type(score).__name__} compares codes, which cannot be averaged; pass a value to read, e.g. "
            "torch.eye(number of keys) to see which rows match."
        )
    if score.key_dim is not None and score.key_dim != key.shape[-1]:
        raise ShapeError(_wrong_size(score, "keys", "key_dim", score.key_dim, key.shape[-1]))
    if not score.is_shared:
        _check_own(score, "key", key, dtypes=True)
    if value is None:
        return
    # Written out: a call would cost as much as all of the rest.
    is_dense = isinstance(value, Tensor) and value.layout is torch.strided and not value.is_nested
    is_like_key = is_dense and value.dtype == key.dtype and value.device == key.device
    if not is_like_key or value.ndim < 2 or score.compares_codes:
        _check_part("value", value, is_floating=True)
        check_alike("key", key, "value", value, dtypes=not score.compares_codes)
    if key.shape[-2] != value.shape[-2]:
        raise ShapeError(
            f"There must be one value per key: the key {tuple(key.shape)} has {key.shape[-2]}, the value "
            f"{tuple(value.shape)} has {value.shape[-2]}, along the second to last axis."
        )


def check_call(
    query: Tensor | None,
    memory: Memory,
    score: Score,
    align: Align,
    mask: Tensor | None,
    bias: Tensor | None,
    kernel: str,
    *,
    grouped: bool = False,
    weights: bool = False,
    soft: Soft = False,
    override: Tensor | None = None,
) -> None:
    """Check what `attend_memory` takes for granted: a query fits the memory, the score, the alignment and the mask."""
    if not isinstance(kernel, str) or kernel not in KERNELS:
        raise KernelError(f"kernel must be one of {', '.join(map(repr, KERNELS))}; got {kernel!r:.60}.")
    if (weights is not False and weights is not True) or (grouped is not False and grouped is not True):
        raise OptionError(f"weights and grouped must be True or False; got {describe(weights)}, {describe(grouped)}.")
    if soft is not False and soft is not True and not (isinstance(soft, Tensor) and soft.dtype == torch.bool):
        raise OptionError(f"soft must be a bool, or a bool tensor with an entry for each row; got {describe(soft)}.")
    if override is not None and not isinstance(override, Tensor):
        raise DtypeError(f"The override must be a tensor of weights with a floating dtype; got {describe(override)}.")
    if not isinstance(memory, Memory) or not isinstance(memory.values, Tensor) or not isinstance(memory.keys, Tensor):
        raise OptionError(f"Create a memory with remember(states) and pass that; got {describe(memory)}.")
    query = _check_query(query, memory.keys, memory.values, score)
    if mask is not None or memory.mask is not None or bias is not None:
        own = 3 if grouped else 2
        lead = broadcast_lead(query, memory.keys, memory.values, own)
        sizes = (*lead, *query.shape[-own:-1], memory.values.shape[-2])
        for part in (mask, memory.mask):
            if part is not None:
                check_mask(part, sizes, memory.values.device)
        if bias is not None:
            check_bias(bias, sizes, memory.values.device)
    if align.query_dim is not None and align.query_dim != query.shape[-1]:
        raise ShapeError(_wrong_size(align, "queries", "query_dim", align.query_dim, query.shape[-1]))
    if not align.is_shared:
        _check_own(align, "query", query, dtypes=align.query_dim is not None)


def _check_query(query: Tensor | None, keys: Tensor, values: Tensor, score: Score) -> Tensor:
    """Return the query if it fits the score and the projected keys, or the query that the score has learned."""
    learned = score.learned_query()
    if learned is not None:
        if query is not None:
            raise OptionError(
                f"{type(score).__name__} learns its own queries, so it takes query=None; got {describe(query)}."
            )
        return learned
    if query is None:
        raise OptionError(
            f"{type(score).__name__} needs a query. Only a score that learns its queries (score.Context) takes None."
        )
    is_dense = isinstance(query, Tensor) and query.layout is torch.strided and not query.is_nested
    is_like_values = is_dense and query.dtype == values.dtype and query.device == values.device
    if not is_like_values or query.ndim != keys.ndim:
        _check_part("query", query, is_floating=not score.compares_codes)
        if query.ndim != keys.ndim:
            raise ShapeError(
                f"query {tuple(query.shape)} and key {tuple(keys.shape)} must have the same number of axes. For one "
                "query per example use query.unsqueeze(-2); for queries that all examples share, query.unsqueeze(0)."
            )
        check_alike("query", query, "value", values, dtypes=not score.compares_codes)
    if score.query_dim is not None and score.query_dim != query.shape[-1]:
        raise ShapeError(_wrong_size(score, "queries", "query_dim", score.query_dim, query.shape[-1]))
    if message := score.shape_error(query.shape[-1], keys.shape[-1]):
        raise ShapeError(message)
    return query


def broadcast_lead(query: Tensor, keys: Tensor, values: Tensor, own: int) -> torch.Size:
    """Return what the leading axes of query, keys and values broadcast to, all but the `own` last axes of each."""
    lead = query.shape[:-own]
    if own == 2 and keys.shape[:-2] == lead and values.shape[:-2] == lead:
        return lead
    shapes = f"got query, key, value of {tuple(query.shape)}, {tuple(keys.shape)}, {tuple(values.shape)}"
    if own == 3 and (query.ndim < 4 or keys.shape[-3] != values.shape[-3] or query.shape[-3] % max(1, keys.shape[-3])):
        raise ShapeError(
            "Grouped attention takes a query (..., b, h, q, d) whose heads are a multiple of those of key and value, "
            f"(..., b, g, k, d); {shapes}."
        )
    try:
        return torch.Size(torch.broadcast_shapes(lead, keys.shape[:-own], values.shape[:-own]))
    except RuntimeError:
        raise ShapeError(
            f"The leading axes (all but the last {own}) of query, key and value must agree or be 1; {shapes}."
        ) from None


def _wrong_size(part: Score | Align, role: str, option: str, expected: int, given: int) -> str:
    return (
        f"This {type(part).__name__} takes {role} of {expected} features; these have {given}. "
        f"Create it with {option}={given}."
    )


def check_score(score: object) -> None:
    """Check that something is a Score or a function (query, key) -> logits."""
    if isinstance(score, type) and issubclass(score, Score):
        raise OptionError(f"A score must be an instance, {score.__name__}(...), not the class {score.__name__}.")
    if isinstance(score, Align):
        raise OptionError(f"{type(score).__name__} is an alignment, not a score: pass it as `align`.")
    if not callable(score):
        raise OptionError(
            "A score comes from regard.score, e.g. score.dot or score.Additive(...), or is a function "
            f"(query, key) -> logits; got {describe(score)}."
        )


def check_align(align: object) -> None:
    """Check that something is an Align or a function (logits, mask) -> weights."""
    if isinstance(align, type) and issubclass(align, Align):
        raise OptionError(f"An alignment must be an instance, {align.__name__}(...), not the class {align.__name__}.")
    if isinstance(align, Score):
        raise OptionError(f"{type(align).__name__} is a score, not an alignment: pass it as `score`.")
    if not isinstance(align, Align) and not _takes_mask(align):
        raise OptionError(
            "An alignment comes from regard.align, e.g. align.softmax or align.Hard(), or is a function "
            "(logits, mask) -> weights, or an instance of your own subclass of regard.align.Align that defines "
            f"weigh(logits, allowed, state, window, *, soft=False) -> Focus; got {describe(align)}."
        )


def _takes_mask(function: object) -> bool:
    """Whether something has a signature that accepts two positional arguments, of which the second may be a mask.

    An axis, as in torch.nn.functional.softmax(input, dim), or an option with a default such as a temperature may not.
    """
    if not callable(function) or isinstance(function, type):
        return False
    try:
        signature = inspect.signature(function.forward if isinstance(function, nn.Module) else function)
        signature.bind(None, None)
    except (TypeError, ValueError):
        return False
    for second in list(signature.parameters.values())[1:2]:
        has_default = second.default is not None and second.default is not inspect.Parameter.empty
        return second.name not in AXIS_NAMES and not has_default
    return True


def check_past(num_queries: int, num_keys: int) -> int:
    """Return the number of keys before the first query, where the last query stands at the last key."""
    past = num_keys - num_queries
    if past < 0:
        raise ShapeError(
            f"causal=True aligns the last query with the last key, but there are {num_queries} queries and only "
            f"{num_keys} keys. The memory must contain all positions of the queries."
        )
    return past


def check_logits(logits: Tensor, query: Tensor, keys: Tensor, score: Score) -> Tensor:
    """Return the logits if there is one for each query and key; a user's own score may return anything."""
    expected = (*query.shape[:-1], keys.shape[-2])
    if isinstance(logits, Tensor) and logits.shape == expected and not logits.is_complex():
        return logits
    name = getattr(getattr(score, "function", score), "__name__", type(score).__name__)
    must = f"it must return real logits of shape (..., q, k) = {expected}"
    if not isinstance(logits, Tensor):
        raise DtypeError(f"The score {name} returned {describe(logits)}; {must}.")
    if logits.is_complex():
        raise DtypeError(f"The score {name} returned complex logits, {logits.dtype}; {must}.")
    raise ShapeError(
        f"The score {name} returned logits {tuple(logits.shape)} for queries {tuple(query.shape)} and keys "
        f"{tuple(keys.shape)}; {must}."
    )


def check_focus(focus: object, logits: Tensor, mask: Tensor | None, align: Align) -> Focus:
    """Return what a user's own alignment returned, without its masked keys, if it is a Focus that fits the logits."""
    name, shape = type(align).__name__, tuple(logits.shape)
    must = f"weigh must return Focus(weights), with floating weights of shape (..., q, k) = {shape}"
    if not isinstance(focus, Focus):
        raise DtypeError(f"The alignment {name} returned {describe(focus)}; {must}.")
    weights, index = focus.weights, focus.index
    if weights is not None:
        if not isinstance(weights, Tensor) or not weights.is_floating_point() or weights.shape != logits.shape:
            raise ShapeError(f"The alignment {name} returned a Focus with weights {describe(weights)}; {must}.")
        return focus if mask is None else replace(focus, weights=weights.masked_fill(~mask, 0))
    if not isinstance(index, Tensor) or index.dtype != torch.int64 or index.shape != logits.shape[:-1]:
        raise ShapeError(
            f"The alignment {name} returned a Focus without weights, and with the index {describe(index)}; {must}, or "
            f"Focus(index=index), with the chosen keys as a torch.int64 tensor (..., q) = {shape[:-1]}."
        )
    if mask is None:
        return focus
    chosen = index.clamp_min(0).unsqueeze(-1)
    return replace(focus, index=index.masked_fill(~mask.expand(logits.shape).gather(-1, chosen).squeeze(-1), -1))


def check_override(override: Tensor, expected: tuple[int, ...], device: torch.device) -> Tensor:
    """Expand an override to (..., q, k)."""
    if not _is_dense(override) or not override.is_floating_point():
        raise DtypeError(f"The override must be a tensor of weights with a floating dtype; got {describe(override)}.")
    if override.device != device:
        raise DtypeError(f"The override is on {override.device}, the values on {device}. Move it there.")
    return _expanded("override", override, expected)


def check_bias(bias: Tensor, expected: tuple[int, ...], device: torch.device) -> None:
    """Check that a bias is a floating tensor that broadcasts to (..., q, k)."""
    if not isinstance(bias, Tensor) or not bias.is_floating_point() or not _is_dense(bias):
        raise DtypeError(
            f"A bias is a dense floating tensor, which is added to the logits; got {describe(bias)}. A bool tensor of "
            "what a query may attend to is a mask."
        )
    if bias.device != device:
        raise DtypeError(f"The bias is on {bias.device}, the values on {device}. Move it: bias.to({str(device)!r}).")
    _expanded("bias", bias, expected)


def _expanded(role: str, part: Tensor, expected: tuple[int, ...]) -> Tensor:
    try:
        return part.expand(expected)
    except RuntimeError:
        raise ShapeError(
            f"The {role} is {tuple(part.shape)} and does not broadcast to (..., q, k) = {tuple(expected)}."
        ) from None


def check_dropout(dropout: float) -> float:
    """Return the share of weights to set to 0, at least 0 and below 1."""
    if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not 0 <= dropout < 1:
        raise OptionError(f"dropout must be a number from 0 to below 1; got {dropout!r:.60}.")
    return float(dropout)


def check_mask_of_memory(mask: object, states: Tensor) -> None:
    """Check the part of a mask that a memory decides: the number of its keys; the queries come later."""
    size = mask.shape[-2] if _is_dense(mask) and mask.ndim > 1 else 1
    check_mask(mask, (*states.shape[:-2], size, states.shape[-2]), states.device)


def check_mask(mask: object, expected: tuple[int, ...], device: torch.device) -> None:
    """Check that a mask is a bool tensor that broadcasts to (..., q, k)."""
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool or mask.layout is not torch.strided or mask.is_nested:
        raise MaskError(
            f"A mask is a dense bool tensor in which True means 'may attend'; got {describe(mask)}. Convert a "
            "mask of zeros and minus infinities with `mask == 0`, and one in which True means 'ignore' with `~mask`."
        )
    if mask.device != device:
        raise MaskError(f"The mask is on {mask.device}, the values on {device}. Move it: mask.to({str(device)!r}).")
    if mask.ndim <= len(expected):
        for size, full in zip(reversed(mask.shape), reversed(expected), strict=False):
            # `in` does not compare the sizes that torch.compile does not know.
            if size != 1 and size != full:
                break
        else:
            return
    lead, num_keys = expected[:-2], expected[-1]
    hint = "Give it those axes, with size 1 where it is the same for all."
    if mask.ndim >= 3 and mask.shape[-2] == 1 and mask.shape[-1] != num_keys:
        hint = f"A padding mask covers all keys: mask.padding(lengths, size={num_keys})."
    if lead and mask.ndim == 2 and tuple(mask.shape) == (lead[0], num_keys):
        hint = "A padding mask needs an axis for the queries: use mask.padding(lengths), or mask.unsqueeze(1)."
    elif len(lead) > 1 and mask.ndim == len(expected) - 1:
        hint = "There are heads: give the mask an axis for them, mask.unsqueeze(1)."
    raise MaskError(f"The mask is {tuple(mask.shape)} and does not broadcast to (..., q, k) = {expected}. {hint}")


def check_flag(name: str, flag: object) -> None:
    """Check that something is True or False, and not what Python takes for one of them."""
    if flag is not True and flag is not False:
        raise OptionError(f"{name} must be True or False; got {describe(flag)}.")


def check_all_finite(**tensors: Tensor | None) -> None:
    """Check that tensors contain neither NaN nor infinity; the error names the first such value and its position."""
    for role, tensor in tensors.items():
        if not _is_dense(tensor) or tensor.is_meta or tensor.isfinite().all():
            continue
        positions = (~tensor.isfinite()).nonzero()
        first = positions[0].tolist()
        raise NonFiniteError(
            f"The {role} {tuple(tensor.shape)} has {len(positions)} value(s) that are not finite, the first "
            f"{tensor[tuple(first)].item()} at {first}. Common causes are a division by zero and a learning rate that "
            "is too large."
        )


def _check_part(role: str, part: object, *, is_floating: bool) -> None:
    if not isinstance(part, Tensor):
        raise DtypeError(f"The {role} must be a tensor; got {describe(part)}.")
    if part.layout is not torch.strided or part.is_nested:
        raise DtypeError(
            f"The {role} must be a dense tensor; got {_layout(part)}. Use {role}.to_dense(), or pad rows of several "
            "lengths and hide the padding with mask.padding."
        )
    if part.ndim < 2:
        raise ShapeError(f"The {role} must have the axes {AXES[role]}; got {tuple(part.shape)}. Add axes of size 1.")
    if is_floating and not part.is_floating_point():
        hint = "" if role == "value" else " To compare codes, use score.equality or score.prefix."
        raise DtypeError(f"The {role} must have a floating dtype; got {part.dtype}: use {role}.float().{hint}")


def _check_own(part: Score | Align, role: str, tensor: Tensor, *, dtypes: bool) -> None:
    """Check that a tensor is on the device of the parameters or buffers of a part and, with `dtypes`, of one dtype."""
    weight = part._parameters.get("direction")  # listing all parameters takes longer than a small call
    weight = next(part.parameters(), None) if weight is None else weight
    if weight is not None and (weight.device != tensor.device or weight.dtype != tensor.dtype):
        check_alike(role, tensor, f"the parameters of {type(part).__name__}", weight, dtypes=dtypes)
    if weight is None and (buffer := next(part.buffers(), None)) is not None:
        check_alike(role, tensor, f"the buffers of {type(part).__name__}", buffer, dtypes=False)


def check_alike(first_role: str, first: Tensor, second_role: str, second: Tensor, *, dtypes: bool) -> None:
    """Check that two tensors are on one device and, with `dtypes`, of one dtype."""
    if first.device != second.device:
        raise DtypeError(
            f"{first_role} and {second_role} must be on one device; got {first.device} and {second.device}. "
            "Move one with .to(device)."
        )
    is_cast = is_autocast(first.device) and first.is_floating_point()
    if dtypes and first.dtype != second.dtype and not is_cast:
        raise DtypeError(
            f"{first_role} and {second_role} must have one dtype; got {first.dtype} and {second.dtype}. "
            "Convert one with .to(dtype)."
        )


def _is_dense(part: object) -> TypeGuard[Tensor]:
    """Whether something is a tensor that holds every one of its elements, at the sizes of its shape."""
    return isinstance(part, Tensor) and part.layout is torch.strided and not part.is_nested


def _layout(part: Tensor) -> str:
    return "a nested tensor" if part.is_nested else f"a tensor of layout {part.layout}"


def describe(value: object) -> str:
    """A value for a message: the dtype and shape of a tensor, or the type and the value."""
    if isinstance(value, Tensor):
        if not _is_dense(value):
            return _layout(value)
        return f"a {value.dtype} tensor {tuple(value.shape)}"
    return f"{type(value).__name__} {value!r}"[:80]
