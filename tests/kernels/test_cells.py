"""The cells' kernels against their formulas; without a GPU, Triton's interpreter runs them."""

import pytest
import torch

pytest.importorskip("triton", reason="Triton is there on Linux only")

from helpers.kernels import DEVICE, doubles, interpreted

from regard.kernels import cells

pytestmark = interpreted

OPERATIONS = {
    "gru_gates": (cells.gru_gates, (3, 2, 1)),
    "gru_blend": (cells.gru_blend, (1, 1, 1, 1)),
    "lstm": (cells.lstm, (4, 4, 1)),
}


@pytest.fixture(autouse=True)
def _kernels(monkeypatch):
    """The kernels compute float32; float64 is left to the formulas."""
    monkeypatch.setattr(cells, "has_gpu_kernels", lambda tensor: tensor.dtype != torch.float64)


def as_tuple(found):
    return found if isinstance(found, tuple) else (found,)


def outputs_and_gradients(function, inputs):
    found = as_tuple(function(*inputs))
    weighed = sum((part * torch.linspace(-1, 1, part.numel(), device=DEVICE).view_as(part)).sum() for part in found)
    return [*found, *torch.autograd.grad(weighed, inputs)]


@pytest.mark.parametrize("scale", [1.0, 60.0], ids=["usual", "saturated"])
@pytest.mark.parametrize("size", [1, 7, 1030])
@pytest.mark.parametrize("name", OPERATIONS)
def test_outputs_and_gradients_equal_the_formula(name, size, scale):
    operation, widths = OPERATIONS[name]
    inputs = [scale * torch.randn(3, width * size, device=DEVICE) for width in widths]
    inputs = [tensor.requires_grad_() for tensor in inputs]
    exact = outputs_and_gradients(operation, doubles(inputs))
    for one, other in zip(outputs_and_gradients(operation, inputs), exact, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=2e-6 * scale)


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_step_of_a_longer_tensor_can_be_the_input(name):
    operation, widths = OPERATIONS[name]
    whole = torch.randn(3, 5, widths[0] * 4 + 2, device=DEVICE)
    step = whole[:, 2, 1:-1]
    rest = [torch.randn(3, width * 4, device=DEVICE) for width in widths[1:]]
    exact = as_tuple(operation(step.double(), *(part.double() for part in rest)))
    torch.testing.assert_close(as_tuple(operation(step, *rest)), tuple(part.float() for part in exact))


def test_types_are_kept():
    inputs, product = (torch.randn(2, 8, device=DEVICE, dtype=torch.bfloat16, requires_grad=True) for _ in range(2))
    cell = torch.randn(2, 2, device=DEVICE, requires_grad=True)
    hidden, new_cell = cells.lstm(inputs, product, cell)
    assert (hidden.dtype, new_cell.dtype) == (torch.float32, torch.float32)
    grads = torch.autograd.grad(hidden.sum() + new_cell.sum(), [inputs, product, cell])
    assert [grad.dtype for grad in grads] == [torch.bfloat16, torch.bfloat16, torch.float32]
