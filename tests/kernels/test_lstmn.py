"""The recurrence of the LSTMN against its formulas; without a GPU, Triton's interpreter runs the kernels."""

from itertools import product

import pytest
import torch
from helpers.kernels import DEVICE, doubles, interpreted
from torch.utils._python_dispatch import TorchDispatchMode

from regard.kernels import lstmn as module
from regard.kernels.lstmn import lstmn
from regard.layers.lstmn import LSTMN

pytestmark = interpreted

SIZES = {"prime": (3, 7, 5, 11), "one_word": (2, 1, 3, 2), "two_words": (1, 2, 2, 3)}


def tensors(size, dtype=torch.float64):
    batch, length, hidden, dim = size
    shapes = [(batch, length, 4 * hidden + dim), (4 * hidden + dim, hidden), (dim, hidden), (dim,)]
    return [(torch.randn(shape, dtype=dtype) * shape[-1] ** -0.5).requires_grad_() for shape in shapes]


def by_steps(inputs, recurrent, key_layer, direction, span=0):
    """The recurrence step by step, with these parameters."""
    layer = LSTMN(1, recurrent.shape[1], attention_dim=len(direction), span=span).to(inputs)
    del layer.key_layer.weight, layer.direction
    layer.key_layer.weight, layer.direction = key_layer, direction
    tapes = layer.recur_by_steps(inputs, recurrent, weights=True)
    return tapes.hidden, tapes.memory, tapes.weights


def gradients(outputs, inputs):
    generator = torch.Generator().manual_seed(1)
    upstream = [torch.randn(each.shape, generator=generator, dtype=torch.float64).to(each) for each in outputs[:2]]
    return torch.autograd.grad(outputs[:2], inputs, upstream, allow_unused=True)


@pytest.mark.parametrize(("size", "span"), [*product(SIZES, [0, 1, 3])])
def test_states_weights_and_gradients_equal_the_reference(size, span):
    inputs = tensors(SIZES[size])
    found, wanted = lstmn(*inputs, span), by_steps(*inputs, span)
    torch.testing.assert_close(found, wanted)
    if size != "one_word":
        torch.testing.assert_close(gradients(found, inputs), gradients(wanted, inputs))


@pytest.mark.parametrize("span", [0, 2])
def test_gradients_are_those_of_the_function(span):
    inputs = tensors((2, 5, 3, 7))
    assert torch.autograd.gradcheck(lambda *parts: lstmn(*parts, span)[:2], inputs)


def test_a_sentence_of_one_word_has_gradients_for_its_word_only():
    inputs = tensors(SIZES["one_word"])
    of_inputs, of_recurrent, of_keys, of_direction = gradients(lstmn(*inputs), inputs)
    assert of_inputs[..., :12].abs().sum() > 0
    assert of_inputs[..., 12:].abs().sum() == 0
    assert not any(part.any() for part in (of_recurrent, of_keys, of_direction))


def test_weights_sum_to_one_except_at_the_first_word_and_lie_below_the_diagonal():
    weights = lstmn(*tensors(SIZES["prime"]))[2]
    assert torch.equal(weights, weights.tril(-1))
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 7, dtype=torch.float64) * (torch.arange(7) > 0))
    spanned = lstmn(*tensors(SIZES["prime"]), 2)[2]
    assert torch.equal(spanned, spanned.triu(-2))


class Largest(TorchDispatchMode):
    """Notes the number of elements of the largest tensor that is created."""

    elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            self.elements = max(self.elements, result.numel())
        return result


def test_no_tensor_has_the_features_of_all_pairs_of_words():
    batch, length, hidden, dim = 2, 61, 7, 11
    inputs = tensors((batch, length, hidden, dim))
    with Largest() as seen:
        gradients(lstmn(*inputs), inputs)
    assert seen.elements <= batch * length * max(length, 4 * hidden + dim)
    with Largest() as seen:
        gradients(by_steps(*inputs), inputs)
    assert seen.elements < batch * length * length * dim


def test_half_precision_is_computed_in_float32():
    inputs = [part.detach().bfloat16().requires_grad_() for part in tensors(SIZES["prime"])]
    with torch.autocast("cpu", torch.bfloat16):
        found = lstmn(*inputs)
    wanted = by_steps(*(part.double() for part in inputs))
    assert found[0].dtype == torch.bfloat16
    assert found[2].dtype == torch.float32
    torch.testing.assert_close(found[0].double(), wanted[0], rtol=0.01, atol=0.01)
    torch.testing.assert_close(found[2].double(), wanted[2], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("size", "span"), [((1, 18, 3, 5), 0), ((2, 4, 37, 67), 0), ((2, 6, 3, 5), 2)])
def test_the_kernels_equal_the_reference_in_poisoned_buffers(size, span, monkeypatch):
    pytest.importorskip("triton", reason="Triton is there on Linux only")
    new_empty, empty_like = torch.Tensor.new_empty, torch.empty_like
    monkeypatch.setattr(module, "has_gpu_kernels", lambda tensor: tensor.dtype != torch.float64)
    monkeypatch.setattr(module, "PROGRAMS", 2 * size[0])
    monkeypatch.setattr(torch.Tensor, "new_empty", lambda *a, **k: new_empty(*a, **k).fill_(torch.nan))
    monkeypatch.setattr(torch, "empty_like", lambda *a, **k: empty_like(*a, **k).fill_(torch.nan))
    inputs = [part.detach().to(DEVICE).requires_grad_() for part in tensors(size, torch.float32)]
    exact = doubles(inputs)
    found = lstmn(*inputs, span)
    wanted = by_steps(*exact, span)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=1e-5)
    for one, other in zip(gradients(found, inputs), gradients(wanted, exact), strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-4)
