"""The sums of additive.py on the CPU as loops that torch.compile makes: nothing of the size of the pairs is held.

Compiling takes some seconds, once for all sizes, so it must pay: large calls, where there is a C++ compiler.
"""

import functools
import os
import shutil
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

MIN_FEATURES_TO_COMPILE = 1 << 27
"""Fewest features of pairs (batch x query x key x feature) in one call: blocks take a second for twice as many."""


def prefers_compiled_loops(query: Tensor, key: Tensor) -> bool:
    """Whether the compiled loops are to be taken; the sizes alone decide, so that runs can be repeated."""
    features = query.shape[0] * query.shape[1] * key.shape[1] * query.shape[2]
    on_cpu = query.device.type == "cpu" and query.dtype == torch.float32
    return on_cpu and features >= MIN_FEATURES_TO_COMPILE and not torch.compiler.is_compiling() and _has_compiler()


def fractions(query: Tensor, key: Tensor, direction: Tensor) -> Tensor:
    """sum_d v_d r, where r = 1 / (1 + query_d key_d): (b, q, d), (b, k, d), (d,) to (b, q, k)."""
    found: Tensor = _compiled(_fractions)(query, key, direction)
    return found


def slopes(own: Tensor, other: Tensor, upstream: Tensor) -> tuple[Tensor, Tensor]:
    """sum_j upstream_ij (r - r^2) and sum_j upstream_ij r: (b, i, d), (b, j, d), (b, i, j) to (b, i, d) each."""
    found: tuple[Tensor, Tensor] = _compiled(_slopes)(own, other, upstream)
    return found


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
