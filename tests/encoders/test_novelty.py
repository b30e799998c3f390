"""Novelty is the Mahalanobis distance, and its threshold that of held-out images."""

import pytest
import torch

from regard.encoders.novelty import FALSE_ALARMS, SHRINKAGE, Novelty
from regard.errors import OptionError


def test_it_is_the_mahalanobis_distance_over_that_which_five_percent_of_held_out_images_exceed():
    torch.manual_seed(1)
    mixing = torch.randn(7, 7)
    training, held_out = torch.randn(500, 7) @ mixing + 3, torch.randn(200, 7) @ mixing + 3
    novelty = Novelty(7)
    novelty.fit(training, held_out)
    covariance = torch.cov(training.T, correction=0).double()
    variance = covariance.diagonal().mean() * torch.eye(7).double()
    inverse = torch.linalg.inv((1 - SHRINKAGE) * covariance + SHRINKAGE * variance)

    def distance(x):
        difference = (x - training.mean(0)).double()
        return torch.einsum("bd,de,be->b", difference, inverse, difference).sqrt()

    threshold = distance(held_out).quantile(1 - FALSE_ALARMS)
    others = torch.randn(11, 7) * 5
    torch.testing.assert_close(novelty(others).double(), distance(others) / threshold, atol=1e-4, rtol=1e-4)
    assert int((novelty(held_out) > 1).sum()) == 10


def test_directions_in_which_the_training_images_do_not_vary_count_for_little():
    torch.manual_seed(1)
    training = torch.randn(100, 3) * torch.tensor([1.0, 1.0, 0.0])
    novelty = Novelty(3)
    novelty.fit(training, training)
    off = novelty(torch.tensor([[0.0, 0.0, 0.1], [0.0, 0.0, 9.0]]))
    assert off[0] < 1 < off[1]


def test_it_is_saved_with_the_model_and_not_trained():
    novelty = Novelty(3)
    novelty.fit(torch.randn(9, 3), torch.randn(5, 3))
    assert not list(novelty.parameters())
    again = Novelty(3)
    again.load_state_dict(novelty.state_dict())
    assert torch.equal(again(torch.eye(3)), novelty(torch.eye(3)))


def test_too_few_images_are_refused():
    with pytest.raises(OptionError, match="at least two training images and a held-out one; got 1 and 5"):
        Novelty(3).fit(torch.randn(1, 3), torch.randn(5, 3))
