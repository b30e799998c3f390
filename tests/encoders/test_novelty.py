"""Novelty is what the principal components of training images leave out, over the threshold of held-out ones."""

import pytest
import torch

from regard.encoders.novelty import Novelty
from regard.errors import OptionError


def test_it_is_the_residual_over_that_which_five_percent_of_held_out_images_exceed():
    torch.manual_seed(1)
    scale = torch.tensor([9.0, 7.0, 5.0, 1.0, 1.0, 1.0, 1.0])
    rotation, _ = torch.linalg.qr(torch.randn(7, 7))
    training, held_out = (torch.randn(count, 7) * scale @ rotation + 3 for count in (500, 200))
    novelty = Novelty(7)
    novelty.fit(training, held_out)
    left_out = torch.linalg.svd((training - training.mean(0)).double())[2][3:]

    def residual(x):
        return (((x - training.mean(0)).double()) @ left_out.T).norm(dim=-1)

    others = torch.randn(11, 7) * 5
    expected = residual(others) / residual(held_out).quantile(0.95)
    torch.testing.assert_close(novelty(others).double(), expected, atol=1e-4, rtol=1e-4)
    assert int((novelty(held_out) > 1).sum()) == 10


def test_it_is_saved_with_the_model_and_not_trained():
    novelty = Novelty(6)
    novelty.fit(torch.randn(9, 6), torch.randn(5, 6))
    assert not list(novelty.parameters())
    again = Novelty(6)
    again.load_state_dict(novelty.state_dict())
    assert torch.equal(again(torch.eye(6)), novelty(torch.eye(6)))


def test_too_few_images_are_refused():
    with pytest.raises(OptionError, match="at least two training images and a held-out one; got 1 and 5"):
        Novelty(6).fit(torch.randn(1, 6), torch.randn(5, 6))
