"""One picture: every mode, rotation and transparency, and each broken file told by its name."""

import numpy as np
import pytest
from PIL import Image

from regard.data.picture import fit_ink, fit_picture, open_picture
from regard.errors import DataError, OptionError, ShapeError


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16", "F"])
@pytest.mark.parametrize("channels", [1, 3])
def test_every_mode_becomes_grey_or_rgb(mode, channels):
    assert open_picture(Image.new(mode, (5, 3)), channels=channels).mode == ("L" if channels == 1 else "RGB")
    assert fit_picture(Image.new(mode, (5, 3)), 7, channels=channels).shape == (channels, 7, 7)


def test_transparent_pixels_are_white():
    picture = Image.new("RGBA", (2, 1), (255, 0, 0, 0))
    picture.putpixel((1, 0), (0, 0, 255, 255))
    assert [open_picture(picture).getpixel((x, 0)) for x in (0, 1)] == [(255, 255, 255), (0, 0, 255)]


def test_a_picture_stands_as_its_camera_was_held(tmp_path):
    picture = Image.new("RGB", (4, 2))
    picture.putpixel((0, 0), (255, 255, 255))
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    picture.save(tmp_path / "a.png", exif=exif)
    opened = open_picture(tmp_path / "a.png")
    assert opened.size == (2, 4)
    assert opened.getpixel((1, 0)) == (255, 255, 255)


def test_the_middle_is_taken():
    array = np.zeros((4, 8, 3), np.uint8)
    array[:, 2:6] = 200
    assert (fit_picture(array, 4) == 200).all()


def test_arrays_of_every_kind_are_pictures():
    grey = np.arange(12, dtype=np.uint8).reshape(3, 4) * 20
    expected = np.asarray(open_picture(grey, channels=1))
    assert np.array_equal(expected, grey)
    for array in (grey / 255, grey.astype(int), grey[:, :, None], grey[None]):
        assert np.array_equal(np.asarray(open_picture(array, channels=1)), grey)


@pytest.mark.parametrize(
    "array", [np.zeros(5), np.zeros((2, 3, 5)), np.full((2, 2), -1), np.full((2, 2), 300), np.zeros((0, 3), np.uint8)]
)
def test_arrays_that_are_no_pictures_are_refused(array, as_a_user):
    with pytest.raises(ShapeError, match="got"):
        open_picture(array)


def test_broken_files_are_told_by_name(tmp_path, monkeypatch):
    (tmp_path / "text.png").write_text("no picture")
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64, 3), np.uint8)).save(tmp_path / "whole.jpg")
    (tmp_path / "cut.jpg").write_bytes((tmp_path / "whole.jpg").read_bytes()[:900])
    with pytest.raises(DataError, match=r"text\.png is not a picture"):
        open_picture(tmp_path / "text.png")
    with pytest.raises(DataError, match=r"cut\.jpg is damaged"):
        open_picture(tmp_path / "cut.jpg")
    with pytest.raises(FileNotFoundError):
        open_picture(tmp_path / "none.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    with pytest.raises(DataError, match=r"whole\.jpg is too large"):
        open_picture(tmp_path / "whole.jpg")
    with pytest.raises(OptionError, match="got channels=2"):
        open_picture(tmp_path / "whole.jpg", channels=2)


def test_ink_is_made_light_on_dark_and_put_in_the_middle():
    page = np.full((90, 120), 230, np.uint8)
    page[10:50, 80:90] = 40
    pixels = fit_ink(page, 28)[0]
    rows, columns = np.nonzero(pixels)
    assert (rows.min(), rows.max()) == (4, 23)
    assert columns.max() - columns.min() == 4
    assert abs(columns.mean() - 13.5) <= 0.5
    assert pixels.max() == 255
    assert not fit_ink(np.full((50, 50), 240, np.uint8), 28).any(), "an empty page"


def test_a_digit_of_the_right_kind_stays_as_it_is():
    digit = np.zeros((28, 28), np.uint8)
    digit[3:9, 4:7] = 100
    assert np.array_equal(fit_ink(digit, 28)[0], digit)
