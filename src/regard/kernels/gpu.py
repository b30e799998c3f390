"""Whether regard's kernels for a GPU serve a tensor, and whether they pay."""

import functools
from importlib.util import find_spec

import torch
from torch import Tensor

MIN_FEATURES_FOR_KERNEL, MIN_FEATURES_FOR_KERNEL_WITH_GRADIENTS = 60_000_000, 80_000_000
"""Features of pairs (batch x query x key x feature) from which on the kernels of additive scores are faster than the
plain formula, whose cheaper launches count for more below; `benchmarks/additive_sizes.py` measures it."""


def has_gpu_kernels(tensor: Tensor) -> bool:
    """On a CUDA GPU, with Triton, up to float32."""
    return tensor.is_cuda and tensor.dtype != torch.float64 and tensor.numel() > 0 and _has_triton()


@functools.cache
def _has_triton() -> bool:
    return find_spec("triton") is not None


def prefers_gpu_kernels(query: Tensor, key: Tensor) -> bool:
    """Whether there are kernels for these queries and keys, and enough features of pairs for them."""
    learns = torch.is_grad_enabled() and (query.requires_grad or key.requires_grad)
    enough = MIN_FEATURES_FOR_KERNEL_WITH_GRADIENTS if learns else MIN_FEATURES_FOR_KERNEL
    return query.numel() * key.shape[-2] >= enough and has_gpu_kernels(query) and has_gpu_kernels(key)
