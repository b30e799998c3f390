"""The sums of additive.py on a CPU as loops compiled by torch.compile, without a tensor of all pairs.

Compilation takes some seconds, once for all sizes, so only large calls use it, and only with a C++ compiler.
"""

import functools
import os
import shutil
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

MIN_FEATURES_TO_COMPILE = 1 << 27
"""Number of pair features (batch x query x key x feature) of a call from which on the loops are compiled.

Computing twice as many block by block takes about a second.
"""


def prefers_compiled_loops(query: Tensor, key: Tensor) -> bool:
    """Whether the compiled loops apply; this depends on sizes alone, so that runs are reproducible."""
    features = query.shape[0] * query.shape[1] * key.shape[1] * query.shape[2]
    on_cpu = query.device.type == "cpu" and query.dtype == torch.float32
    return on_cpu and features >= MIN_FEATURES_TO_COMPILE and not torch.compiler.is_compiling() and _has_compiler()


def fractions(query: Tensor, key: Tensor, direction: Tensor) -> Tensor:
    """Compute sum_d v_d r, where r = 1 / (1 + query_d key_d): (b, q, d), (b, k, d), (d,) to (b, q, k)."""
    sums: Tensor = _compiled(_fractions)(query, key, direction)
    return sums


def slopes(own: Tensor, other: Tensor, upstream: Tensor) -> tuple[Tensor, Tensor]:
    """Compute sum_j upstream_ij (r - r^2) and sum_j upstream_ij r: (b, i, d), (b, j, d), (b, i, j) to (b, i, d)."""
    sums: tuple[Tensor, Tensor] = _compiled(_slopes)(own, other, upstream)
    return sums


def _fractions(query, key, direction):  # type: ignore[no-untyped-def]
    return (direction / (1 + query.unsqueeze(2) * key.unsqueeze(1))).sum(-1)


def _slopes(own, other, upstream):  # type: ignore[no-untyped-def]
    complement = 1 / (1 + own.unsqueeze(2) * other.unsqueeze(1))
    upstream = upstream.unsqueeze(-1)
    return (upstream * (complement - complement * complement)).sum(2), (upstream * complement).sum(2)


@functools.cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return torch.compile(function, dynamic=True)


@functools.cache
def _has_compiler() -> bool:
    return any(shutil.which(name) for name in (os.environ.get("CXX", "g++"), "clang++"))
