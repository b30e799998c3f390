"""The kernels for a GPU against the plain formula; without a GPU, Triton's interpreter runs them."""

import pytest
import torch

pytest.importorskip("triton", reason="Triton is there on Linux only")

from regard import Memory, align, score
from regard.attention.attend import read
from regard.kernels import additive_gpu
from regard.kernels.additive import additive_logits_reference
from regard.kernels.additive_gpu import additive_attention, additive_attention_reference, additive_logits

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
pytestmark = [
    # Triton's interpreter computes with numpy, which warns where exp overflows to infinity, as it may here,
    pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning"),
    # and takes numbers out of arrays in a way that numpy is about to give up.
    pytest.mark.filterwarnings("ignore:Conversion of an array with ndim > 0:DeprecationWarning"),
]

SIZES = {
    "small": (2, 5, 7, 6, 3),
    "one": (1, 1, 1, 1, 1),
    "odd": (1, 17, 70, 33, 19),
    "wide values": (1, 3, 5, 4, 130),
    "more keys than a tile": (1, 9, 66, 5, 4),
    "more queries than a tile": (1, 66, 3, 5, 4),
}


def tensors(size, scale=1.0, dtype=torch.float32):
    b, q, k, d, v = size
    shapes = [(b, q, d), (b, k, d), (b, k, v), (d,)]
    made = [torch.randn(shape, device=DEVICE) for shape in shapes]
    made[0] *= scale
    made[1] *= scale
    return [tensor.to(dtype).requires_grad_() for tensor in made]


def doubles(inputs):
    return [tensor.detach().double().requires_grad_() for tensor in inputs]


def masks(size):
    b, q, k, *_ = size
    some = torch.rand(b, q, k, device=DEVICE) < 0.7
    some[0, 0] = False
    return {"all": None, "some pairs, one query none": some, "lengths": (torch.arange(k, device=DEVICE) < k - 1)[None]}


def assert_near(ours, exact, tolerance):
    difference = (ours.double() - exact).abs().max()
    assert difference <= tolerance * max(1.0, exact.abs().max().item()), difference.item()


@pytest.mark.parametrize("mask", ["all", "some pairs, one query none", "lengths"])
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_context_and_gradients_equal_the_reference(size, mask):
    inputs = tensors(size)
    exact_inputs = doubles(inputs)
    mask = masks(size)[mask]
    context, exact = additive_attention(*inputs, mask), additive_attention_reference(*exact_inputs, mask)
    assert_near(context, exact, 2e-6)
    upstream = torch.randn_like(context)
    ours = torch.autograd.grad(context, inputs, upstream)
    for grad, exact_grad in zip(ours, torch.autograd.grad(exact, exact_inputs, upstream.double()), strict=True):
        assert_near(grad, exact_grad, 1e-5)


@pytest.mark.parametrize("scale", [4.0, 40.0, 1e4], ids=["some tiles out of range", "most", "all"])
def test_large_inputs_are_right(scale):
    inputs = tensors((1, 10, 70, 3, 2))
    with torch.no_grad():
        inputs[0][:, 8:] *= scale
        inputs[1][:, :64] *= scale
    exact_inputs = doubles(inputs)
    context, exact = additive_attention(*inputs), additive_attention_reference(*exact_inputs)
    assert_near(context, exact, 2e-6)
    ours, theirs = torch.autograd.grad(context.sum(), inputs), torch.autograd.grad(exact.sum(), exact_inputs)
    for grad, exact_grad in zip(ours, theirs, strict=True):
        assert_near(grad, exact_grad, 2e-5)


def test_memory_beyond_the_queries_is_never_read():
    """Large inputs, of which the last eight are not all there: what follows in memory is not a number."""
    query, key, values, direction = (tensor.detach() for tensor in tensors((1, 9, 5, 3, 2), scale=20.0))
    longer = torch.full((16, 3), torch.nan, device=DEVICE)
    longer[:9] = query[0]
    inputs = [longer[:9].unsqueeze(0).requires_grad_(), key.requires_grad_()]
    for grad in torch.autograd.grad(additive_attention(*inputs, values, direction).sum(), inputs):
        assert torch.isfinite(grad).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_is_no_worse_than_direct_evaluation(dtype):
    inputs = tensors(SIZES["odd"], dtype=dtype)
    exact_inputs = doubles(inputs)
    exact = additive_attention_reference(*exact_inputs)
    query, key, values, direction = inputs
    logits = (torch.tanh(query.unsqueeze(2) + key.unsqueeze(1)) * direction).sum(-1)
    context, direct = additive_attention(*inputs), logits.softmax(-1).float() @ values.float()
    assert context.dtype == dtype
    assert (context.double() - exact).abs().max() <= (direct.double() - exact).abs().max() + torch.finfo(dtype).eps
    for grad, one in zip(torch.autograd.grad(context.sum(), inputs), inputs, strict=True):
        assert grad.dtype == one.dtype
        assert torch.isfinite(grad).all()


def test_the_number_of_pairs_in_memory_changes_nothing(monkeypatch):
    size = (2, 66, 3, 4, 3)
    inputs, mask = tensors(size), masks(size)["some pairs, one query none"]
    whole = torch.autograd.grad(additive_attention(*inputs, mask).sum(), inputs)
    monkeypatch.setattr(additive_gpu, "MAX_PAIRS_IN_MEMORY", 64 * 3)
    parts = torch.autograd.grad(additive_attention(*inputs, mask).sum(), inputs)
    torch.testing.assert_close(parts, whole, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", [SIZES["small"], SIZES["odd"], (2, 1, 9, 5, 1)], ids=str)
def test_logits_and_gradients_equal_the_reference(size):
    query, key, _, direction = tensors(size, scale=2.0)
    inputs = [query, key, direction]
    exact_inputs = doubles(inputs)
    logits, exact = additive_logits(*inputs), additive_logits_reference(*exact_inputs)
    assert_near(logits, exact, 2e-6)
    upstream = torch.randn_like(logits)
    ours = torch.autograd.grad(logits, inputs, upstream)
    for grad, exact_grad in zip(ours, torch.autograd.grad(exact, exact_inputs, upstream.double()), strict=True):
        assert_near(grad, exact_grad, 1e-5)


def test_second_derivatives_are_those_of_the_plain_formula():
    inputs = tensors((1, 2, 3, 4, 2))
    exact_inputs = doubles(inputs)
    for function, given, wanted in (
        (additive_attention, inputs, exact_inputs),
        (additive_logits, [inputs[0], inputs[1], inputs[3]], [exact_inputs[0], exact_inputs[1], exact_inputs[3]]),
    ):
        reference = additive_attention_reference if function is additive_attention else additive_logits_reference
        first = torch.autograd.grad(function(*given).pow(2).sum(), given, create_graph=True)
        exact_first = torch.autograd.grad(reference(*wanted).pow(2).sum(), wanted, create_graph=True)
        second = torch.autograd.grad(sum(grad.pow(2).sum() for grad in first), given)
        exact_second = torch.autograd.grad(sum(grad.pow(2).sum() for grad in exact_first), wanted)
        for grad, exact in zip(second, exact_second, strict=True):
            assert_near(grad, exact, 1e-4)


@pytest.mark.parametrize("causal", [False, True])
def test_attend_takes_the_kernel_when_asked(monkeypatch, causal):
    monkeypatch.setattr("regard.attention.fused.has_gpu_kernels", lambda tensor: True)
    taken = []
    monkeypatch.setattr(
        additive_gpu, "additive_attention", lambda *given: taken.append(given) or additive_attention(*given)
    )
    additive = score.Additive(5, 6, 7).to(DEVICE)
    query, key, values = (torch.randn(2, 3, size, width, device=DEVICE) for size, width in [(4, 5), (4, 6), (4, 2)])
    mask = torch.rand(2, 1, 1, 4, device=DEVICE) < 0.8
    memory = Memory(additive.project_key(key), values, mask)
    options = {"score": additive, "align": align.softmax, "causal": causal}
    fused = read(query, memory, kernel="fused", **options).context
    assert len(taken) == 1
    assert taken[0][4].shape == (6, 4 if causal else 1, 4), "a mask for all queries is not written out"
    plain = read(query, memory, kernel="reference", **options).context
    torch.testing.assert_close(fused, plain, rtol=1e-4, atol=1e-5)
    assert read(query, memory, kernel="fused", weights=True, **options).weights is not None
    assert len(taken) == 1, "it gives no weights"
