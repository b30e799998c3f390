"""The kernels of layer normalisation against torch's; without a GPU, Triton's interpreter runs them."""

import pytest
import torch

pytest.importorskip("triton", reason="Triton is there on Linux only")

from helpers.kernels import DEVICE, interpreted

from regard.kernels import layer_norm as kernels
from regard.kernels.layer_norm import layer_norm
from regard.layers.transformer import LayerNorm

pytestmark = interpreted
EPS = 1e-5


@pytest.fixture(autouse=True)
def _kernels(monkeypatch):
    """The kernels compute float32; float64 is left to torch. Few programs share the rows."""
    monkeypatch.setattr(kernels, "has_gpu_kernels", lambda tensor: tensor.dtype != torch.float64)
    monkeypatch.setattr(kernels, "TILE", 64)
    monkeypatch.setattr(kernels, "PROGRAMS", 3)


def results(inputs, weight, bias, upstream, dtype=None):
    inputs, weight, bias = (part.detach().requires_grad_() for part in (inputs, weight, bias))
    output = layer_norm(inputs, weight, bias, EPS, dtype)
    return [output, *torch.autograd.grad(output, (inputs, weight, bias), upstream.to(output.dtype))]


@pytest.mark.parametrize("shape", [(1, 1), (3, 5, 7), (2, 11, 16), (29, 33), (1, 300)])
def test_outputs_and_gradients_equal_those_of_torch(shape):
    inputs, upstream = 3 + 2 * torch.randn(shape, device=DEVICE), torch.randn(shape, device=DEVICE)
    weight, bias = torch.randn(2, shape[-1], device=DEVICE)
    exact = results(inputs.double(), weight.double(), bias.double(), upstream.double())
    for one, other in zip(results(inputs, weight, bias, upstream), exact, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-4)


def test_a_result_in_half_precision_is_the_rounded_one():
    inputs, upstream = torch.randn(2, 13, 16, device=DEVICE)
    weight, bias = torch.randn(2, 16, device=DEVICE)
    half, *gradients = results(inputs, weight, bias, upstream.bfloat16(), torch.bfloat16)
    exact, *others = results(inputs.double(), weight.double(), bias.double(), upstream.bfloat16().double())
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half, exact.bfloat16(), rtol=1e-2, atol=1e-3)
    for one, other in zip(gradients, others, strict=True):
        assert one.dtype == torch.float32
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("feeds_products", [True, False])
def test_under_autocast_only_what_feeds_products_is_rounded(feeds_products):
    norm, inputs = LayerNorm(8, feeds_products=feeds_products).to(DEVICE), torch.randn(3, 8, device=DEVICE)
    with torch.autocast(DEVICE, torch.bfloat16):
        assert norm(inputs).dtype == (torch.bfloat16 if feeds_products and DEVICE == "cuda" else torch.float32)
    assert norm(inputs).dtype == torch.float32
