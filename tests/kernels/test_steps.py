"""Attention step by step against the plain formula; without a GPU, Triton's interpreter runs the kernels."""

import pytest
import torch

pytest.importorskip("triton", reason="Triton is there on Linux only")

from helpers.kernels import DEVICE, assert_all_near, doubles, interpreted

from regard.kernels.steps import Steps, steps_reference

pytestmark = interpreted

SIZES = {"small": (2, 5, 6, 3), "one": (1, 1, 1, 1), "odd": (2, 37, 33, 141)}


def tensors(size, *, additive, dtype=torch.float32):
    batch, keys, dim, values = size
    shapes = [(batch, 3, dim), (batch, keys, dim), (batch, keys, values), *([(dim,)] if additive else [])]
    return [torch.randn(shape, device=DEVICE).to(dtype).requires_grad_() for shape in shapes]


def contexts(steps):
    """A function from a query to its context alone."""
    return lambda query: steps(query)[0]


def recurrence(step, queries):
    """Each query takes something from what the last one read, as in a decoder."""
    read, carried = [], 0.0
    for query in queries.unbind(1):
        read.append(step(query + carried))
        carried = 0.1 * read[-1].mean(-1, keepdim=True)
    return torch.stack(read, 1)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("additive", [False, True])
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_contexts_and_gradients_equal_the_reference(size, additive, masked):
    inputs = tensors(size, additive=additive)
    exact_inputs = doubles(inputs)
    mask = None
    if masked:
        mask = torch.rand(size[:2], device=DEVICE) < 0.7
        mask[0] = False
    queries, keys, values, *direction = inputs
    ours = recurrence(contexts(Steps(keys, values, mask, *direction, scale=1.0 if additive else 0.5)), queries)
    queries, keys, values, *direction = exact_inputs
    exact = recurrence(
        lambda q: steps_reference(q, keys, values, mask, *direction, scale=1.0 if additive else 0.5), queries
    )
    torch.testing.assert_close(ours.double(), exact, rtol=2e-6, atol=2e-6)
    upstream = torch.randn_like(ours)
    found = torch.autograd.grad(ours, inputs, upstream)
    for grad, wanted in zip(found, torch.autograd.grad(exact, exact_inputs, upstream.double()), strict=True):
        torch.testing.assert_close(grad.double(), wanted, rtol=1e-5, atol=1e-5)


def test_inputs_are_added_and_weights_have_gradients():
    queries, keys, values, direction = inputs = tensors(SIZES["odd"], additive=True)
    wide = torch.randn(2, 3, 150, device=DEVICE, requires_grad=True)
    exact = doubles([*inputs, wide])
    steps = Steps(keys, values, None, direction)
    # A query that is a part of a wider product, and inputs that are a step of a longer tensor, are not copied.
    joint = torch.cat([queries[:, 0], queries[:, 1]], dim=-1)
    context, weights = steps(joint[:, :33], wide[:, 1, 5:146])
    again, _ = steps(queries[:, 2])
    query, keys, values, direction, added = exact
    logits = torch.tanh(query[:, [0, 2]].unsqueeze(2) + keys.unsqueeze(1)) @ direction
    wanted = logits.softmax(-1)
    contexts = wanted @ values
    torch.testing.assert_close(context.double(), contexts[:, 0] + added[:, 1, 5:146], rtol=2e-6, atol=2e-6)
    torch.testing.assert_close(weights.double(), wanted[:, 0], rtol=2e-6, atol=2e-6)
    loss = (context**2).sum() + (weights**2).sum() + again.sum()
    exact_loss = ((contexts[:, 0] + added[:, 1, 5:146]) ** 2).sum() + (wanted[:, 0] ** 2).sum() + contexts[:, 1].sum()
    found = torch.autograd.grad(loss, [*inputs, wide])
    assert_all_near(found, torch.autograd.grad(exact_loss, exact), 1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_is_near(dtype):
    inputs = tensors((1, 5, 33, 141), additive=True, dtype=dtype)
    queries, keys, values, direction = inputs
    ours = recurrence(contexts(Steps(keys, values, None, direction)), queries)
    assert ours.dtype == dtype
    exact = [tensor.double() for tensor in inputs]
    wanted = recurrence(lambda q: steps_reference(q, exact[1], exact[2], None, exact[3]), exact[0])
    torch.testing.assert_close(ours.double(), wanted, rtol=0.02, atol=0.02)
    for grad, tensor in zip(torch.autograd.grad(ours.sum(), inputs), inputs, strict=True):
        assert grad.dtype == dtype
        assert grad.shape == tensor.shape


def test_each_backward_pass_counts_its_own_steps():
    queries, keys, values, direction = tensors(SIZES["small"], additive=True)
    steps = contexts(Steps(keys, values, None, direction))
    first, second = steps(queries[:, 0]).sum(), steps(queries[:, 1]).sum()
    both = torch.autograd.grad(first + second, keys, retain_graph=True)[0]
    apart = [torch.autograd.grad(part, keys, retain_graph=True)[0] for part in (first, second)]
    torch.testing.assert_close(both, sum(apart))
