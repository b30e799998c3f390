"""The loss that pulls attention to the right positions."""

import math

import pytest
import torch

import regard
from regard.attention.guidance import guidance_loss
from regard.errors import ShapeError


def test_it_is_the_mean_log_of_the_attention_on_right_keys():
    weights = torch.tensor([[[0.5, 0.25, 0.25], [0.1, 0.2, 0.7], [0.3, 0.3, 0.4]]])
    right = torch.tensor([[[True, False, False], [False, True, True], [False, False, False]]])
    assert guidance_loss(weights, right).item() == pytest.approx(-(math.log(0.5) + math.log(0.9)) / 2, rel=1e-5)


def test_queries_without_a_right_key_add_nothing():
    weights = torch.rand(2, 3, 5, requires_grad=True)
    loss = guidance_loss(weights, torch.zeros(2, 3, 5, dtype=torch.bool))
    assert loss.item() == 0
    assert torch.autograd.grad(loss, weights)[0].abs().sum() == 0


def test_a_weight_of_zero_has_a_finite_loss():
    assert torch.isfinite(guidance_loss(torch.zeros(1, 2), torch.tensor([[True, False]])))


def test_it_guides_an_attention_of_ones_own():
    torch.manual_seed(0)
    query, key = torch.randn(1, 3, 7), torch.randn(1, 5, 7)
    right = torch.nn.functional.one_hot(torch.tensor([[4, 0, 2]]), 5).bool()
    score = regard.score.General(7, 7)
    optimizer = torch.optim.Adam(score.parameters(), 0.05)
    for _ in range(60):
        optimizer.zero_grad()
        guidance_loss(regard.attend(query, key, score=score, weights=True).weights, right).backward()
        optimizer.step()
    found = regard.attend(query, key, score=score, weights=True).weights
    assert found.argmax(-1).tolist() == [[4, 0, 2]]
    assert found[right].min() > 0.9


@pytest.mark.usefixtures("as_a_user")
def test_a_mask_of_another_shape_is_refused():
    with pytest.raises(ShapeError, match=r"weights \(2, 3\) and right \(2, 2\)"):
        guidance_loss(torch.rand(2, 3), torch.ones(2, 2, dtype=torch.bool))


def test_keys_may_be_right_in_part():
    weights = torch.tensor([[0.2, 0.5, 0.3], [0.1, 0.9, 0.0]])
    right = torch.tensor([[1.0, 0.5, 0.0], [0.0, 0.0, 0.0]])
    assert guidance_loss(weights, right).item() == pytest.approx(-math.log(0.45), rel=1e-5)
