"""What kernels and attention share: precision, the masked softmax, rows of tables, and where Triton kernels apply."""

import functools
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

HALF = (torch.bfloat16, torch.float16)


def is_autocast(device: torch.device) -> bool:
    """Whether autocast is on for a device; torch raises an error for the meta device, which never casts."""
    return device.type != "meta" and torch.is_autocast_enabled(device.type)


def without_autocast(device: torch.device) -> AbstractContextManager[object]:
    """Disable autocast: projections may run in half precision, but scores and sums may not."""
    if device.type != "meta" and torch.is_autocast_enabled(device.type):
        return torch.autocast(device.type, enabled=False)
    return nullcontext()


def widen(tensor: Tensor) -> Tensor:
    """Convert half precision to float32, in which scores, softmax and sums are computed; return others unchanged."""
    return tensor.float() if tensor.dtype in HALF else tensor


def masked_softmax(logits: Float[Tensor, "... q k"], allowed: Bool[Tensor, "... k"] | None) -> Float[Tensor, "... q k"]:
    """Softmax over the allowed keys; exactly 0 elsewhere, and in every row where nothing is allowed."""
    if allowed is not None:
        logits = logits.masked_fill(~allowed, -math.inf)
    closed = logits.detach().amax(-1, keepdim=True) == -math.inf
    return torch.softmax(logits.masked_fill(closed, 0), dim=-1).masked_fill(closed, 0)


def take_rows(table: Shaped[Tensor, "*b k d"], index: Int[Tensor, "..."]) -> Shaped[Tensor, "... d"]:
    """Return table[b, index[b, ...]] for an index (*b, ...), touching only those rows."""
    lead, (num_rows, width) = table.shape[:-2], table.shape[-2:]
    if table.is_cuda or not table.is_contiguous():
        # One launch on a GPU; and an expanded or transposed table need not be copied.
        rows = index.flatten(len(lead)).unsqueeze(-1)
        return table.gather(-2, rows.expand(*rows.shape[:-1], width)).view(*index.shape, width)
    first_row = (
        torch.arange(math.prod(lead), device=index.device).view(*lead, *(1,) * (index.ndim - len(lead))) * num_rows
    )
    return (
        table.view(math.prod(lead) * num_rows, width)
        .index_select(0, (index + first_row).flatten())
        .view(*index.shape, width)
    )


def plain_gradients(
    reference: Callable[..., Tensor], inputs: Sequence[Any], needed: Sequence[bool], grad: Tensor
) -> tuple[Tensor | None, ...]:
    """Compute the gradients of a formula in its `needed` inputs, such that they can be differentiated again."""
    differentiated = [part for part, need in zip(inputs, needed, strict=True) if need]
    gradients = iter(torch.autograd.grad(reference(*inputs), differentiated, grad, create_graph=True))
    return tuple(next(gradients) if need else None for need in needed)


def ceil_div(number: int, divisor: int) -> int:
    """Divide and round up: the number of blocks of a size that cover a length."""
    return -(-number // divisor)


def next_power_of_2(number: int) -> int:
    """Round up to a power of 2, the sizes that Triton's blocks have."""
    return 1 << (number - 1).bit_length()


def has_gpu_kernels(tensor: Tensor) -> bool:
    """Whether the kernels support a tensor: on a CUDA GPU, with Triton installed, not empty and not float64."""
    return tensor.is_cuda and tensor.dtype != torch.float64 and tensor.numel() > 0 and _has_triton()


def with_contiguous_rows(tensor: Tensor) -> Tensor:
    """Return a tensor with contiguous rows; a step of a longer tensor, or a part of its columns, is not copied."""
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


@functools.cache
def triton_kernels(name: str) -> ModuleType:
    """Import the Triton kernels of a module here, which takes a moment and works on Linux only."""
    return import_module(f"regard.kernels.{name}_triton")


@functools.cache
def _has_triton() -> bool:
    return find_spec("triton") is not None
