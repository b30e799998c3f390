"""Losses against their closed forms and torch's own; REINFORCE: the mean of its gradient is that of the reward."""

import pytest
import torch
from torch.nn import functional

from regard.training.losses import RunningBaseline, advantage_over_others, mean_where, smoothed_cross_entropy


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


def test_the_baseline_moves_a_tenth_of_the_way_after_it_was_used():
    baseline = RunningBaseline()
    assert baseline.advantage(torch.tensor([3.0, 5.0])).tolist() == [3.0, 5.0], "at first it is 0"
    assert baseline.mean.item() == pytest.approx(0.4)
    assert baseline.advantage(torch.tensor([2.4])).tolist() == pytest.approx([2.0])
    assert baseline.mean.item() == pytest.approx(0.9 * 0.4 + 0.1 * 2.4)
    assert list(baseline.state_dict()) == ["mean"], "it is part of a checkpoint"
    slower = RunningBaseline(momentum=0.5)
    slower.advantage(torch.tensor([8.0]))
    assert slower.mean.item() == 4.0


def test_only_rewards_of_choices_move_the_baseline():
    baseline = RunningBaseline()
    reward, chosen = torch.tensor([[1.0, 9.0], [3.0, 9.0]]), torch.tensor([[True, False], [True, False]])
    assert torch.equal(baseline.advantage(reward, chosen), reward)
    assert baseline.mean.item() == pytest.approx(0.2)
    baseline.advantage(reward, torch.zeros_like(chosen))
    assert baseline.mean.item() == pytest.approx(0.18), "without a choice the mean reward is 0"


def test_each_sample_is_compared_with_the_mean_of_the_others():
    reward = torch.tensor([[1.0, 2.0], [4.0, 2.0], [7.0, 2.0]])
    expected = [[1 - 5.5, 0], [4 - 4, 0], [7 - 2.5, 0]]
    assert advantage_over_others(reward).tolist() == expected
    torch.testing.assert_close(advantage_over_others(torch.randn(5, 3, 2)).sum(0), torch.zeros(3, 2), atol=1e-5, rtol=0)


def test_the_mean_is_over_what_was_chosen_and_0_where_nothing_was():
    values = torch.tensor([1.0, 2.0, 6.0])
    assert mean_where(values, None).item() == 3.0
    assert mean_where(values, torch.tensor([True, False, True])).item() == 3.5
    assert mean_where(values, torch.zeros(3, dtype=torch.bool)).item() == 0.0


@pytest.mark.parametrize("kind", ["running", "others"])
def test_the_mean_gradient_is_that_of_the_expected_reward(kind):
    """For p = softmax(logits), the gradient of the expected reward is p_i (r_i - sum_j p_j r_j)."""
    logits = torch.tensor([0.3, -0.5, 0.8], dtype=torch.float64, requires_grad=True)
    rewards = torch.tensor([1.0, 4.0, -2.0], dtype=torch.float64)
    p = logits.detach().softmax(-1)
    expected = p * (rewards - (p * rewards).sum())
    choices = torch.multinomial(p, 200_000, replacement=True)
    reward = rewards[choices]
    if kind == "running":
        baseline = RunningBaseline().double()
        baseline.mean.fill_(0.7)  # any value will do: it does not depend on the choice
        advantage = baseline.advantage(reward)
    else:
        advantage = advantage_over_others(reward.view(4, -1)).flatten()
    (advantage * logits.log_softmax(-1)[choices]).mean().backward()
    torch.testing.assert_close(logits.grad, expected, atol=0.03, rtol=0)
