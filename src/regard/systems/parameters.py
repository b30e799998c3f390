"""The parameters of a saved model: how they are stored, checked and copied into a model."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from regard.errors import ModelError, OptionError

SCALE = ":factor"
"""Ends the name of the tensor that the rows of an int8 matrix are multiplied by."""
Store = Literal["float32", "float16", "int8"]
_FREE_ELEMENTS, _FREE_OPERATIONS = 2**26, 5000
"""What building a model may take beside its parameters: 256 MB of buffers, and a moment."""
_RANDOM = {
    Tensor.normal_, Tensor.uniform_, nn.init.normal_, nn.init.uniform_, nn.init.kaiming_uniform_,
}  # fmt: skip
"""What fills new parameters with random numbers."""


def write_parameters(path: Path, model: nn.Module, store: Store) -> None:
    """Write the parameters of a model as safetensors; those that are tied are written once."""
    if store not in ("float32", "float16", "int8"):
        raise OptionError(f"store must be one of float32, float16, int8; got {store!r}.")
    state = model.state_dict()
    first = set(first_names(state).values())
    kept = {name: tensor.detach().cpu().contiguous() for name, tensor in state.items() if name in first}
    for name, tensor in kept.items():
        if tensor.is_floating_point() and bool(tensor.isnan().any()):
            raise ModelError(f"The model is not saved: {name} holds NaN, as after a training that diverged.")
    try:
        save_file(_narrowed(kept, store), path)
    except SafetensorError as error:
        raise ModelError(f"The parameters cannot be written to {path}: {error}.") from error


def read_parameters(path: Path) -> dict[str, Tensor]:
    """Read what `write_parameters` wrote, as float32."""
    try:
        tensors = load_file(path)
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{path} is damaged: {error}.") from error
    try:
        return _widened(tensors)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from error


def stored_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The names and shapes of the tensors in a file; only its header is read."""
    try:
        with safe_open(path, framework="pt") as stored:
            return {name: tuple(stored.get_slice(name).get_shape()) for name in stored.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{path} is damaged: {error}.") from error


@contextmanager
def no_larger_than(shapes: Sequence[tuple[int, ...]], place: str) -> Iterator[None]:
    """Refuse to build a model in this block that is far larger than its stored parameters, before memory is taken.

    New parameters are zeros instead of random, which saves time: the stored ones replace them all.
    """
    elements = sum(map(math.prod, shapes))
    bounded = _Bounded(8 * elements + _FREE_ELEMENTS, 100 * len(shapes) + _FREE_OPERATIONS)
    try:
        with bounded:
            yield
    except (RuntimeError, TypeError, ValueError, OverflowError, MemoryError) as error:
        # torch reports in many ways that no memory could hold a size.
        names_memory = any(words in str(error) for words in ("verflow", "can't allocate memory"))
        if not (bounded.is_exceeded or isinstance(error, OverflowError | MemoryError) or names_memory):
            raise
        raise ModelError(
            f"{place} asks for a model that is far larger than its parameters, which are {elements:,} numbers."
        ) from error


class _Bounded(TorchFunctionMode):
    """Counts the numbers that new tensors have and the calls that create them, and stops above a limit."""

    def __init__(self, elements: int, operations: int) -> None:
        super().__init__()
        self._elements, self._operations = elements, operations
        self.is_exceeded = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch._C._set_grad_enabled:
            # Refused, the end of a torch.no_grad() block would leave gradients switched off for good.
            return func(*args, **(kwargs or {}))
        self._operations -= 1
        if not any(map(torch.is_tensor, args)):
            # The sizes of a new tensor: one list of numbers, or the numbers themselves.
            sizes = args[0] if args and isinstance(args[0], list | tuple) else args
            # Among the numbers may be others, such as the ends of torch.linspace(-1, 1, size).
            self._elements -= abs(math.prod(each for each in sizes if isinstance(each, int) and each))
        if self._elements < 0 or self._operations < 0:
            self.is_exceeded = True
            raise RuntimeError("The model is too large.")
        if func in _RANDOM and not (kwargs or {}).get("generator"):
            with torch.no_grad():
                return (args[0] if args else kwargs["tensor"]).zero_()
        return func(*args, **(kwargs or {}))


def fill(model: nn.Module, tensors: Mapping[str, Tensor], place: str) -> None:
    """Copy parameters into a model, in the precision that the model has."""
    state = model.state_dict()
    tied = first_names(state)
    missing = sorted({tied[name] for name in state} - set(tensors))
    unknown = sorted(set(tensors) - set(state))
    if missing or unknown:
        raise ModelError(
            f"The parameters of {place} do not fit its config: {len(missing)} missing {missing[:3]}, {len(unknown)} "
            f"unknown {unknown[:3]}."
        )
    with torch.no_grad():
        for name, tensor in tensors.items():
            if state[name].shape != tensor.shape:
                raise ModelError(
                    f"{place}: {name} is {tuple(tensor.shape)}; the config asks for {tuple(state[name].shape)}."
                )
            if tensor.is_floating_point() and bool(tensor.isnan().any()):
                raise ModelError(f"{place}: {name} holds NaN, so the model would answer nonsense.")
            state[name].copy_(tensor)


def first_names(state: Mapping[str, Tensor]) -> dict[str, str]:
    """For each name the first name with the same storage: tied parameters are stored once."""
    first: dict[tuple[int, torch.Size], str] = {}
    return {name: first.setdefault((tensor.data_ptr(), tensor.shape), name) for name, tensor in state.items()}


def _narrowed(tensors: Mapping[str, Tensor], store: Store) -> dict[str, Tensor]:
    if store == "float32":
        return dict(tensors)
    narrow: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if store == "int8" and tensor.ndim == 2:
            scale = tensor.abs().amax(1, keepdim=True).clamp_min(1e-12) / 127
            narrow[name] = (tensor / scale).round().to(torch.int8)
            narrow[name + SCALE] = scale
        elif not tensor.is_floating_point():
            narrow[name] = tensor
        else:
            narrow[name] = tensor.half()
    return narrow


def _widened(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    for name, tensor in tensors.items():
        scale = tensors.get(name + SCALE)
        if tensor.dtype == torch.int8 and scale is None:
            raise ModelError(f"The int8 matrix {name!r} has no scale: the parameters are damaged.")
        if scale is not None and scale.shape != (tensor.shape[0], 1):
            raise ModelError(
                f"The scale of the int8 matrix {name!r} is {tuple(scale.shape)}; it must be {(tensor.shape[0], 1)}: "
                "the parameters are damaged."
            )
    # A scale without a matrix keeps its name, so that it is reported as unknown.
    return {
        name: tensor.float() * tensors[name + SCALE] if name + SCALE in tensors else tensor.float()
        for name, tensor in tensors.items()
        if name.removesuffix(SCALE) == name or name.removesuffix(SCALE) not in tensors
    }
