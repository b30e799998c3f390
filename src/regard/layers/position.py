"""Positional encodings (Vaswani et al. 2017, section 3.5)."""

import math

import torch
from jaxtyping import Float
from torch import Tensor


def sinusoids(
    num_positions: int, dim: int, *, first: int = 0, device: torch.device | None = None
) -> Float[Tensor, "n d"]:
    """Return sin(p / 10000^(2i/d)) and cos(p / 10000^(2i/d)), interleaved, for positions first, first + 1, ..."""
    positions = torch.arange(first, first + num_positions, device=device, dtype=torch.float32).unsqueeze(-1)
    rates = torch.exp(torch.arange(0, dim, 2, device=device) * (-math.log(10_000.0) / dim))
    angles = positions * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)[:, :dim]
