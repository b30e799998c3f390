"""The retina sees what a slow, literal loop over pixels sees, and the glimpse network reads it."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import OptionError
from regard.layers.glimpse import GlimpseNetwork, crop, retina, window_offsets


def slow_retina(image, x, y, size, num_scales):
    """Pixel by pixel: each cell of scale k is the mean of 2^k x 2^k pixels, 0 outside of the image."""
    channels, height, width = image.shape
    start = []
    for location, extent in ((x, width), (y, height)):
        finest = math.floor((location + 1) / 2 * extent - size / 2 + 0.5)
        start.append(min(max(finest, 1 - size), extent - 1))
    seen = torch.zeros(num_scales, channels, size, size, dtype=torch.float64)
    for scale in range(num_scales):
        step = 2**scale
        left, top = (each - (size * step - size) // 2 for each in start)
        for channel in range(channels):
            for row in range(size):
                for column in range(size):
                    total = 0.0
                    for down in range(step):
                        for across in range(step):
                            v, u = top + row * step + down, left + column * step + across
                            if 0 <= v < height and 0 <= u < width:
                                total += float(image[channel, v, u])
                    seen[scale, channel, row, column] = total / step**2
    return seen


@settings(max_examples=40, deadline=None)
@given(
    height=st.integers(1, 13), width=st.integers(1, 13), size=st.integers(1, 5), num_scales=st.integers(1, 3),
    x=st.sampled_from([-1.5, -1.0, -0.31, 0.0, 0.47, 1.0, 2.0]), y=st.sampled_from([-1.0, -0.83, 0.0, 0.11, 1.0]),
)  # fmt: skip
def test_the_retina_is_the_literal_loop(height, width, size, num_scales, x, y):
    images = torch.rand(2, 2, height, width, dtype=torch.float64)
    locations = torch.tensor([[x, y], [y, x]], dtype=torch.float64)
    seen = retina(images, locations, size=size, num_scales=num_scales)
    assert seen.shape == (2, num_scales, 2, size, size)
    for row, (across, down) in enumerate(locations.tolist()):
        expected = slow_retina(images[row], across, down, size, num_scales)
        torch.testing.assert_close(seen[row], expected)


def test_the_centre_of_an_image_is_seen_exactly():
    images = torch.arange(2 * 49.0).view(2, 1, 7, 7)
    seen = retina(images, torch.zeros(2, 2), size=3)
    assert torch.equal(seen[:, 0], images[:, :, 2:5, 2:5])


def test_a_corner_is_surrounded_by_zeros():
    images = torch.ones(1, 1, 6, 6)
    seen = retina(images, torch.tensor([[-1.0, -1.0]]), size=4)[0, 0, 0]
    assert torch.equal(seen[2:, 2:], torch.ones(2, 2))
    assert seen.sum() == 4


def test_the_widest_scale_of_a_large_retina_has_the_mean_of_the_image():
    images = torch.rand(3, 1, 8, 8)
    seen = retina(images, torch.zeros(3, 2), size=2, num_scales=4)
    assert seen[:, 3].sum((1, 2, 3)) * 64 == pytest.approx(images.sum((1, 2, 3)))


def test_a_batch_is_seen_as_its_images_one_by_one():
    images, locations = torch.rand(5, 3, 11, 7), 2 * torch.rand(5, 2) - 1
    together = retina(images, locations, size=3, num_scales=2)
    for row in range(5):
        assert torch.equal(
            together[row], retina(images[row : row + 1], locations[row : row + 1], size=3, num_scales=2)[0]
        )


def test_windows_of_all_scales_overlap_the_image():
    locations = torch.tensor([[-1.0, 1.0], [1.0, -1.0], [5.0, -5.0]])
    for size in (1, 2, 5):
        offsets = window_offsets(locations, image=(3, 4), size=size)
        assert (offsets[:, 0] > -size).all()
        assert (offsets[:, 0] < 4).all()
        assert (offsets[:, 1] > -size).all()
        assert (offsets[:, 1] < 3).all()


def test_crop_keeps_the_type_and_a_retina_needs_a_size():
    images = torch.arange(2 * 20, dtype=torch.uint8).view(2, 1, 4, 5)
    cut = crop(images, torch.tensor([[1, 0], [-1, 3]]), (2, 3))
    assert cut.dtype == torch.uint8
    assert torch.equal(cut[0, 0], images[0, 0, :2, 1:4])
    assert cut[1, 0].tolist() == [[0, int(images[1, 0, 3, 0]), int(images[1, 0, 3, 1])], [0, 0, 0]]
    with pytest.raises(OptionError, match="1 or more; got size=0"):
        retina(torch.ones(1, 1, 3, 3), torch.zeros(1, 2), size=0)


@pytest.mark.parametrize("what", ["linear", "convolution"])
@pytest.mark.parametrize("size", [1, 4, 5])
def test_the_network_reads_what_and_where(what, size):
    torch.manual_seed(1)
    network = GlimpseNetwork(channels=2, size=size, num_scales=2, dim=11, out_dim=13, what=what)
    images, here, there = torch.rand(3, 2, 9, 9), torch.zeros(3, 2), torch.full((3, 2), 0.9)
    features = network(images, here)
    assert features.shape == (3, 13)
    assert (features >= 0).all()
    assert not torch.equal(features, network(images, there))
    blank = torch.zeros_like(images)
    assert not torch.equal(network(blank, here), network(blank, there)), "where it looks counts, even if all is dark"
    features.sum().backward()
    assert all(each.grad is not None for each in network.parameters())


def test_a_linear_glimpse_is_the_formula_of_the_paper():
    network = GlimpseNetwork(channels=1, size=3, num_scales=2, dim=5, out_dim=7).double()
    images, location = torch.rand(2, 1, 8, 8, dtype=torch.float64), torch.tensor([[0.2, -0.4], [0.9, 0.0]]).double()
    pixels = retina(images, location, size=3, num_scales=2).reshape(2, -1)
    what = (pixels @ network.what[1].weight.T + network.what[1].bias).clamp(min=0)
    where = (location @ network.where[0].weight.T + network.where[0].bias).clamp(min=0)
    expected = what @ network.from_what.weight.T + network.from_what.bias
    expected = expected + where @ network.from_where.weight.T + network.from_where.bias
    torch.testing.assert_close(network(images, location), expected.clamp(min=0))
