"""Losses against their closed forms and against torch's own."""

import pytest
import torch
from torch.nn import functional

from regard.training.losses import smoothed_cross_entropy


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.37])
def test_the_smoothed_loss_is_that_of_torch_and_the_nll_is_never_smoothed(smoothing):
    logits, targets = torch.randn(11, 7, dtype=torch.float64, requires_grad=True), torch.randint(0, 7, (11,))
    loss, nll = smoothed_cross_entropy(logits, targets, smoothing=smoothing)
    reference = functional.cross_entropy(logits, targets, label_smoothing=smoothing)
    torch.testing.assert_close(loss, reference)
    torch.testing.assert_close(nll, functional.cross_entropy(logits, targets, reduction="none"))
    ours, theirs = (torch.autograd.grad(each, logits, retain_graph=True)[0] for each in (loss, reference))
    torch.testing.assert_close(ours, theirs)


def test_of_even_logits_the_loss_is_the_logarithm_of_the_classes():
    loss, nll = smoothed_cross_entropy(torch.zeros(3, 5), torch.tensor([0, 4, 2]), smoothing=0.3)
    assert loss.item() == pytest.approx(torch.log(torch.tensor(5.0)).item())
    assert nll.tolist() == pytest.approx([loss.item()] * 3)


def test_its_gradient_is_the_probability_minus_the_smoothed_target():
    logits, targets = torch.randn(1, 4, dtype=torch.float64, requires_grad=True), torch.tensor([2])
    loss, _ = smoothed_cross_entropy(logits, targets, smoothing=0.2)
    loss.backward()
    target = torch.tensor([[0.05, 0.05, 0.85, 0.05]], dtype=torch.float64)
    torch.testing.assert_close(logits.grad, logits.detach().softmax(-1) - target)
