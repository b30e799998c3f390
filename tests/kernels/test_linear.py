"""The linear layer for mixed precision against torch's."""

import pytest
import torch
from torch import nn

from regard.kernels.linear import Linear, linear


@pytest.mark.parametrize("has_bias", [True, False])
def test_outputs_and_gradients_equal_those_of_torch_in_half_precision(has_bias):
    layer = nn.Linear(7, 5, bias=has_bias)
    inputs, upstream = torch.randn(3, 11, 7, requires_grad=True), torch.randn(3, 11, 5).bfloat16()
    with torch.autocast("cpu", torch.bfloat16, cache_enabled=False):
        expected = layer(inputs)
    found = linear(inputs, layer.weight, layer.bias, torch.bfloat16)
    assert found.dtype == torch.bfloat16
    assert torch.equal(found, expected)
    wanted = [inputs, *layer.parameters()]
    pairs = zip(*(torch.autograd.grad(output, wanted, upstream) for output in (found, expected)), strict=True)
    for one, other in pairs:
        assert one.dtype == other.dtype == torch.float32
        torch.testing.assert_close(one, other, rtol=2e-2, atol=2e-2)


def test_without_autocast_it_is_torchs_layer():
    torch.manual_seed(1)
    ours = Linear(7, 5)
    torch.manual_seed(1)
    other, inputs = nn.Linear(7, 5), torch.randn(3, 7)
    assert torch.equal(ours(inputs), other(inputs))
    assert ours.state_dict().keys() == other.state_dict().keys()
