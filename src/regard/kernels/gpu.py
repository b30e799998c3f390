"""Whether regard's kernels for a GPU serve a tensor, and whether they pay."""

import functools
from importlib.util import find_spec

import torch
from torch import Tensor

PAYS, PAYS_WITH_GRADIENTS = 1 << 26, 1 << 27
"""Features of pairs (batch x query x key x feature) from which on additive kernels were faster than the plain formula
at all sizes tried, on an H200 with a slow processor beside it; `benchmarks/additive_sizes.py` measures it."""


def has_gpu_kernels(tensor: Tensor) -> bool:
    """On a CUDA GPU, with Triton, up to float32."""
    return tensor.is_cuda and tensor.dtype != torch.float64 and tensor.numel() > 0 and _has_triton()


@functools.cache
def _has_triton() -> bool:
    return find_spec("triton") is not None


def kernels_pay(query: Tensor, key: Tensor) -> bool:
    """Whether so many features of pairs are worth more launches than the plain formula needs; gradients need most."""
    features = query.numel() * key.shape[-2]
    needs_gradients = torch.is_grad_enabled() and (query.requires_grad or key.requires_grad)
    return features >= PAYS_WITH_GRADIENTS if needs_gradients else features >= PAYS
