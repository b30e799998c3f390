"""Additive scores as one product of sines, against the formula; without a GPU, Triton's interpreter runs them."""

import pytest
import torch

pytest.importorskip("triton", reason="Triton is there on Linux only")

from regard.kernels import additive_gpu, additive_sines
from regard.kernels.additive import additive_logits_reference
from regard.kernels.additive_gpu import additive_attention, additive_attention_reference, additive_logits
from regard.kernels.additive_sines import WAVES, Sines, waves_for

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
pytestmark = pytest.mark.filterwarnings("ignore:Conversion of an array with ndim > 0:DeprecationWarning")
SIZES = [(2, 5, 7, 6), (1, 1, 1, 1), (1, 17, 70, 33), (3, 9, 4, 130)]


def tensors(size, reach=4.0):
    """Queries and keys whose largest inputs together are just within a reach."""
    b, q, k, d = size
    torch.manual_seed(0)
    query, key = (torch.randn(b, n, d, device=DEVICE) for n in (q, k))
    query, key = (0.49 * reach * side / side.abs().max() for side in (query, key))
    direction = torch.randn(d, device=DEVICE) / d**0.5
    return [part.bfloat16().requires_grad_() for part in (query, key, direction)]


def doubles(inputs):
    return [part.detach().double().requires_grad_() for part in inputs]


def direct_error(inputs, exact):
    """How wrong the formula is in bfloat16, even if its sums are of float32."""
    query, key, direction = (part.detach() for part in inputs)
    features = torch.tanh(query.unsqueeze(2) + key.unsqueeze(1))
    return ((features.float() @ direction.float()).bfloat16().double() - exact).abs().max().item()


@pytest.fixture
def _always(monkeypatch):
    monkeypatch.setattr(additive_sines, "PAYS", 1)


@pytest.mark.parametrize("waves", WAVES, ids=lambda waves: f"within {waves.reach}")
def test_the_sines_are_tanh_to_within_their_error(waves):
    x = torch.linspace(-waves.reach, waves.reach, 100_001, dtype=torch.float64)
    frequencies, factors = (torch.tensor(part, dtype=torch.float64) for part in waves[2:])
    difference = (torch.sin(x.unsqueeze(1) * frequencies) @ factors - x.tanh()).abs().max()
    assert difference <= waves.error < 2**-9


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("waves", WAVES, ids=lambda waves: f"within {waves.reach}")
def test_logits_and_gradients_are_those_of_the_formula(size, waves):
    inputs = tensors(size, waves.reach)
    exact_inputs = doubles(inputs)
    exact = additive_logits_reference(*exact_inputs)
    sides = Sines(*(part.detach() for part in inputs), None, waves)
    bound = (waves.error + 2**-7) * exact_inputs[2].abs().sum().item()
    assert (sides.logits().double() - exact).abs().max() <= bound
    upstream = torch.randn_like(exact)
    found = sides.of_logits(upstream.float())
    for ours, right in zip(found, torch.autograd.grad(exact, exact_inputs, upstream), strict=True):
        assert ours.dtype == torch.float32
        assert (ours.double() - right).norm() <= 0.02 * right.norm() + 1e-3


@pytest.mark.parametrize("reach", [4, 6, 8, 10])
def test_logits_are_no_worse_than_direct_evaluation(reach):
    inputs = tensors((2, 30, 40, 256), reach)
    exact = additive_logits_reference(*doubles(inputs)).detach()
    waves = next(waves for waves in WAVES if waves.reach == reach)
    ours = Sines(*(part.detach() for part in inputs), None, waves).logits().to(torch.bfloat16)
    assert (ours.double() - exact).abs().max().item() <= direct_error(inputs, exact)


@pytest.mark.usefixtures("_always")
@pytest.mark.parametrize("scratch", [1 << 24, 64], ids=["at once", "in parts"])
def test_attention_takes_them_with_masks_and_gradients(monkeypatch, scratch):
    monkeypatch.setattr(additive_gpu, "SCRATCH", scratch)
    query, key, direction = tensors((2, 70, 9, 16), 6.0)
    values = torch.randn(2, 9, 5, device=DEVICE).bfloat16().requires_grad_()
    mask = torch.rand(2, 70, 9, device=DEVICE) < 0.7
    mask[0, 3] = False
    assert waves_for(query, key).reach == 6
    inputs = [query, key, values, direction]
    context, exact_inputs = additive_attention(*inputs, mask), doubles(inputs)
    exact = additive_attention_reference(*exact_inputs, mask)
    assert context[0, 3].eq(0).all()
    assert (context.double() - exact).abs().max() < 0.02
    upstream = torch.randn_like(exact)
    ours = torch.autograd.grad(context, inputs, upstream.bfloat16())
    for grad, right in zip(ours, torch.autograd.grad(exact, exact_inputs, upstream), strict=True):
        assert (grad.double() - right).norm() <= 0.03 * right.norm()


@pytest.mark.usefixtures("_always")
def test_queries_may_be_the_keys_themselves():
    query, _, direction = tensors((1, 6, 6, 8))
    exact = additive_logits_reference(*doubles([query, query, direction]))
    assert (additive_logits(query, query, direction).double() - exact).abs().max() < 0.03


@pytest.mark.usefixtures("_always")
def test_where_they_do_not_serve_the_other_kernels_are_taken(monkeypatch):
    query, key, _ = (part.detach() for part in tensors((1, 4, 5, 3), 9.0))
    assert waves_for(query, key).reach == 10
    assert waves_for(2 * query, key) is None, "too large"
    assert waves_for(query.float(), key.float()) is None, "too exact"
    broken = query.clone()
    broken[0, 0, 0] = float("nan")
    assert waves_for(broken, key) is None
    monkeypatch.setattr(additive_sines, "MOST", 10)
    assert waves_for(query, key) is None, "too much to hold"


def test_small_calls_do_not_ask():
    query, key, _ = tensors((1, 4, 5, 3))
    assert waves_for(query, key) is None
