"""Additive scores in bfloat16 as one matrix product.

On a bounded range, tanh is nearly a sum of a few sines, and a sine of a sum is two products:

    tanh(a + b)  ~  sum_m c_m sin(w_m (a + b))  =  sum_m c_m (sin(w_m a) cos(w_m b) + cos(w_m a) sin(w_m b)).

So v' tanh(query + key) is a product of 2 M features for each feature of a query with as many of a key, which tensor
cores do. What the sines are wrong by, at most `error` for each feature, is less than rounding tanh to bfloat16 may
cost, which is 2^-9.
"""

import functools
from typing import NamedTuple

import torch
import triton
from torch import Tensor

from regard.kernels import additive_sines_triton as kernels

PAYS = 1 << 32
"""Features of pairs (batch x query x key x feature) from which on the sines are 1.5 times as fast or more."""
MOST = 1 << 28
"""Sines and cosines of queries and keys that may be held: half a gibibyte for both."""
BLOCK = 1024


class Waves(NamedTuple):
    """tanh(x) to within `error` where |x| <= `reach`: the sum of factor sin(frequency x)."""

    reach: float
    error: float
    frequencies: tuple[float, ...]
    factors: tuple[float, ...]


WAVES = (
    Waves(4, 0.00041, (0.5326, 1.65011, 2.88015, 4.23674), (1.146645, 0.176091, 0.028035, 0.003689)),
    Waves(6, 0.00096, (0.40065, 1.21984, 2.0803, 2.98796, 3.9398), (1.19781, 0.252048, 0.067442, 0.017052, 0.004157)),
    Waves(
        8,
        0.0015,
        (0.32019, 0.96817, 1.63478, 2.32396, 3.03562, 3.76575),
        (1.223693, 0.30115, 0.104569, 0.036428, 0.012278, 0.004367),
    ),
    Waves(
        10,
        0.0019,
        (0.26638, 0.80287, 1.34893, 1.90727, 2.47832, 3.06141, 3.65293),
        (1.238354, 0.333055, 0.134602, 0.056605, 0.023546, 0.009614, 0.004461),
    ),
)
"""Fitted to the largest error, frequencies and factors both."""


def waves_for(query: Tensor, key: Tensor) -> Waves | None:
    """Which sines serve these queries (b, q, d) and keys (b, k, d); None where the other kernels are to be taken.

    The largest inputs decide, and are waited for; a CUDA graph can not wait.
    """
    pays = query.numel() * key.shape[1] >= PAYS and query.dtype == key.dtype == torch.bfloat16
    if not pays or (query.is_cuda and torch.cuda.is_current_stream_capturing()):
        return None
    largest = [torch.linalg.vector_norm(side, float("inf"), dtype=torch.float32) for side in (query, key)]
    reach = (largest[0] + largest[1]).item()
    fitting = next((waves for waves in WAVES if reach <= waves.reach), None)
    held = 0 if fitting is None else (query.numel() + key.numel()) * 2 * len(fitting.frequencies)
    return fitting if held <= MOST else None


class Sines:
    """Queries and keys as sines and cosines; what additive_gpu.Sides is for the other kernels."""

    def __init__(self, query: Tensor, key: Tensor, direction: Tensor, mask: Tensor | None, waves: Waves) -> None:
        self.query, self.key, self.direction, self.mask = query, key, direction.float(), mask
        self.waves = _on_device(waves, query.device)
        self.num_waves = len(waves.frequencies)

    def logits(self) -> Tensor:
        """v' tanh(query + key), (b, q, k) in float32; -inf where the mask is False."""
        # Sines are at most 1, and so is v where its largest is divided out: float16 rounds them less than bfloat16.
        largest = torch.linalg.vector_norm(self.direction, float("inf")).clamp_min(torch.finfo(torch.float32).tiny)
        of_query = self._features(self.query, self.direction / largest, torch.float16)
        logits = _product(of_query, self._features(self.key, None, torch.float16).mT).mul_(largest)
        return logits if self.mask is None else logits.masked_fill_(~self.mask, float("-inf"))

    def of_weights(self, weights: Tensor, gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """From the softmax (b, q, k) and its gradients to those of queries, keys and direction, in float32."""
        common = torch.linalg.vecdot(weights, gradients).unsqueeze(-1)
        return self.of_logits((gradients - common).mul_(weights))

    def of_logits(self, gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """From the gradients of the logits to those of queries, keys and direction, in float32."""
        # Gradients may be too small for float16.
        narrow, of_key = gradients.bfloat16(), self._features(self.key, None, torch.bfloat16)
        grad_query, of_direction = self._back(self.query, _product(narrow, of_key), is_query=True)
        of_query = self._features(self.query, self.direction, torch.bfloat16)
        grad_key, _ = self._back(self.key, _product(narrow.mT, of_query), is_query=False)
        return grad_query, grad_key, of_direction.sum((0, 1))

    def _features(self, side: Tensor, direction: Tensor | None, dtype: torch.dtype) -> Tensor:
        made = side.new_empty(*side.shape[:2], 2 * self.num_waves * side.shape[2], dtype=dtype)
        kernels.features[(triton.cdiv(side.numel(), BLOCK),)](
            side,
            side if direction is None else direction,
            self.waves,
            made,
            side.numel(),
            side.shape[2],
            self.num_waves,
            IS_QUERY=direction is not None,
            BLOCK=BLOCK,
        )
        return made

    def _back(self, side: Tensor, gradients: Tensor, *, is_query: bool) -> tuple[Tensor, Tensor]:
        of_side = side.new_empty(side.shape, dtype=torch.float32)
        of_direction = torch.empty_like(of_side) if is_query else of_side
        kernels.features_back[(triton.cdiv(side.numel(), BLOCK),)](
            side,
            self.direction,
            self.waves,
            gradients,
            of_side,
            of_direction,
            side.numel(),
            side.shape[2],
            self.num_waves,
            IS_QUERY=is_query,
            BLOCK=BLOCK,
        )
        return of_side, of_direction


def _product(first: Tensor, second: Tensor) -> Tensor:
    """Of half precision, in float32."""
    if first.is_cuda:
        return torch.bmm(first, second, out_dtype=torch.float32)
    return first.float() @ second.float()


@functools.cache
def _on_device(waves: Waves, device: torch.device) -> Tensor:
    return torch.tensor([*waves.frequencies, *waves.factors], device=device, dtype=torch.float32)
