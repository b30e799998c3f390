"""Products of few rows against torch's; without a GPU, Triton's interpreter runs the kernel."""

import pytest
import torch

pytest.importorskip("triton", reason="Triton is there on Linux only")

from helpers.kernels import DEVICE, assert_near, interpreted

from regard.kernels import products
from regard.kernels.hoisted import Hoisted, hoisting
from regard.kernels.products import FewRows, prefers_few_rows

pytestmark = interpreted

SIZES = {"one row": (1, 36, 44), "odd": (7, 1000, 68), "wide": (80, 132, 2052), "deep": (5, 2100, 100)}
"""Rows, columns of the inputs, columns of the product."""
TF32 = 2**-9


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_products_forward_and_back_equal_the_plain_ones(size):
    rows, inner, columns = size
    wider = torch.randn(rows, inner + 8, device=DEVICE)
    inputs, grad = wider[:, 4 : 4 + inner], torch.randn(rows, columns, device=DEVICE)
    weight, bias = torch.randn(columns, inner, device=DEVICE), torch.randn(columns, device=DEVICE)
    few = FewRows(weight)
    for _ in range(2):  # the second time, the counters must have been reset
        assert_near(few.forward(inputs, bias), inputs.double() @ weight.double().T + bias.double(), TF32)
        assert_near(few.backward(grad), grad.double() @ weight.double(), TF32)
    assert not any(count.any() for count in few.arrived.values())


def test_a_recurrence_uses_them_where_tf32_is_allowed(monkeypatch):
    monkeypatch.setattr(products, "has_gpu_kernels", lambda tensor: True)
    layer, state = Hoisted(36, 36).to(DEVICE), torch.randn(3, 36, device=DEVICE)
    taken, kernel = [], FewRows._product
    monkeypatch.setattr(FewRows, "_product", lambda *given: taken.append(given) or kernel(*given))

    def run():
        with hoisting(layer):
            output = layer(torch.tanh(layer(state)))
        return output, *torch.autograd.grad(output.square().sum(), list(layer.parameters()))

    wanted = run()
    assert not taken
    monkeypatch.setattr(products, "_may_use_tf32", lambda: True)
    assert prefers_few_rows(state, layer.weight)
    assert not prefers_few_rows(state[:, :33], layer.weight[:, :33]), "rows must be aligned"
    assert not prefers_few_rows(state.bfloat16(), layer.weight)
    for one, other in zip(run(), wanted, strict=True):
        assert_near(one, other.double(), 4 * TF32)
    assert len(taken) == 4, "two forward and two back"
