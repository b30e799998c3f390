"""Random augmentation: what may change, and what must not."""

import torch

from regard.systems.recognize.augmentation import cutout, random_crop, random_flip


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
