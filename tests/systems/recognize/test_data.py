"""Images as a classifier learns from them: characters in the style of MNIST, and random augmentation."""

import numpy as np
import torch
from PIL import Image

from regard.systems.recognize.data import cutout, random_crop, random_flip, to_mnist_style


def test_a_character_becomes_light_on_dark_and_centred():
    page = np.full((90, 120), 230, np.uint8)
    page[10:50, 80:90] = 40
    pixels = to_mnist_style(Image.fromarray(page).convert("RGB"), 28)
    rows, columns = np.nonzero(pixels)
    assert (rows.min(), rows.max()) == (4, 23)
    assert columns.max() - columns.min() == 4
    assert abs(columns.mean() - 13.5) <= 0.5
    assert pixels.max() == 255
    assert not to_mnist_style(Image.new("L", (50, 50), 240), 28).any(), "an empty page"


def test_a_digit_in_the_right_style_is_unchanged():
    digit = np.zeros((28, 28), np.uint8)
    digit[3:9, 4:7] = 100
    assert np.array_equal(to_mnist_style(Image.fromarray(digit), 28), digit)


def test_a_crop_shifts_each_image_as_a_whole():
    images = torch.rand(53, 2, 7, 11) + 1
    moved = random_crop(images, 2)
    assert moved.shape == images.shape
    padded = torch.nn.functional.pad(images, (2, 2, 2, 2))
    shifts = set()
    for image, before in zip(moved, padded, strict=True):
        found = [(y, x) for y in range(5) for x in range(5) if torch.equal(image, before[:, y : y + 7, x : x + 11])]
        assert len(found) == 1
        shifts.add(found[0])
    assert len(shifts) > 12, "each by itself"
    assert random_crop(images, 0) is images


def test_a_flip_mirrors_about_half():
    images = torch.rand(97, 3, 5, 7)
    flipped = random_flip(images)
    mirrored = [torch.equal(a, b.flip(2)) for a, b in zip(flipped, images, strict=True)]
    assert all(m or torch.equal(a, b) for m, a, b in zip(mirrored, flipped, images, strict=True))
    assert 30 < sum(mirrored) < 67


def test_cutout_blanks_one_square_of_all_channels():
    images = torch.ones(499, 2, 11, 13)
    blanked = cutout(images, 4) == 0
    assert torch.equal(blanked[:, 0], blanked[:, 1])
    for one in blanked[:, 0]:
        rows, columns = one.any(1).sum(), one.any(0).sum()
        assert 2 <= rows <= 4
        assert 2 <= columns <= 4
        assert one.sum() == rows * columns
    assert (blanked[:, 0].flatten(1).sum(1) == 16).any()
    assert blanked[:, 0].any(0).all(), "every pixel may be blanked"
    assert cutout(images, 0) is images
