"""The checks of signatures while tests run, which `conftest.py` installs."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import config
from torch import Tensor


@contextmanager
def without_checks() -> Iterator[None]:
    """Switch the checks off."""
    config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        config.update("jaxtyping_disable", False)


def check_gradients(run: Callable[..., Any], leaves: Sequence[Tensor]) -> bool:
    """gradcheck of every element; signatures are checked once, and not in each of its hundreds of calls."""
    run(*leaves)
    with without_checks():
        return torch.autograd.gradcheck(run, leaves, check_undefined_grad=False, fast_mode=False)
