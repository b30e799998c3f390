"""One step of the heads: the hand-written gradient, and numbers that stay finite whatever a controller emits."""

import pytest
import torch

from regard.kernels.turing_heads import LIMIT, HeadSizes, access, instructions

HEADS = [HeadSizes(1, 1, 5), HeadSizes(2, 1, 3, 2), HeadSizes(1, 3, 2, 0), HeadSizes(3, 2, 5, 1)]


def a_step(sizes: HeadSizes, *, slots: int = 7, dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, ...]:
    emitted = torch.randn(3, sizes.total, dtype=dtype)
    memory = torch.randn(3, sizes.width, slots, dtype=dtype)
    last = torch.randn(3, sizes.heads, slots, dtype=dtype).softmax(-1)
    return emitted, memory, last


@pytest.mark.parametrize("sizes", HEADS, ids=str)
def test_the_gradient_is_that_of_the_formulas(sizes):
    leaves = [part.requires_grad_() for part in a_step(sizes)]
    assert torch.autograd.gradcheck(lambda *parts: access(*parts, sizes), leaves)


@pytest.mark.parametrize("output", [0, 1, 2], ids=["read", "weights", "memory"])
def test_a_gradient_through_one_output_alone(output):
    sizes = HEADS[3]
    leaves = [part.requires_grad_() for part in a_step(sizes)]
    assert torch.autograd.gradcheck(lambda *parts: access(*parts, sizes)[output], leaves)


def test_instructions_have_their_ranges():
    sizes = HeadSizes(2, 3, 5, 2)
    told = instructions(torch.randn(11, sizes.total) * 30, sizes)
    shapes = [(2 + 3, 5), (3, 5), (5, 1), (3, 5), (5, 1), (5, 1), (5, 5)]
    assert [tuple(part.shape[1:]) for part in told] == shapes
    for part, low, high in [
        (told.key, -1, 1),
        (told.add, -1, 1),
        (told.gate, 0, 1),
        (told.erase, 0, 1),
        (told.strength, 0, LIMIT),
        (told.sharpen, 1, LIMIT),
        (told.shift, 0, 1),
    ]:
        assert low <= float(part.min()) <= float(part.max()) <= high
    torch.testing.assert_close(told.shift.sum(-1), torch.ones(11, 5))


@pytest.mark.parametrize("size", [0.0, 1e-30, 1.0, 1e30], ids=str)
@pytest.mark.parametrize("emitted", [0.0, 1e3, -1e3, 1e30, -1e30], ids=str)
def test_hostile_numbers_give_no_nan(emitted, size, device):
    """Huge strengths and exponents of both signs, a memory of zeros or of huge numbers, a focus on one slot."""
    sizes = HeadSizes(2, 2, 3)
    signs = torch.randn(5, sizes.total, device=device).sign()
    told = (emitted * signs).requires_grad_()
    memory = (size * torch.randn(5, 3, 17, device=device)).requires_grad_()
    last = torch.eye(17, device=device)[:4].expand(5, 4, 17).clone().requires_grad_()
    read, weights, written = access(told, memory, last, sizes)
    assert all(part.isfinite().all() for part in (read, weights, written))
    torch.testing.assert_close(weights.sum(-1), torch.ones(5, 4, device=device))
    (read.sum() + (weights * weights).sum() + written.sum()).backward()
    assert all(part.grad.isfinite().all() for part in (told, memory, last))


def test_a_memory_stays_finite_over_many_hostile_steps():
    sizes = HeadSizes(1, 1, 4)
    memory, weights = torch.zeros(2, 4, 9), torch.eye(9)[:2].expand(2, 2, 9)
    told = (100 * torch.randn(300, 2, sizes.total)).requires_grad_()
    total = torch.zeros(())
    for step in told.unbind():
        read, weights, memory = access(step, memory, weights, sizes)
        total = total + read.square().sum()
    total.backward()
    assert total.isfinite()
    assert told.grad.isfinite().all()


def test_autocast_does_not_reach_the_memory():
    sizes = HEADS[0]
    emitted, memory, last = a_step(sizes, dtype=torch.float32)
    plain = access(emitted, memory, last, sizes)
    with torch.autocast("cpu", torch.bfloat16):
        cast = access(emitted, memory, last, sizes)
    for one, other in zip(plain, cast, strict=True):
        assert other.dtype == torch.float32
        torch.testing.assert_close(one, other)
