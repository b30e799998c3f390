"""Random views of images: what they show, where their cells are, and how batches take them."""

import numpy as np
import pytest
import torch
from PIL import Image

from regard.data.captioned_images import CaptionBatch, ImageTensors
from regard.errors import OptionError
from regard.systems.caption.config import CaptionData
from regard.systems.caption.views import AREA, View, ViewedImages, Views, names_of_views


def test_a_view_is_always_the_same_and_shows_at_least_half_of_the_image():
    drawn = [View.draw("dog.jpg", number) for number in range(200)]
    assert drawn == [View.draw("dog.jpg", number) for number in range(200)]
    assert len(set(drawn)) == 200
    for view in drawn:
        left, top, right, bottom = view.box
        assert 0 <= left < right <= 1 + 1e-9
        assert 0 <= top < bottom <= 1 + 1e-9
        assert (right - left) * (bottom - top) > 0.8 * AREA[0]
    assert 70 < sum(view.is_mirrored for view in drawn) < 130


@pytest.mark.parametrize("is_mirrored", [False, True])
def test_the_cells_of_a_view_are_those_that_it_shows(is_mirrored):
    grid = 7, 7
    # A picture in which the brightness of each cell is its number.
    picture = Image.fromarray(np.arange(49, dtype=np.uint8).reshape(grid)).resize((490, 490), Image.Resampling.NEAREST)
    view = View((0.2, 0.1, 0.9, 0.7), is_mirrored, 1.0, 1.0, 1.0)
    seen = np.asarray(view(picture.convert("RGB")).resize((490, 490), Image.Resampling.NEAREST))[:, :, 0]
    centres = seen[35::70, 35::70]
    np.testing.assert_array_equal(view.cells(grid), centres.ravel())


def test_the_colours_of_a_view_differ_from_those_of_the_image():
    picture = Image.new("RGB", (20, 20), (100, 50, 150))
    bright = View((0.0, 0.0, 1.0, 1.0), False, 1.2, 1.0, 1.0)(picture)
    assert np.asarray(bright)[0, 0].tolist() == [120, 60, 180]


def test_views_are_opened_by_name(tmp_path):
    Image.fromarray(np.random.default_rng(1).integers(0, 256, (40, 60, 3), dtype=np.uint8)).save(tmp_path / "a.png")
    assert names_of_views(["a.png", "b.png"], 2) == ["a.png#0", "a.png#1", "b.png#0", "b.png#1"]
    opened = ViewedImages(tmp_path).open("a.png#1")
    expected = View.draw("a.png", 1)(Image.open(tmp_path / "a.png"))
    assert np.array_equal(np.asarray(opened), np.asarray(expected))


def test_a_batch_takes_views_and_moves_the_right_cells_with_them():
    torch.manual_seed(1)
    features = torch.randn(3, 4, 5)
    views = Views(ImageTensors(torch.randn(6, 4, 5)), torch.tensor([[3, 2, 1, 0]] * 6), 2)
    indices = torch.arange(300) % 3
    right = torch.zeros(300, 2, 4, dtype=torch.bool)
    right[:, 0, 0] = True
    batch = CaptionBatch(features[indices], torch.zeros(300, 3, dtype=torch.long), indices, right)
    drawn = views.draw(batch)
    choices = torch.cat([features[:, None], views.images.values.view(3, 2, 4, 5)], 1)[indices]
    same = (drawn.images[:, None] == choices).flatten(2).all(-1)
    assert (same.sum(1) == 1).all(), "each is the image itself or one of its own views"
    assert all(70 < count < 130 for count in same.sum(0).tolist())
    assert drawn.right[same[:, 0], 0].equal(right[same[:, 0], 0])
    assert drawn.right[~same[:, 0], 0, 3].all()
    assert not drawn.right[:, 1].any()
    assert drawn.target.equal(batch.target)


def test_views_that_cannot_be_made_are_refused():
    with pytest.raises(OptionError, match="a world has none"):
        CaptionData(world="scenes", views=2)
