"""The cells of images: principal components of their features, and their positions in the grid."""

import pytest
import torch

from regard.encoders.annotations import PCA, Annotations
from regard.errors import OptionError, ShapeError


def test_all_components_give_back_the_features_and_fewer_the_largest_part():
    samples = torch.randn(97, 5) @ torch.diag(torch.tensor([9.0, 5.0, 2.0, 0.5, 0.1])) @ torch.randn(5, 7) + 3
    whole = PCA.fit(samples, 5)
    back = whole(samples) @ torch.linalg.pinv(whole.components) + whole.mean
    torch.testing.assert_close(back, samples, atol=1e-3, rtol=1e-3)
    few = PCA.fit(samples, 2)
    values = few(samples)
    torch.testing.assert_close(values.mean(0), torch.zeros(2), atol=1e-5, rtol=0)
    torch.testing.assert_close(values.square().mean(), torch.tensor(1.0))
    assert abs(float((values[:, 0] * values[:, 1]).mean())) < 1e-4
    again = PCA(7, 2)
    again.load_state_dict(few.state_dict())
    assert torch.equal(again(samples), values)
    assert (few(samples).abs() <= 127 * torch.from_numpy(few.steps())).all()
    with pytest.raises(OptionError, match=r"97 samples of 7 features have at most 7 .*num_components=8"):
        PCA.fit(samples, 8)


def test_annotations_know_their_positions():
    cells = torch.randn(2, 6, 5)
    plain, placed = Annotations(5, (2, 3)), Annotations(5, (2, 3), coordinates=True)
    assert torch.equal(plain(cells).states, cells)
    encoded = placed(cells)
    assert encoded.states.shape == (2, 6, placed.dim) == (2, 6, 7)
    assert encoded.states[0, :, 5:].tolist() == [[y, x] for y in (-1, 1) for x in (-1, 0, 1)]
    torch.testing.assert_close(encoded.summary, encoded.states.mean(1))
    assert Annotations(5, (2, 3), dim=11)(cells).states.ge(0).all()
    with pytest.raises(ShapeError, match="have 6 cells; the grid has 4"):
        Annotations(5, (2, 2))(cells)
