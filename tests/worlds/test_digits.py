"""Images of digits: where the digit is, what clutters it, and that the same seed draws the same images."""

import numpy as np
import pytest
import torch
from helpers.files import write_mnist

from regard.errors import DataError, OptionError
from regard.worlds.digits import DIGITS, INK_LEVEL, DigitWorld, Glyphs, font_glyphs, mnist_glyphs


@pytest.fixture(scope="module")
def glyphs():
    return font_glyphs()[0]


def test_fonts_have_each_digit_in_every_face_and_share_no_glyph_between_the_parts():
    parts = font_glyphs()
    for part in parts:
        assert part.size == (28, 28)
        assert part.labels.bincount().tolist() == [len(part) // 10] * 10
        assert (part.images.flatten(1).amax(1) > 200).all()
    seen = [{image.numpy().tobytes() for image in part.images} for part in parts]
    assert not seen[0] & seen[1]
    assert not seen[0] & seen[2]
    assert not seen[1] & seen[2]


def test_a_translated_digit_is_its_glyph_inside_its_box(glyphs):
    drawn = DigitWorld(45).fixed(glyphs, 60, seed=1)
    assert drawn.images.shape == (60, 1, 45, 45)
    assert torch.equal(drawn.labels, glyphs.labels[:60])
    for image, glyph, box in zip(drawn.images[:, 0], glyphs.images, drawn.boxes.tolist(), strict=False):
        left, top, right, bottom = box
        assert 0 <= left < right <= 45
        assert 0 <= top < bottom <= 45
        assert int(image.sum()) == int(glyph.sum())
        ink = torch.nonzero(image >= INK_LEVEL)
        assert ink.amin(0).tolist() == [top, left]
        assert (ink.amax(0) + 1).tolist() == [bottom, right]
    assert len({tuple(box) for box in drawn.boxes.tolist()}) > 40, "digits are all over the image"


def test_clutter_adds_pieces_and_never_removes_ink(glyphs):
    plain = DigitWorld(60).fixed(glyphs, 30, seed=5)
    cluttered = DigitWorld(60, pieces=4, piece_size=8).fixed(glyphs, 30, seed=5)
    assert torch.equal(plain.boxes, cluttered.boxes)
    assert (cluttered.images >= plain.images).all()
    changed = (cluttered.images != plain.images).flatten(1).sum(1)
    assert (changed <= 4 * 64).all()
    assert (changed > 0).float().mean() > 0.9


def test_distortion_changes_digits_but_not_what_they_are(glyphs):
    plain = DigitWorld(28).fixed(glyphs, 50, seed=2)
    distorted = DigitWorld(28, distortion=0.3).fixed(glyphs, 50, seed=2)
    assert torch.equal(plain.labels, distorted.labels)
    assert (plain.images != distorted.images).flatten(1).any(1).all()
    kept = torch.minimum(plain.images, distorted.images).float().sum() / plain.images.float().sum()
    assert 0.4 < kept < 1


def test_the_seed_decides_the_images_and_the_loader_draws_new_ones_each_time(glyphs):
    world = DigitWorld(40, pieces=2)
    first, again, other = (world.fixed(glyphs, 20, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first.images, again.images)
    assert not torch.equal(first.images, other.images)
    loader = world.loader(glyphs, examples=50, batch_size=16, seed=1)
    torch.manual_seed(1)
    batches = list(loader)
    assert [len(labels) for _, labels in batches].count(16) == 3
    assert sum(len(labels) for _, labels in batches) == 50
    assert batches[0][0].dtype == torch.uint8
    assert not torch.equal(batches[0][0], next(iter(loader))[0])
    valid = list(first.loader(8))
    assert torch.equal(torch.cat([images for images, _ in valid]), first.images)


def test_a_digit_without_ink_has_the_box_of_its_glyph():
    empty = Glyphs(torch.zeros(1, 28, 28, dtype=torch.uint8), torch.zeros(1, dtype=torch.long))
    (box,) = DigitWorld(28).fixed(empty, 1, seed=0).boxes.tolist()
    assert box == [0, 0, 28, 28]


def test_what_cannot_be_drawn_is_explained(glyphs):
    with pytest.raises(OptionError, match="Digits of 28 x 28 pixels do not fit into images of 1 x 1"):
        DigitWorld(1).fixed(glyphs, 1, seed=0)
    with pytest.raises(OptionError, match="piece_size must be from 1 to 28; got 30"):
        DigitWorld(60, pieces=1, piece_size=30).fixed(glyphs, 1, seed=0)
    with pytest.raises(DataError, match="at least one; got 0 images"):
        Glyphs(torch.zeros(0, 28, 28, dtype=torch.uint8), torch.zeros(0, dtype=torch.long))
    with pytest.raises(DataError, match=r"train-images|t10k-images"):
        mnist_glyphs("nowhere")


def test_digits_of_mnist_files_are_split_by_what_they_show(tmp_path):
    random = np.random.default_rng(1)
    train, test = ((random.integers(0, 256, (count, 28, 28)), np.arange(count) % 10) for count in (60, 20))
    write_mnist(tmp_path, train=train, t10k=test)
    train, valid, test = mnist_glyphs(tmp_path, held_out=5000)
    assert (len(train), len(valid), len(test)) == (54, 6, 20)
    assert DIGITS[int(test.labels[3])] == "3"
