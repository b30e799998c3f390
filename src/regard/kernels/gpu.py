"""Whether regard's kernels for a GPU serve a tensor."""

import functools
from importlib.util import find_spec

import torch
from torch import Tensor


def has_gpu_kernels(tensor: Tensor) -> bool:
    """On a CUDA GPU, with Triton, up to float32."""
    return tensor.is_cuda and tensor.dtype != torch.float64 and tensor.numel() > 0 and _has_triton()


@functools.cache
def _has_triton() -> bool:
    return find_spec("triton") is not None
