"""Networks that answer tapes: never ahead of time, one by one as in a batch, recorded on a GPU as in a loop."""

import pytest
import torch

from regard.systems.tape.networks import AttentionNetwork, LSTMNetwork, TapeNetwork, TuringNetwork

NETWORKS = {
    "ntm": lambda: TuringNetwork(3, 2, hidden=11, slots=13, width=5),
    "feedforward": lambda: TuringNetwork(3, 2, controller="feedforward", hidden=11, slots=13, width=5),
    "heads": lambda: TuringNetwork(3, 2, hidden=11, slots=13, width=5, num_reads=2, num_writes=3, max_shift=2),
    "lstm": lambda: LSTMNetwork(3, 2, hidden=11, layers=2),
    "attention": lambda: AttentionNetwork(3, 2, hidden=11),
}


@pytest.fixture(params=NETWORKS)
def network(request: pytest.FixtureRequest) -> TapeNetwork:
    return NETWORKS[request.param]().eval()


def test_a_network_never_looks_ahead(network):
    inputs = torch.randn(2, 7, 3)
    torch.testing.assert_close(network(inputs)[:, :4], network(inputs[:, :4]))


def test_a_batch_equals_its_tapes_one_by_one(network):
    inputs = torch.randn(3, 5, 3)
    together = network(inputs)
    for row in range(3):
        torch.testing.assert_close(network(inputs[row : row + 1]), together[row : row + 1])


def test_what_is_recorded_does_not_change_the_answer(network):
    inputs = torch.randn(2, 5, 3)
    unrolled = network.unroll(inputs)
    torch.testing.assert_close(unrolled.logits, network(inputs))
    for weights in unrolled.weights.values():
        torch.testing.assert_close(weights.sum(-1), torch.ones(2, 5))
    if isinstance(network, TuringNetwork):
        heads = network.memory.sizes
        assert len(unrolled.weights) == heads.heads
        assert len(unrolled.vectors) == heads.heads
        assert unrolled.memory.shape == (2, 13, 5)


def test_a_tape_without_steps_has_no_answer(network):
    assert network(torch.zeros(2, 0, 3)).shape == (2, 0, 2)
    assert network.unroll(torch.zeros(2, 0, 3)).logits.shape == (2, 0, 2)


def test_the_loop_gives_the_gradients_of_the_plain_formulas():
    network = NETWORKS["heads"]()
    inputs, found = torch.randn(2, 9, 3), []
    for kernel in ("auto", "reference"):
        network.zero_grad()
        network(inputs, kernel=kernel).square().sum().backward()
        found.append({name: part.grad.clone() for name, part in network.named_parameters()})
    for name, grad in found[0].items():
        torch.testing.assert_close(grad, found[1][name], rtol=1e-3, atol=1e-5, msg=name)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")
@pytest.mark.parametrize("name", ["ntm", "feedforward", "heads"])
def test_a_recorded_loop_gives_what_a_plain_one_gives(name):
    network = NETWORKS[name]().cuda().train()
    found = {}
    for kind in ("plain", "first", "recorded", "replayed"):
        inputs = torch.randn(4, 6, 3, device="cuda", generator=torch.Generator("cuda").manual_seed(1))
        network.zero_grad()
        network.graphs.record = kind != "plain"
        logits = network(inputs)
        logits.square().sum().backward()
        found[kind] = [logits.detach(), *(part.grad.clone() for part in network.parameters())]
    assert network.graphs.num_recordings == 1
    for kind in ("first", "recorded", "replayed"):
        for one, other in zip(found["plain"], found[kind], strict=True):
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
