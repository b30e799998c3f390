"""A loop recorded as CUDA graphs computes the same as the loop itself."""

import copy
import pickle

import pytest
import torch
from helpers.decoders import HIDDEN, VOCABULARY, make

from regard.attention.mask import padding
from regard.encoders.encoded import Encoded
from regard.kernels.cuda_graphs import GraphedLoop, round_up

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a CUDA GPU")


def test_sizes_are_rounded_up_and_filled_with_zeros():
    assert [len(round_up(torch.zeros(size), 8)) for size in (0, 1, 8, 9)] == [0, 8, 8, 16]
    tensor = torch.ones(2, 3, 4)
    larger = round_up(tensor, 3, 5)
    assert larger.shape == (3, 5, 4)
    assert larger.sum() == tensor.sum()
    assert (larger[:2, :3] == 1).all()
    assert round_up(tensor, 2) is tensor
    assert round_up(torch.ones(2, 2, dtype=torch.bool), 2, 3).tolist() == [[True, True, False]] * 2


def test_a_loop_computes_with_padding_and_returns_none():
    seen = []

    def loop(inputs, beside):
        seen.append((inputs.shape, beside.shape))
        return inputs * 2, inputs.sum(-1)

    inputs = torch.randn(3, 5, 2)
    doubled, summed = GraphedLoop()(torch.nn.Identity(), loop, [inputs, torch.ones(3)], {}, multiples=[(4, 3), (2,)])
    assert seen == [((4, 6, 2), (4,))]
    assert torch.equal(doubled, inputs * 2)
    assert torch.equal(summed, inputs.sum(-1))


def test_a_model_with_recordings_can_be_copied_and_pickled():
    loop = GraphedLoop(record=False)
    for again in (copy.deepcopy(loop), pickle.loads(pickle.dumps(loop))):  # noqa: S301 - our own
        assert again.num_recordings == 0
        assert not again.record


RECORDED = [
    "bahdanau",
    "bahdanau_lstm",
    "conditional",
    "luong",
    "luong_gru",
    "luong_without_feeding",
    "plain",
    "show_and_tell",
    "show_attend_tell",
]


def prepared(name, **options):
    """A decoder on the GPU, an encoded source whose states have gradients, and a target."""
    _, decoder = make(name, **options)
    lengths = torch.randint(1, 7, (5,), device="cuda")
    states = torch.randn(5, 6, 2 * HIDDEN, device="cuda", requires_grad=True)
    encoded = Encoded(states, padding(lengths, 6), states[:, 0])
    return decoder.cuda(), encoded, torch.randint(3, VOCABULARY, (5, 7), device="cuda")


def outputs_and_gradients(decoder, encoded, target, *, weights=False):
    unrolled = decoder(encoded, target, weights=weights)
    features = unrolled.features
    weighed = (
        features.float() * torch.linspace(-1, 1, features.numel(), device=features.device).view_as(features)
    ).sum()
    if weights:
        weighed = weighed + (unrolled.weights**2).sum()
    wanted = [encoded.states, *decoder.parameters()]
    return [
        features,
        *([unrolled.weights] if weights else []),
        *(grad for grad in torch.autograd.grad(weighed, wanted, allow_unused=True) if grad is not None),
    ]


@needs_gpu
@pytest.mark.parametrize("autocast", [False, True], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("name", RECORDED)
def test_a_replay_equals_the_loop(name, autocast):
    decoder, encoded, target = prepared(name)
    other = target.flip(1)
    with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
        decoder.graphs.record = False
        wanted = [outputs_and_gradients(decoder, encoded, given) for given in (target, other)]
        decoder.graphs.record = True
        outputs_and_gradients(decoder, encoded, target)
        found = [outputs_and_gradients(decoder, encoded, given) for given in (target, other)]
    assert decoder.graphs.num_recordings, "the second time, the loop is recorded"
    tolerance = {"rtol": 0.05, "atol": 0.1} if autocast else {"rtol": 1e-4, "atol": 1e-5}
    for ours, exact in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, exact, **tolerance)


@needs_gpu
@pytest.mark.parametrize("name", ["bahdanau", "conditional", "luong", "luong_without_feeding", "show_attend_tell"])
def test_the_weights_of_a_replay_are_those_of_the_loop(name):
    decoder, encoded, target = prepared(name)
    decoder.graphs.record = False
    wanted = outputs_and_gradients(decoder, encoded, target, weights=True)
    decoder.graphs.record = True
    outputs_and_gradients(decoder, encoded, target)  # the same shape without weights has its own recording
    for _ in range(3):
        found = outputs_and_gradients(decoder, encoded, target, weights=True)
    assert decoder.graphs.num_recordings, "the second time, the loop is recorded"
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


class OnEveryDevice(GraphedLoop):
    """Prepares a loop for recording wherever it runs; without a GPU nothing is recorded, only padded."""

    def accepts(self, inputs):
        return self.record


def in_steps(attention):
    """What a kernel for single steps computes, by the plain formulas."""

    def reader(memory):
        def read(query, inputs=None):
            attended = attention(query[:, None], memory, weights=True)
            context = attended.context[:, 0]
            return context if inputs is None else inputs + context, attended.weights[:, 0]

        return read

    return reader


@pytest.mark.parametrize("name", ["bahdanau", "bahdanau_lstm", "conditional", "luong", "luong_gru", "show_attend_tell"])
def test_a_loop_to_be_recorded_computes_the_same_as_the_plain_one(name):
    """Without a GPU: the loop that would be recorded, run as it is, and what its queries say of the weights."""
    _, decoder = make(name)
    lengths = torch.randint(1, 7, (5,))
    states = torch.randn(5, 6, 2 * HIDDEN, requires_grad=True)
    encoded, target = Encoded(states, padding(lengths, 6), states[:, 0]), torch.randint(3, VOCABULARY, (5, 7))
    expected = outputs_and_gradients(decoder, encoded, target, weights=True)
    decoder.graphs = OnEveryDevice()
    decoder.attention.in_steps = in_steps(decoder.attention)
    found = outputs_and_gradients(decoder, encoded, target, weights=True)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_values_of_many_more_keys_than_steps_are_not_projected():
    _, decoder = make("bahdanau")
    states = torch.randn(5, 24, 2 * HIDDEN, requires_grad=True)
    encoded = Encoded(states, padding(torch.full((5,), 24), 24), states[:, 0])
    target = torch.randint(3, VOCABULARY, (5, 3))
    expected = outputs_and_gradients(decoder, encoded, target)
    decoder.graphs = OnEveryDevice()
    read_widths = []

    def reader(memory):
        read_widths.append(memory.values.shape[-1])
        return in_steps(decoder.attention)(memory)

    decoder.attention.in_steps = reader
    torch.testing.assert_close(outputs_and_gradients(decoder, encoded, target), expected, rtol=1e-4, atol=1e-5)
    assert read_widths[-1] == 2 * HIDDEN
    outputs_and_gradients(decoder, encoded, torch.randint(3, VOCABULARY, (5, 12)))
    assert read_widths[-1] == 3 * HIDDEN, "with as many steps they are, to the gates"


@needs_gpu
def test_two_losses_at_once_and_a_second_backward_pass():
    decoder, encoded, target = prepared("bahdanau")
    losses = [decoder(encoded, target).features.sum() for _ in range(3)]
    (losses[0] + losses[1] + losses[2]).backward()
    together = decoder.word_layer.weight.grad.clone()
    decoder.zero_grad()
    loss = decoder(encoded, target).features.sum()
    loss.backward(retain_graph=True)
    torch.testing.assert_close(3 * decoder.word_layer.weight.grad, together, rtol=1e-4, atol=1e-4)
    with pytest.raises(RuntimeError, match="only one backward pass"):
        loss.backward()


@needs_gpu
def test_dropout_inside_the_loop_is_drawn_anew_and_recording_draws_nothing():
    decoder, encoded, target = prepared("luong")
    decoder.train()
    decoder.output_dropout.p = 0.5
    decoder(encoded, target).features.sum().backward()
    replayed = decoder(encoded, target).features
    replayed.sum().backward()
    again = decoder(encoded, target).features
    assert (replayed == 0).float().mean().item() == pytest.approx(0.5, abs=0.2)
    assert not torch.equal(replayed == 0, again == 0)
