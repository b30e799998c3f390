"""The addressing of the neural Turing machine, step by step."""

import pytest
import torch

from regard import align, attend, mask, score
from regard.attention.align import circular_shift
from regard.errors import ShapeError


def test_the_four_steps_one_location_at_a_time():
    num_heads, slots, dim = 2, 7, 5
    key, memory = torch.randn(3, num_heads, dim).double(), torch.randn(3, slots, dim).double()
    strength = torch.rand(3, num_heads, 1).double() * 5
    gate = torch.rand(3, num_heads, 1).double()
    shift = torch.rand(3, num_heads, 3).double().softmax(-1)
    sharpen = 1 + 4 * torch.rand(3, num_heads, 1).double()
    last = torch.rand(3, num_heads, slots).double().softmax(-1)
    result = attend(
        key,
        memory,
        score=score.Cosine(strength),
        align=align.Addressing(gate, shift, sharpen),
        state=last,
        weights=True,
    )
    for b in range(3):
        for h in range(num_heads):
            cosines = [key[b, h] @ row / (key[b, h].norm() * row.norm()) for row in memory[b]]
            content = (strength[b, h] * torch.stack(cosines)).softmax(0)
            gated = gate[b, h] * content + (1 - gate[b, h]) * last[b, h]
            shifted = torch.stack(
                [sum(gated[(i - j) % slots] * shift[b, h, j + 1] for j in (-1, 0, 1)) for i in range(slots)]
            )
            expected = shifted ** sharpen[b, h] / (shifted ** sharpen[b, h]).sum()
            torch.testing.assert_close(result.weights[b, h], expected)
    torch.testing.assert_close(result.state, result.weights)
    torch.testing.assert_close(result.context, result.weights @ memory)


def test_a_shift_of_one_moves_the_focus_to_the_next_slot_and_around_the_end():
    weights = torch.eye(4).unsqueeze(0)
    forward = circular_shift(weights, torch.tensor([0.0, 0.0, 1.0]).expand(1, 4, 3))
    assert forward[0].argmax(-1).tolist() == [1, 2, 3, 0]
    backward = circular_shift(weights, torch.tensor([1.0, 0.0, 0.0]).expand(1, 4, 3))
    assert backward[0].argmax(-1).tolist() == [3, 0, 1, 2]


def test_the_circle_closes_at_the_unpadded_length():
    weights = torch.eye(4).unsqueeze(0)[:, :2]
    allowed = mask.padding(torch.tensor([2]), size=4)
    shifted = circular_shift(weights, torch.tensor([0.0, 0.0, 1.0]).expand(1, 2, 3), allowed)
    assert shifted[0].tolist() == [[0, 1, 0, 0], [1, 0, 0, 0]]


def test_strong_sharpening_of_an_even_focus_does_not_vanish():
    even = align.Addressing(torch.ones(1, 1), torch.tensor([[0.0, 1.0, 0.0]]), torch.full((1, 1), 100.0))
    weights = attend(torch.zeros(1, 5), torch.randn(128, 5), score=score.cosine, align=even, weights=True).weights
    torch.testing.assert_close(weights, torch.full((1, 128), 1 / 128))


def test_gradients_reach_gate_shift_and_sharpening():
    parts = [torch.rand(2, size, dtype=torch.float64).softmax(-1) for size in (2, 3)]
    gate, shift = parts[0][:, :1], parts[1]
    last = torch.rand(2, 5, dtype=torch.float64).softmax(-1)
    memory, key = torch.randn(5, 3, dtype=torch.float64), torch.randn(2, 3, dtype=torch.float64)

    def read(gate, shift, sharpen, last):
        return attend(key, memory, align=align.Addressing(gate, shift, sharpen), state=last).context

    leaves = [gate, shift, torch.full((2, 1), 1.7, dtype=torch.float64), last]
    assert torch.autograd.gradcheck(read, [leaf.clone().requires_grad_() for leaf in leaves])


def test_a_shift_needs_a_middle():
    with pytest.raises(ShapeError, match="odd number; got 4"):
        align.Addressing(torch.ones(1, 1), torch.ones(1, 4), torch.ones(1, 1))


def test_gradients_are_finite_after_a_step_in_which_every_key_was_masked():
    memory = torch.randn(1, 5, 3, requires_grad=True)
    parts = torch.zeros(1, 2, 1), torch.tensor([0.0, 1.0, 0.0]).expand(1, 2, 3), torch.ones(1, 2, 1)
    leaves = [part.clone().requires_grad_() for part in parts]
    nowhere = torch.zeros(1, 1, 5, dtype=torch.bool)
    state = attend(torch.randn(1, 2, 3), memory, align=align.Addressing(*leaves), mask=nowhere).state
    assert state.eq(0).all()
    context = attend(torch.randn(1, 2, 3), memory, align=align.Addressing(*leaves), state=state).context
    for gradient in torch.autograd.grad(context.sum(), [memory, *leaves]):
        assert gradient.isfinite().all()
