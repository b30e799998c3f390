"""Memory-efficient additive logits against the plain formula."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.kernels import additive, pairs
from regard.kernels.additive import additive_logits, additive_logits_reference, exponentials_of
from regard.kernels.pairs import blocks


@pytest.fixture(autouse=True, scope="module")
def _blocks_for_small_calls_too():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(additive, "MAX_FEATURES_FOR_FORMULA", -1)
        yield


def grads(function, *inputs, upstream):
    inputs = [tensor.clone().requires_grad_() for tensor in inputs]
    output = function(*inputs)
    return output, torch.autograd.grad(output, inputs, upstream)


def test_small_calls_take_the_formula(monkeypatch):
    monkeypatch.setattr(additive, "MAX_FEATURES_FOR_FORMULA", 2 * 5 * 11 * 7)
    taken = []
    monkeypatch.setattr(additive, "blocks", lambda *sides, **sizes: taken.append(1) or blocks(*sides, **sizes))
    query, key, direction = torch.randn(2, 5, 7), torch.randn(2, 11, 7), torch.randn(7)
    small = grads(additive_logits, query, key, direction, upstream=torch.ones(2, 5, 11))
    assert not taken
    monkeypatch.setattr(additive, "MAX_FEATURES_FOR_FORMULA", 2 * 5 * 11 * 7 - 1)
    larger = grads(additive_logits, query, key, direction, upstream=torch.ones(2, 5, 11))
    assert taken
    torch.testing.assert_close(larger, small)


def test_a_retained_graph_gives_its_gradients_twice():
    inputs = [torch.randn(size, requires_grad=True) for size in [(2, 5, 3), (2, 7, 3), (3,)]]
    loss = additive_logits(*inputs).square().sum()
    torch.testing.assert_close(torch.autograd.grad(loss, inputs, retain_graph=True), torch.autograd.grad(loss, inputs))


@pytest.mark.parametrize("scale", [1.0, 30.0, 200.0], ids=["in range", "large", "out of range: tanh itself"])
@pytest.mark.parametrize("lead", [(), (2,), (2, 3)], ids=str)
def test_logits_and_gradients_equal_the_reference(lead, scale, device):
    query = torch.randn(*lead, 5, 7, device=device) * scale
    key = torch.randn(*lead, 11, 7, device=device) * scale
    direction, upstream = torch.randn(7, device=device), torch.randn(*lead, 5, 11, device=device)
    lean, lean_grads = grads(additive_logits, query, key, direction, upstream=upstream)
    wide = [tensor.double() for tensor in (query, key, direction)]
    plain, plain_grads = grads(additive_logits_reference, *wide, upstream=upstream.double())
    torch.testing.assert_close(lean.double(), plain, rtol=1e-5, atol=1e-5)
    for ours, theirs in zip(lean_grads, plain_grads, strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("block", [1, 7, 40, 10**6])
def test_the_block_size_changes_nothing(monkeypatch, block, device):
    monkeypatch.setattr(pairs, "CPU_BLOCK", block)
    monkeypatch.setattr(pairs, "GPU_BLOCK", block)
    inputs = [torch.randn(size, dtype=torch.float64, device=device) for size in [(2, 5, 3), (2, 7, 3), (3,)]]
    upstream = torch.randn(2, 5, 7, dtype=torch.float64, device=device)
    lean, lean_grads = grads(additive_logits, *inputs, upstream=upstream)
    plain, plain_grads = grads(additive_logits_reference, *inputs, upstream=upstream)
    torch.testing.assert_close(lean, plain)
    torch.testing.assert_close(lean_grads, plain_grads)


@pytest.mark.parametrize("scale", [1.0, 500.0], ids=["in range", "out of range"])
def test_gradcheck(scale):
    inputs = [torch.randn(size, dtype=torch.float64) for size in [(2, 3, 5), (2, 2, 5), (5,)]]
    inputs[0][..., 0] *= scale
    assert torch.autograd.gradcheck(additive_logits, [tensor.requires_grad_() for tensor in inputs])


@pytest.mark.parametrize("small", [-1, 10**6], ids=["blocks", "formula"])
def test_second_derivatives_are_right(monkeypatch, small):
    monkeypatch.setattr(additive, "MAX_FEATURES_FOR_FORMULA", small)
    inputs = [torch.randn(size, dtype=torch.float64, requires_grad=True) for size in [(2, 3, 5), (2, 2, 5), (5,)]]
    assert torch.autograd.gradgradcheck(additive_logits, inputs)


@pytest.mark.skipif(not additive.has_compiler(), reason="there is no C++ compiler")
def test_exponentials_are_taken_in_their_range_only(monkeypatch):
    monkeypatch.setattr(additive, "MIN_FEATURES_TO_COMPILE", 1)
    inside, outside = torch.randn(1, 4, 3), torch.full((1, 4, 3), 50.0)
    assert exponentials_of(inside, inside) is not None
    assert exponentials_of(inside, outside) is None
    assert exponentials_of(outside, inside) is None
    assert exponentials_of(inside.double(), inside.double()) is None, "the loops are for float32"


@pytest.mark.parametrize("value", [43.0, 44.5, 88.0, 1e4, 1e30])
@pytest.mark.parametrize("signs", [(1, 1), (1, -1), (-1, -1)], ids=str)
def test_extreme_inputs_stay_finite_and_right(value, signs, device):
    query = torch.full((1, 1, 3), value * signs[0], device=device, requires_grad=True)
    key = torch.full((1, 1, 3), value * signs[1], device=device, requires_grad=True)
    direction = torch.ones(3, device=device)
    logits = additive_logits(query, key, direction)
    logits.sum().backward()
    assert logits.item() == pytest.approx(torch.tanh(torch.tensor(value * (signs[0] + signs[1]))).item() * 3, abs=1e-5)
    assert query.grad.isfinite().all()
    assert key.grad.isfinite().all()


def test_keys_may_be_shared_by_all_queries():
    query, key, direction = torch.randn(2, 3, 5, 7), torch.randn(3, 11, 7), torch.randn(7)
    torch.testing.assert_close(
        additive_logits(query, key, direction), additive_logits_reference(query, key, direction), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("sizes", [(0, 5, 7), (2, 0, 7), (2, 5, 0)], ids=str)
def test_nothing_in_nothing_out(sizes):
    batch, queries, keys = sizes
    query = torch.randn(batch, queries, 3, requires_grad=True)
    logits = additive_logits(query, torch.randn(batch, keys, 3), torch.randn(3))
    assert logits.shape == sizes
    logits.sum().backward()
    assert query.grad.eq(0).all()


@settings(deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.integers(1, 40), st.integers(1, 2000))
def test_blocks_cover_every_pair_once(batch, queries, keys, features, size):
    seen = torch.zeros(batch, queries, keys)
    query, key = torch.empty(batch, queries, features), torch.empty(batch, keys, features)
    largest = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "CPU_BLOCK", size)
        patch.setattr(torch, "get_num_threads", lambda: 1)
        for block in blocks(query, key, features=features):
            seen[block] += 1
            largest = largest or seen[block].numel()
            assert seen[block].numel() <= largest, "the first block is the largest"
            assert seen[block].is_contiguous()
            assert seen[block].numel() * features <= max(size, features)
    assert seen.eq(1).all()


def test_the_block_size_grows_with_the_number_of_cores_up_to_a_maximum(monkeypatch):
    def pairs(cores):
        monkeypatch.setattr(torch, "get_num_threads", lambda: cores)
        _, q, k = next(blocks(torch.empty(1, 10**4, 64), torch.empty(1, 10, 64), features=64))
        return (q.stop - q.start) * (k.stop - k.start)

    assert pairs(2) == pytest.approx(2 * pairs(1), rel=0.01)
    assert pairs(64) == pytest.approx(4 * pairs(1), rel=0.01)


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")
@pytest.mark.skipif(not additive.has_compiler(), reason="there is no C++ compiler")
def test_the_compiled_loops_give_the_same(monkeypatch):
    inputs = [torch.randn(size) for size in [(2, 5, 7), (2, 11, 7), (7,)]]
    upstream = torch.randn(2, 5, 11)
    blocked, blocked_grads = grads(additive_logits, *inputs, upstream=upstream)
    assert not additive.prefers_compiled_loops(*inputs[:2])
    monkeypatch.setattr(additive, "MIN_FEATURES_TO_COMPILE", 1)
    taken, compiled = [], additive.compiled
    monkeypatch.setattr(additive, "compiled", lambda loop: taken.append(loop) or compiled(loop))
    looped, looped_grads = grads(additive_logits, *inputs, upstream=upstream)
    assert taken == [additive.fractions, additive.slopes, additive.slopes]
    torch.testing.assert_close(looped, blocked)
    torch.testing.assert_close(looped_grads, blocked_grads)
    for scale in (43 / max(tensor.abs().max().item() for tensor in inputs[:2]), 100):
        far = [scale * tensor for tensor in inputs[:2]]
        plain = additive_logits_reference(*far, inputs[2])
        torch.testing.assert_close(additive_logits(*far, inputs[2]), plain, rtol=1e-5, atol=1e-5)
    assert len(taken) == 4, "within the range, but not beyond it"
