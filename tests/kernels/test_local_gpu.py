"""The kernel of local attention against the plain formula; without a GPU, Triton's interpreter runs it."""

import pytest
import torch

pytest.importorskip("triton", reason="Triton is there on Linux only")

from helpers.kernels import DEVICE, assert_all_near, assert_near, doubles, interpreted

from regard import Attention, align, attend, mask, score
from regard.kernels import local
from regard.kernels.local import Window, local_attention, local_attention_reference

pytestmark = interpreted

SIZES = {"small": (2, 3, 9, 6, 3), "one": (1, 1, 1, 1, 1), "wide": (1, 2, 40, 33, 130)}


def tensors(size, dtype=torch.float32):
    b, q, k, d, v = size
    query, keys, values = (torch.randn(shape, device=DEVICE) for shape in [(b, q, d), (b, k, d), (b, k, v)])
    # Over both edges, too.
    centres = (torch.rand(b, q, device=DEVICE) * 1.4 - 0.2) * k
    made = [tensor.to(dtype).requires_grad_() for tensor in (query, keys, values)]
    return [*made, centres.requires_grad_()]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("sigma", [None, 1.5])
@pytest.mark.parametrize("additive", [False, True])
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_context_and_gradients_equal_the_reference(size, additive, sigma, masked):
    inputs = [*tensors(size), *([torch.randn(size[3], device=DEVICE, requires_grad=True)] if additive else [None])]
    exact_inputs = [*doubles(inputs[:4]), *(doubles(inputs[4:]) if additive else [None])]
    allowed = torch.rand(size[:3], device=DEVICE) < 0.7 if masked else None
    window = Window(3, sigma, 1.0 if additive else 0.5, allowed)
    context, exact = local_attention(*inputs, window), local_attention_reference(*exact_inputs, window)
    assert_near(context, exact, 2e-6)
    upstream = torch.randn_like(context)
    wanted = [index for index in range(5) if (index != 3 or sigma) and (index != 4 or additive)]
    ours = torch.autograd.grad(context, [inputs[index] for index in wanted], upstream)
    exact_wanted = [exact_inputs[index] for index in wanted]
    assert_all_near(ours, torch.autograd.grad(exact, exact_wanted, upstream.double(), materialize_grads=True), 1e-5)


@pytest.mark.parametrize("additive", [False, True])
def test_second_derivatives_are_those_of_the_plain_formula(additive):
    inputs = tensors((1, 2, 5, 4, 2)) + [torch.randn(4, device=DEVICE, requires_grad=True)] * additive
    found = []
    for function, given in ((local_attention, inputs), (local_attention_reference, doubles(inputs))):
        arguments = given if additive else [*given, None]
        first = torch.autograd.grad(function(*arguments, Window(2, 1.0)).pow(2).sum(), given, create_graph=True)
        found.append(torch.autograd.grad(sum(grad.pow(2).sum() for grad in first), given))
    assert_all_near(*found, 1e-4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_is_near(dtype):
    inputs, window = tensors(SIZES["small"], dtype), Window(2, 1.0, 0.3)
    context = local_attention(*inputs, None, window)
    assert context.dtype == dtype
    exact = local_attention_reference(*doubles(inputs), None, window)
    assert_near(context, exact, 4 * torch.finfo(dtype).eps)
    for grad, one in zip(torch.autograd.grad(context.sum(), inputs), inputs, strict=True):
        assert grad.dtype == one.dtype
        assert torch.isfinite(grad).all()


ALIGNMENTS = {"local-m": lambda: align.LocalMonotonic(2), "local-p": lambda: align.LocalPredictive(5, window=2)}
SCORES = {"additive": lambda: score.Additive(5, 6, 7), "general": lambda: score.General(5, 6)}


@pytest.fixture
def taken(monkeypatch):
    """Calls of the kernel, which is there on any device."""
    monkeypatch.setattr("regard.attention.fused.has_gpu_kernels", lambda tensor: tensor.dtype != torch.float64)
    calls = []
    monkeypatch.setattr(
        "regard.attention.fused.local_attention", lambda *given: calls.append(given) or local_attention(*given)
    )
    return calls


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_attend_takes_the_kernel(taken, alignment, kind):
    attention = Attention(SCORES[kind](), ALIGNMENTS[alignment]()).to(DEVICE)
    states, query = torch.randn(2, 3, 9, 6, device=DEVICE), torch.randn(2, 3, 4, 5, device=DEVICE)
    padding = mask.padding(torch.tensor([9, 4], device=DEVICE)).unsqueeze(1)
    memory = attention.remember(states, padding)
    read = attention(query, memory)
    assert len(taken) == 1
    assert taken[0][5].mask.shape == (6, 1, 9), "a mask for all queries is not written out"
    plain = attention(query, memory, kernel="reference")
    assert len(taken) == 1
    torch.testing.assert_close(read.context, plain.context, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(read.extras["centre"], plain.extras["centre"])
    assert read.state == plain.state
    assert attention(query, memory, weights=True).weights is not None
    assert len(taken) == 1, "it gives no weights"
    torch.testing.assert_close(attention(query, memory, kernel="fused").context, read.context)


def test_attend_works_without_the_kernel_where_it_does_not_apply(taken):
    query, key = torch.randn(2, 4, 5, device=DEVICE), torch.randn(2, 9, 5, device=DEVICE)
    attend(query, key, align=align.LocalMonotonic(local.MAX_WINDOW + 1))
    attend(query, key, align=align.Spatial(2))
    attend(query, key[:1].expand(2, -1, -1), align=align.LocalMonotonic(2))
    attend(query, key, score=score.Location(5, 9).to(DEVICE), align=align.LocalMonotonic(2))
    torch.use_deterministic_algorithms(True)
    try:
        attend(query, key, align=align.LocalMonotonic(2))
    finally:
        torch.use_deterministic_algorithms(False)
    assert not taken
    attend(query, key, align=align.LocalMonotonic(2))
    assert taken
