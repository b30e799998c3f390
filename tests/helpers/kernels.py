"""Kernels against their plain formulas in float64; without a GPU, Triton's interpreter runs them."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

interpreted = [
    # Triton's interpreter computes with numpy, which warns where exp overflows to infinity, as it may here,
    pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning"),
    # and takes numbers out of arrays in a way that numpy is about to give up.
    pytest.mark.filterwarnings("ignore:Conversion of an array with ndim > 0:DeprecationWarning"),
]
"""Marks of the tests that run kernels."""


def doubles(inputs: Sequence[Tensor]) -> list[Tensor]:
    """The same inputs in float64, with gradients of their own."""
    return [tensor.detach().double().requires_grad_() for tensor in inputs]


def assert_near(ours: Tensor, exact: Tensor, tolerance: float) -> None:
    """Compare with a tolerance for the largest number, which sums of numbers of both signs need."""
    difference = (ours.double() - exact).abs().max()
    assert difference <= tolerance * max(1.0, exact.abs().max().item()), difference.item()


def assert_all_near(ours: Sequence[Tensor], exact: Sequence[Tensor], tolerance: float) -> None:
    """Compare several tensors."""
    for one, other in zip(ours, exact, strict=True):
        assert_near(one, other, tolerance)
