"""An external memory: the paper's equations one number at a time, any number of heads, any shift, any size."""

import pytest
import torch

from regard.errors import OptionError
from regard.kernels.turing_heads import HeadSizes, access, instructions
from regard.layers.memory import INITIAL_CONTENT, ExternalMemory, MemoryState, access_reference

SIZES = [HeadSizes(1, 1, 5, 1), HeadSizes(2, 3, 3, 2), HeadSizes(3, 1, 2, 0), HeadSizes(1, 2, 5, 5)]


def transcribed(told, slots, last, sizes):
    """Equations 2 to 9 of Graves et al. 2014, for one example, with loops over everything."""
    count, width = slots.shape
    reach = sizes.max_shift
    weights = torch.zeros(sizes.heads, count, dtype=slots.dtype)
    for head in range(sizes.heads):
        key, strength = told.key[head], told.strength[head, 0]
        cosines = [key @ slots[i] / (key.norm() * slots[i].norm()) for i in range(count)]  # equation 6
        exponentials = [torch.exp(strength * cosine) for cosine in cosines]
        content = [each / sum(exponentials) for each in exponentials]  # equation 5
        gate = told.gate[head, 0]
        gated = [gate * content[i] + (1 - gate) * last[head, i] for i in range(count)]  # equation 7
        shifted = []
        for i in range(count):  # equation 8; the shift by s has the index s + reach
            shifted.append(sum(gated[(i - s) % count] * told.shift[head, s + reach] for s in range(-reach, reach + 1)))
        sharpened = [each ** told.sharpen[head, 0] for each in shifted]
        weights[head] = torch.stack([each / sum(sharpened) for each in sharpened])  # equation 9
    read = torch.zeros(sizes.reads, width, dtype=slots.dtype)
    for head in range(sizes.reads):
        for i in range(count):
            read[head] += weights[head, i] * slots[i]  # equation 2
    written = slots.clone()
    for i in range(count):
        for head in range(sizes.writes):
            written[i] = written[i] * (1 - weights[sizes.reads + head, i] * told.erase[head])  # equation 3
        for head in range(sizes.writes):
            written[i] = written[i] + weights[sizes.reads + head, i] * told.add[head]  # equation 4
    return read, weights, written


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("step", [access, access_reference], ids=["fused", "reference"])
def test_a_step_is_the_paper_transcribed(sizes, step):
    emitted = 2 * torch.randn(3, sizes.total).double()
    content = torch.randn(3, sizes.width, 7).double()
    last = torch.randn(3, sizes.heads, 7).double().softmax(-1)
    read, weights, written = step(emitted, content, last, sizes)
    told = instructions(emitted, sizes)
    for b in range(3):
        one = type(told)(*(part[b] for part in told))
        expected = transcribed(one, content[b].mT, last[b], sizes)
        torch.testing.assert_close(read[b], expected[0])
        torch.testing.assert_close(weights[b], expected[1])
        torch.testing.assert_close(written[b].mT, expected[2])


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_the_kernel_and_attention_agree_with_their_gradients(sizes, device):
    parts = [torch.randn(2, sizes.total), torch.randn(2, sizes.width, 11), torch.rand(2, sizes.heads, 11)]
    parts[2] = parts[2] / parts[2].sum(-1, keepdim=True)
    found = []
    for step in (access, access_reference):
        leaves = [part.to(device).requires_grad_() for part in parts]
        outputs = step(*leaves, sizes)
        sum(
            (torch.arange(each.numel(), device=device).view(each.shape).sin() * each).sum() for each in outputs
        ).backward()
        found.append([*outputs, *(leaf.grad for leaf in leaves)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_a_new_memory_is_a_small_constant_and_its_heads_are_at_the_first_slot():
    memory = ExternalMemory(7, slots=5, width=3, num_reads=2, num_writes=1)
    state = memory.start(4)
    assert torch.equal(state.slots, torch.full((4, 5, 3), INITIAL_CONTENT))
    assert torch.equal(state.weights, torch.eye(5)[0].expand(4, 3, 5))


def test_new_heads_keep_their_place():
    """After twenty steps of random features, more than half of the focus is still near where it began."""
    memory = ExternalMemory(30, slots=60, width=4)
    state = memory.start(8)
    for _ in range(20):
        state = memory(torch.randn(8, 30).tanh(), state).state
    near = torch.cat([state.weights[..., :10], state.weights[..., -10:]], -1).sum(-1)
    assert near.detach().min() > 0.5


def test_both_kernels_serve_the_layer():
    memory = ExternalMemory(7, slots=11, width=3, num_reads=2, num_writes=2, max_shift=2)
    state, other = memory.start(3), memory.start(3)
    for features in torch.randn(5, 3, 7).unbind():
        fused, reference = memory(features, state), memory(features, other, kernel="reference")
        torch.testing.assert_close(fused.read, reference.read, atol=1e-5, rtol=1e-4)
        state, other = fused.state, reference.state
    torch.testing.assert_close(state.slots, other.slots, atol=1e-5, rtol=1e-4)


def test_writing_and_reading_back_by_hand():
    """Erase and add at one slot, step to the next, then find the first by its content."""
    sizes = HeadSizes(1, 1, 2)
    key_at, add_at = 0, 2 * 2
    emitted = torch.zeros(1, sizes.total)
    emitted[0, add_at : add_at + 2] = torch.tensor([3.0, -3.0])  # what to add
    bounded, opened, positive, _ = sizes.groups
    emitted[0, bounded : bounded + 2] = -50  # stay by location
    emitted[0, bounded + 2 : bounded + opened] = 50  # erase everything
    emitted[0, -6:] = torch.tensor([-50.0, 0, -50, -50, 0, -50]) + 50 * torch.tensor([0, 1.0, 0, 0, 1, 0])
    state = MemoryState(torch.full((1, 2, 3), 0.5), torch.eye(3)[1].expand(1, 2, 3))
    _, weights, content = access(emitted, state.content, state.weights, sizes)
    expected = torch.tensor([[0.5, 3.0, 0.5], [0.5, -3.0, 0.5]])
    expected[:, 1] = torch.tanh(expected[:, 1])
    torch.testing.assert_close(content[0], expected)
    emitted[0, key_at : key_at + 4] = torch.tensor([1.0, -1.0, 1.0, -1.0])
    emitted[0, bounded : bounded + 2] = 50  # now by content
    emitted[0, bounded + opened : bounded + opened + positive] = 40
    read, weights, _ = access(emitted, content, torch.eye(3)[0].expand(1, 2, 3), sizes)
    assert weights[0, 0].argmax() == 1
    torch.testing.assert_close(read[0, 0], expected[:, 1], atol=1e-4, rtol=0)


def test_a_memory_can_be_started_with_another_number_of_slots():
    memory = ExternalMemory(7, slots=5, width=3)
    state = memory(torch.randn(2, 7), memory.start(2, slots=50)).state
    assert state.slots.shape == (2, 50, 3)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"slots": 0}, "slots must be 1 or more; got 0"),
        ({"width": 0}, "width must be 1 or more; got 0"),
        ({"num_writes": 0}, "num_writes must be 1 or more; got 0"),
        ({"slots": 3, "max_shift": 3}, "got 3 slots and max_shift 3"),
        ({"max_shift": -1}, "max_shift -1"),
    ],
)
def test_sizes_that_make_no_memory_are_explained(sizes, message):
    with pytest.raises(OptionError, match=message):
        ExternalMemory(7, **sizes)
    with pytest.raises(OptionError, match="got 1 slots and max_shift 1"):
        ExternalMemory(7).start(1, slots=1)
