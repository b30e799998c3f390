"""Hoisted layers against nn.Linear in the same recurrence."""

import pytest
import torch
from torch import nn

from regard.kernels.hoisted import Hoisted, hoisting


class Recurrence(nn.Module):
    """A few steps with a layer that has a bias and one that has none."""

    def __init__(self, linear):
        super().__init__()
        self.inner, self.outer = linear(3, 4), linear(4, 3, bias=False)

    def forward(self, state, steps=5):
        states = []
        with hoisting(self):
            for _ in range(steps):
                state = torch.tanh(self.outer(torch.tanh(self.inner(state))))
                states.append(state)
        return torch.stack(states)


@pytest.fixture
def both():
    plain, hoisted = Recurrence(nn.Linear).double(), Recurrence(Hoisted).double()
    hoisted.load_state_dict(plain.state_dict())
    return plain, hoisted, torch.randn(2, 3, dtype=torch.float64, requires_grad=True)


def gradients(network, state, **options):
    output = network(state)
    return output, torch.autograd.grad(output.pow(3).sum(), [state, *network.parameters()], **options)


def test_outputs_and_gradients_are_the_same(both):
    plain, hoisted, state = both
    torch.testing.assert_close(gradients(hoisted, state), gradients(plain, state))


def test_several_backward_passes_do_not_mix(both):
    plain, hoisted, state = both
    expected = gradients(plain, state)[1]
    output = hoisted(state)
    loss = output.pow(3).sum()
    torch.autograd.grad(output[-1].sum(), state, retain_graph=True)
    torch.autograd.grad(loss, state, retain_graph=True)
    first = torch.autograd.grad(loss, [state, *hoisted.parameters()], retain_graph=True)
    early = torch.autograd.grad(output[0].sum(), list(hoisted.parameters()), retain_graph=True)
    again = torch.autograd.grad(loss, [state, *hoisted.parameters()])
    torch.testing.assert_close(first, expected)
    torch.testing.assert_close(again, expected)
    torch.testing.assert_close(early, torch.autograd.grad(plain(state)[0].sum(), list(plain.parameters())))


def test_two_recurrences_in_one_pass_add_up(both):
    plain, hoisted, state = both

    def twice(network):
        loss = network(state).sum() + network(2 * state, steps=3).pow(2).sum()
        return torch.autograd.grad(loss, [state, *network.parameters()])

    torch.testing.assert_close(twice(hoisted), twice(plain))


def test_second_derivatives_are_right(both):
    _, hoisted, state = both
    names = [name for name, _ in hoisted.named_parameters()]

    def run(state, *weights):
        return torch.func.functional_call(hoisted, dict(zip(names, weights, strict=True)), (state,))

    inputs = [state, *(weight.detach().clone().requires_grad_() for weight in hoisted.parameters())]
    assert torch.autograd.gradcheck(run, inputs)
    assert torch.autograd.gradgradcheck(run, inputs)


def test_frozen_parameters_and_inference(both):
    plain, hoisted, state = both
    with torch.no_grad():
        torch.testing.assert_close(hoisted(state), plain(state))
    for network in (plain, hoisted):
        network.inner.weight.requires_grad_(False)
    wanted = [[part for part in network.parameters() if part.requires_grad] for network in (plain, hoisted)]
    found = [
        torch.autograd.grad(network(state).sum(), [state, *parts])
        for network, parts in zip((plain, hoisted), wanted, strict=True)
    ]
    torch.testing.assert_close(found[1], found[0])


class Joint(nn.Module):
    """A recurrence in which two layers multiply the same state."""

    def __init__(self):
        super().__init__()
        self.first, self.second = Hoisted(3, 4, bias=False), Hoisted(3, 5, bias=False)
        self.back = Hoisted(9, 3)

    def forward(self, state, *, joined):
        states = []
        with hoisting(self, [self.first, self.second] if joined else ()):
            for _ in range(4):
                state = torch.tanh(self.back(torch.cat([self.first(state), self.second(state).tanh()], dim=-1)))
                states.append(state)
        return torch.stack(states)


def test_joined_layers_compute_the_same_in_one_product(monkeypatch):
    network, state = Joint().double(), torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    products = []
    linear = nn.functional.linear
    monkeypatch.setattr(nn.functional, "linear", lambda *inputs: products.append(0) or linear(*inputs))
    results = []
    for joined in (False, True):
        output = network(state, joined=joined)
        results.append((output, torch.autograd.grad(output.pow(3).sum(), [state, *network.parameters()])))
    torch.testing.assert_close(results[1], results[0])
    assert len(products) == 12 + 8
    with torch.no_grad():
        torch.testing.assert_close(network(state, joined=True), results[0][0])


def test_outside_of_hoisting_it_is_a_linear_layer(both):
    _, hoisted, state = both
    torch.testing.assert_close(
        hoisted.inner(state), nn.functional.linear(state, hoisted.inner.weight, hoisted.inner.bias)
    )
    with torch.autocast("cpu", torch.bfloat16), hoisting(hoisted.float()):
        assert hoisted.inner(state.float()).dtype == torch.bfloat16
