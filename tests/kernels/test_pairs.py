"""Memory-efficient logits of any pair function against the plain formula."""

import pytest
import torch
from torch.nn import functional

from regard.kernels import pairs
from regard.kernels.pairs import pairwise_logits, pairwise_logits_reference


def network(features, weight, bias, direction):
    return functional.linear(features.relu(), weight, bias).tanh() @ direction


def smooth(features, weight, bias, direction):
    return functional.linear(features.tanh(), weight, bias).tanh() @ direction


def make_inputs(*lead, device="cpu"):
    sizes = [(*lead, 5, 7), (*lead, 11, 7), (3, 7), (3,), (3,)]
    return [torch.randn(size, dtype=torch.float64, device=device, requires_grad=True) for size in sizes]


@pytest.mark.parametrize("block", [1, 50, 10**6])
@pytest.mark.parametrize("lead", [(), (2,), (2, 3)], ids=str)
def test_logits_and_gradients_equal_the_reference(monkeypatch, lead, block, device):
    monkeypatch.setattr(pairs, "CPU_BLOCK", block)
    monkeypatch.setattr(pairs, "GPU_BLOCK", block)
    query, key, *parameters = inputs = make_inputs(*lead, device=device)
    lean = pairwise_logits(query, key, network, *parameters, width=10)
    plain = pairwise_logits_reference(query, key, network, *parameters)
    torch.testing.assert_close(lean, plain)
    upstream = torch.randn_like(plain)
    torch.testing.assert_close(
        torch.autograd.grad(lean, inputs, upstream), torch.autograd.grad(plain, inputs, upstream)
    )


def test_gradcheck():
    query, key, *parameters = make_inputs(2)
    assert torch.autograd.gradcheck(
        lambda q, k, *p: pairwise_logits(q, k, network, *p, width=10), (query[:, :2], key[:, :3], *parameters)
    )


def test_second_derivatives_are_right():
    query, key, *parameters = make_inputs(1)
    assert torch.autograd.gradgradcheck(
        lambda q, k, *p: pairwise_logits(q, k, smooth, *p, width=10), (query[:, :2], key[:, :2], *parameters)
    )
