"""The kernel of local attention against the plain formula; without a GPU, Triton's interpreter runs it."""

import pytest
import torch

pytest.importorskip("triton", reason="Triton is there on Linux only")

from regard import Attention, align, attend, mask, score
from regard.kernels import local
from regard.kernels.local import local_attention, local_attention_reference

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
pytestmark = [
    # Triton's interpreter computes with numpy, which warns where exp overflows to infinity, as it may here,
    pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning"),
    # and takes numbers out of arrays in a way that numpy is about to give up.
    pytest.mark.filterwarnings("ignore:Conversion of an array with ndim > 0:DeprecationWarning"),
]

SIZES = {"small": (2, 3, 9, 6, 3), "one": (1, 1, 1, 1, 1), "wide": (1, 2, 40, 33, 130)}


def tensors(size, dtype=torch.float32):
    b, q, k, d, v = size
    query, keys, values = (torch.randn(shape, device=DEVICE) for shape in [(b, q, d), (b, k, d), (b, k, v)])
    # Over both edges, too.
    centres = (torch.rand(b, q, device=DEVICE) * 1.4 - 0.2) * k
    made = [tensor.to(dtype).requires_grad_() for tensor in (query, keys, values)]
    return [*made, centres.requires_grad_()]


def doubles(inputs):
    return [None if tensor is None else tensor.detach().double().requires_grad_() for tensor in inputs]


def assert_near(ours, exact, tolerance):
    difference = (ours.double() - exact).abs().max()
    assert difference <= tolerance * max(1.0, exact.abs().max().item()), difference.item()


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("sigma", [None, 1.5])
@pytest.mark.parametrize("additive", [False, True])
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_context_and_gradients_equal_the_reference(size, additive, sigma, masked):
    inputs = tensors(size)
    direction = torch.randn(size[3], device=DEVICE, requires_grad=True) if additive else None
    exact_inputs, exact_direction = doubles(inputs), doubles([direction])[0]
    allowed = torch.rand(size[:3], device=DEVICE) < 0.7 if masked else None
    options = {"window": 3, "sigma": sigma, "scale": 1.0 if additive else 0.5}
    context = local_attention(*inputs, allowed, direction=direction, **options)
    exact = local_attention_reference(*exact_inputs, allowed, direction=exact_direction, **options)
    assert_near(context, exact, 2e-6)
    upstream = torch.randn_like(context)
    wanted = [*inputs[: 4 if sigma else 3], *([direction] if additive else [])]
    exact_wanted = [*exact_inputs[: 4 if sigma else 3], *([exact_direction] if additive else [])]
    ours = torch.autograd.grad(context, wanted, upstream)
    theirs = torch.autograd.grad(exact, exact_wanted, upstream.double(), allow_unused=True, materialize_grads=True)
    for grad, exact_grad in zip(ours, theirs, strict=True):
        assert_near(grad, exact_grad, 1e-5)


def test_second_derivatives_are_those_of_the_plain_formula():
    inputs = tensors((1, 2, 5, 4, 2))
    exact_inputs = doubles(inputs)
    found = []
    for function, given in ((local_attention, inputs), (local_attention_reference, exact_inputs)):
        first = torch.autograd.grad(function(*given, window=2, sigma=1.0).pow(2).sum(), given, create_graph=True)
        found.append(torch.autograd.grad(sum(grad.pow(2).sum() for grad in first), given))
    for grad, exact in zip(*found, strict=True):
        assert_near(grad, exact, 1e-4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_is_near(dtype):
    inputs = tensors(SIZES["small"], dtype)
    options = {"window": 2, "sigma": 1.0, "scale": 0.3}
    context = local_attention(*inputs, **options)
    assert context.dtype == dtype
    assert_near(context, local_attention_reference(*doubles(inputs), **options), 4 * torch.finfo(dtype).eps)
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
    monkeypatch.setattr(local, "local_attention", lambda *a, **b: calls.append(a) or local_attention(*a, **b))
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
    assert taken[0][4].shape == (6, 1, 9), "a mask for all queries is not written out"
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
