"""Additive attention on a GPU against the plain formula; without a GPU, Triton's interpreter runs the kernels.

The kernels compare 8 queries with 32 or 64 keys at a time; going back, 16 queries with 32 keys, in blocks of 32 or 64
features. Maxima are shared by 64 queries and by 64 keys.
"""

import pytest
import torch

pytest.importorskip("triton", reason="Triton is there on Linux only")

from helpers.kernels import DEVICE, assert_all_near, assert_near, doubles, interpreted

from regard import Memory, align, score
from regard.attention.attend import attend_memory
from regard.kernels import additive
from regard.kernels.additive import (
    additive_attention,
    additive_attention_reference,
    additive_logits_on_gpu,
    additive_logits_reference,
)

pytestmark = interpreted

SMALL, ODD = (2, 5, 7, 6, 3), (1, 17, 35, 33, 19)
ALL, LENGTHS, SOME = "all", "lengths", "some pairs, one query none"


@pytest.fixture(params=[0, additive.MAX_FEW_KEYS], ids=["several launches", "one launch"])
def _launches(request, monkeypatch):
    """The forward pass in several launches, as for many keys, and in one."""
    monkeypatch.setattr(additive, "MAX_FEW_KEYS", request.param)


however_launched = pytest.mark.usefixtures("_launches")


def tensors(size, scale=1.0, dtype=torch.float32):
    b, q, k, d, v = size
    shapes = [(b, q, d), (b, k, d), (b, k, v), (d,)]
    made = [torch.randn(shape, device=DEVICE) for shape in shapes]
    made[0] *= scale
    made[1] *= scale
    return [tensor.to(dtype).requires_grad_() for tensor in made]


def make_mask(size, kind):
    b, q, k, *_ = size
    if kind == LENGTHS:
        return (torch.arange(k, device=DEVICE) < k - 1)[None]
    some = torch.rand(b, q, k, device=DEVICE) < 0.7
    some[0, 0] = False
    return some if kind == SOME else None


def assert_same(function, reference, inputs, tolerance=1e-5):
    """The outputs and gradients of a kernel are those of its formula."""
    exact_inputs = doubles(inputs)
    output, exact = function(*inputs), reference(*exact_inputs)
    assert_near(output, exact, 2e-6)
    upstream = torch.randn_like(output)
    exact_grads = torch.autograd.grad(exact, exact_inputs, upstream.double())
    assert_all_near(torch.autograd.grad(output, inputs, upstream), exact_grads, tolerance)


@however_launched
@pytest.mark.parametrize(
    ("size", "mask"),
    [
        *[(SMALL, kind) for kind in (ALL, LENGTHS, SOME)],
        *[((1, 1, 1, 1, 1), kind) for kind in (ALL, SOME)],
        (ODD, SOME),
        ((1, 3, 5, 4, 130), ALL),
        ((1, 9, 66, 5, 4), LENGTHS),
        ((1, 66, 3, 5, 4), SOME),
    ],
)
def test_context_and_gradients_equal_the_reference(size, mask):
    mask = make_mask(size, mask)
    assert_same(
        lambda *parts: additive_attention(*parts, mask),
        lambda *parts: additive_attention_reference(*parts, mask),
        tensors(size),
    )


@however_launched
@pytest.mark.parametrize(("scale", "keys"), [(4.0, 66), (40.0, 7), (1e4, 7)], ids=["some out of range", "most", "all"])
def test_large_inputs_are_right(scale, keys):
    inputs = tensors((1, 10, keys, 3, 2))
    with torch.no_grad():
        inputs[0][:, 8:] *= scale
        inputs[1][:, : min(64, keys - 2)] *= scale
    assert_same(additive_attention, additive_attention_reference, inputs, 2e-5)


@however_launched
def test_memory_beyond_the_queries_is_never_read():
    """Large inputs, of which the last eight are not all there: what follows in memory is not a number."""
    query, key, values, direction = (tensor.detach() for tensor in tensors((1, 9, 5, 3, 2), scale=20.0))
    longer = torch.full((16, 3), torch.nan, device=DEVICE)
    longer[:9] = query[0]
    inputs = [longer[:9].unsqueeze(0).requires_grad_(), key.requires_grad_()]
    for grad in torch.autograd.grad(additive_attention(*inputs, values, direction).sum(), inputs):
        assert torch.isfinite(grad).all()


@however_launched
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_is_no_worse_than_direct_evaluation(dtype):
    inputs = tensors((1, 17, 11, 33, 19), dtype=dtype)
    exact = additive_attention_reference(*doubles(inputs))
    query, key, values, direction = inputs
    logits = (torch.tanh(query.unsqueeze(2) + key.unsqueeze(1)) * direction).sum(-1)
    context, direct = additive_attention(*inputs), logits.softmax(-1).float() @ values.float()
    assert context.dtype == dtype
    assert (context.double() - exact).abs().max() <= (direct.double() - exact).abs().max() + torch.finfo(dtype).eps
    for grad, one in zip(torch.autograd.grad(context.sum(), inputs), inputs, strict=True):
        assert grad.dtype == one.dtype
        assert torch.isfinite(grad).all()


@pytest.mark.parametrize(("size", "pairs"), [((2, 9, 3, 4, 3), 9 * 3), ((1, 66, 2, 4, 3), 64 * 2)], ids=str)
def test_the_number_of_pairs_in_memory_changes_nothing(size, pairs, monkeypatch):
    monkeypatch.setattr(additive, "MAX_FEW_KEYS", 0)
    inputs, mask = tensors(size), make_mask(size, SOME)
    whole = torch.autograd.grad(additive_attention(*inputs, mask).sum(), inputs)
    monkeypatch.setattr(additive, "MAX_PAIRS_IN_MEMORY", pairs)
    parts = torch.autograd.grad(additive_attention(*inputs, mask).sum(), inputs)
    torch.testing.assert_close(parts, whole, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", [SMALL, ODD, (2, 1, 9, 5, 1)], ids=str)
def test_logits_and_gradients_equal_the_reference(size):
    query, key, _, direction = tensors(size, scale=2.0)
    assert_same(additive_logits_on_gpu, additive_logits_reference, [query, key, direction])


@pytest.mark.parametrize(
    ("function", "reference"),
    [(additive_attention, additive_attention_reference), (additive_logits_on_gpu, additive_logits_reference)],
)
def test_second_derivatives_are_those_of_the_plain_formula(function, reference):
    query, key, values, direction = tensors((1, 2, 3, 4, 2))
    inputs = [query, key, *([values] if function is additive_attention else []), direction]
    found = []
    for compute, given in ((function, inputs), (reference, doubles(inputs))):
        first = torch.autograd.grad(compute(*given).pow(2).sum(), given, create_graph=True)
        found.append(torch.autograd.grad(sum(grad.pow(2).sum() for grad in first), given))
    assert_all_near(*found, 1e-4)


@pytest.mark.parametrize("causal", [False, True])
def test_attend_takes_the_kernel_when_asked(monkeypatch, causal):
    monkeypatch.setattr("regard.attention.fused.has_gpu_kernels", lambda tensor: True)
    taken = []
    monkeypatch.setattr(
        "regard.attention.fused.additive_attention", lambda *given: taken.append(given) or additive_attention(*given)
    )
    taught = score.Additive(5, 6, 7).to(DEVICE)
    query, key, values = (torch.randn(2, 3, size, width, device=DEVICE) for size, width in [(4, 5), (4, 6), (4, 2)])
    mask = torch.rand(2, 1, 1, 4, device=DEVICE) < 0.8
    memory = Memory(taught.project_key(key), values, mask)
    options = {"score": taught, "align": align.softmax, "causal": causal}
    fused = attend_memory(query, memory, kernel="fused", **options).context
    assert len(taken) == 1
    assert taken[0][4].shape == (6, 4 if causal else 1, 4), "a mask for all queries is not written out"
    plain = attend_memory(query, memory, kernel="reference", **options).context
    torch.testing.assert_close(fused, plain, rtol=1e-4, atol=1e-5)
    assert attend_memory(query, memory, kernel="fused", weights=True, **options).weights is not None
    assert len(taken) == 1, "it gives no weights"
