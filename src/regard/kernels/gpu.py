"""When regard's GPU kernels apply, and when they are faster than the plain formula."""

import functools
from importlib.util import find_spec

import torch
from torch import Tensor

MIN_FEATURES_FOR_KERNEL, MIN_FEATURES_FOR_KERNEL_WITH_GRADIENTS = 60_000_000, 80_000_000
"""Number of pair features (batch x query x key x feature) from which on the kernels of additive scores are faster.

Below, the plain formula is faster, since its launches cost less. `benchmarks/additive_sizes.py` measures this.
"""


def has_gpu_kernels(tensor: Tensor) -> bool:
    """Whether the kernels support a tensor: on a CUDA GPU, with Triton installed, not empty and not float64."""
    return tensor.is_cuda and tensor.dtype != torch.float64 and tensor.numel() > 0 and _has_triton()


@functools.cache
def _has_triton() -> bool:
    return find_spec("triton") is not None


def prefers_gpu_kernels(query: Tensor, key: Tensor) -> bool:
    """Whether the kernels of additive scores support these queries and keys and are faster than the formula."""
    has_gradients = torch.is_grad_enabled() and (query.requires_grad or key.requires_grad)
    least = MIN_FEATURES_FOR_KERNEL_WITH_GRADIENTS if has_gradients else MIN_FEATURES_FOR_KERNEL
    return query.numel() * key.shape[-2] >= least and has_gpu_kernels(query) and has_gpu_kernels(key)
