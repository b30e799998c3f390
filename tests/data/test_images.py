"""Images of every format: opened upright in RGB or grey, or refused by name."""

import zlib

import numpy as np
import pytest
from helpers.files import saved
from PIL import Image

from regard.data import images
from regard.data.images import ImageReport, Images, Square, channels_first, open_image
from regard.errors import DataError, OptionError

LEVELS = np.arange(7 * 5 * 3, dtype=np.uint8).reshape(7, 5, 3) * 2


def test_an_image_that_needs_no_conversion_is_unchanged(tmp_path):
    (tmp_path / "a.png").write_bytes(saved(Image.fromarray(LEVELS)))
    for image in (LEVELS, Image.fromarray(LEVELS), saved(Image.fromarray(LEVELS)), tmp_path / "a.png"):
        assert np.array_equal(np.asarray(open_image(image)), LEVELS)
    assert np.array_equal(np.asarray(open_image(str(tmp_path / "a.png"))), LEVELS)


def test_exif_orientation_is_applied():
    image = Image.fromarray(LEVELS)
    exif = image.getexif()
    exif[0x0112] = 6
    turned = open_image(saved(image, exif=exif.tobytes()))
    assert turned.size == (7, 5)
    assert np.array_equal(np.asarray(turned), np.rot90(LEVELS, -1))


def test_broken_exif_data_does_not_lose_the_image():
    broken = saved(Image.fromarray(LEVELS), exif=b"Exif\x00\x00MM\x00\x2a\xff\xff\xff\xff nonsense")
    assert open_image(broken).size == (5, 7)


def white(mode: str) -> Image.Image:
    """A white image in any mode of Pillow."""
    if mode.startswith("I;16"):
        return Image.fromarray(np.full((4, 6), 65535, np.uint16))
    grey = Image.new("L", (6, 4), 255)
    return grey.convert(mode) if mode in ("I", "F", "LA") else grey.convert("RGB").convert(mode)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK", "YCbCr", "LAB", "HSV", "I", "F", "I;16"])
@pytest.mark.parametrize(("channels", "expected"), [(1, "L"), (3, "RGB")])
def test_every_mode_becomes_grey_or_rgb(mode, channels, expected):
    opened = open_image(white(mode), channels=channels)
    assert opened.mode == expected
    assert opened.size == (6, 4)
    assert np.asarray(opened).min() > 250, "white stays white"


@pytest.mark.parametrize("highest", [1.0, 255, 65535, 1e7])
def test_white_is_inferred_from_the_highest_level_of_a_16_bit_or_float_image(highest):
    levels = np.linspace(0, highest, 6, dtype=np.float32).reshape(2, 3)
    opened = np.asarray(open_image(Image.fromarray(levels), channels=1))
    assert opened.tolist() == [[0, 51, 102], [153, 204, 255]]
    levels[0, 0] = np.nan
    assert np.array_equal(np.asarray(open_image(Image.fromarray(levels), channels=1)), opened)


def test_colours_become_grey_as_eyes_see_them():
    image = Image.new("RGB", (3, 1))
    for x, colour in enumerate(((255, 0, 0), (0, 255, 0), (0, 0, 255))):
        image.putpixel((x, 0), colour)
    assert np.asarray(open_image(image, channels=1)).tolist() == [[76, 150, 29]]
    with pytest.raises(OptionError, match=r"1 channel .* or 3 .*; got channels=2"):
        open_image(image, channels=2)


def test_a_cmyk_photograph_keeps_its_colours():
    red = Image.new("RGB", (16, 16), (230, 20, 30))
    opened = np.asarray(open_image(saved(red.convert("CMYK"), "JPEG", quality=95)))
    assert abs(opened.astype(int) - [230, 20, 30]).max() < 12


@pytest.mark.parametrize("mode", ["RGBA", "LA", "PA", "RGBa"])
@pytest.mark.parametrize("channels", [1, 3])
def test_transparency_becomes_white(mode, channels):
    image = Image.new(mode, (4, 4))
    assert np.asarray(open_image(image, channels=channels)).min() == 255
    image = Image.new("RGBA", (2, 1), (255, 0, 0, 0))
    image.putpixel((1, 0), (0, 0, 255, 255))
    assert [open_image(image).getpixel((x, 0)) for x in (0, 1)] == [(255, 255, 255), (0, 0, 255)]


def test_a_transparent_palette_becomes_white():
    image = Image.new("P", (4, 4), 3)
    image.putpalette([0, 0, 0] * 4)
    assert np.asarray(open_image(saved(image, transparency=3))).min() == 255
    assert np.asarray(open_image(saved(image))).max() == 0


def test_the_first_frame_of_an_animation_is_used():
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "blue")]
    opened = open_image(saved(frames[0], "GIF", save_all=True, append_images=frames[1:]))
    assert np.asarray(opened)[0, 0].tolist() == [255, 0, 0]


def bomb(side: int) -> bytes:
    """A PNG of a few bytes whose header states a large image."""
    content = bytearray(saved(Image.new("L", (1, 1))))
    content[16:24] = side.to_bytes(4) + side.to_bytes(4)
    content[29:33] = zlib.crc32(content[12:29]).to_bytes(4)
    return bytes(content)


PHOTO = saved(Image.effect_noise((64, 64), 50).convert("RGB"), "JPEG")
BROKEN = {
    "empty.jpg": (b"", "not an image that Pillow can read"),
    "text.png": (b"not an image", "not an image that Pillow can read"),
    "half.jpg": (PHOTO[: len(PHOTO) // 2], "truncated"),
    "half.png": (saved(Image.effect_noise((64, 64), 50))[:900], "cannot be"),
    "bomb.png": (bomb(60_000), "too large"),
    "bomb2.png": (bomb(12_000), r"too large: 12000 x 12000 pixels"),
    "column.png": (saved(Image.new("L", (1, 40_000))), r"1 x 40000 pixels, and at most 32,768 on a side"),
    "deep.tif": (saved(Image.new("F", (9, 8000)), "TIFF"), r"take 288,000 bytes when decoded, and at most 250,000"),
    "chunk.png": (saved(Image.new("L", (9, 9))).replace(b"IDAT", b"IDAX"), "chunk.png"),
}


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("name", BROKEN)
def test_an_unusable_image_is_named(name, tmp_path, monkeypatch):
    monkeypatch.setattr(images, "MAX_DECODED_BYTES", 250_000)
    content, why = BROKEN[name]
    with pytest.raises(DataError, match=why) as caught:
        open_image(content, name=name)
    assert str(caught.value).startswith(name)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=why) as caught:
        open_image(tmp_path / name)
    assert str(caught.value).startswith(str(tmp_path / name))


def test_the_limits_on_pixels_of_the_caller_and_of_pillow_both_hold(monkeypatch):
    with pytest.raises(DataError, match="The image is too large: 64 x 64 pixels, and at most 4,095 pixels are allowed"):
        open_image(PHOTO, max_pixels=4095)
    assert open_image(PHOTO, max_pixels=4096).size == (64, 64)
    # Pillow warns of what is a little over its limit, which is an error here, and refuses what is twice as large.
    for pixels in (4000, 1000):
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", pixels)
        with pytest.raises(DataError, match=r"The image is too large: Image size \(4096 pixels\) exceeds"):
            open_image(PHOTO)


def test_missing_files_and_other_types_are_refused(tmp_path, as_a_user):
    with pytest.raises(DataError, match=r"There is no image nowhere\.png\."):
        open_image("nowhere.png")
    with pytest.raises(DataError, match=r"There is no image .*: it is a folder"):
        open_image(tmp_path)
    with pytest.raises(DataError, match="got NoneType"):
        open_image(None)


def test_the_image_given_is_not_modified():
    given = Image.fromarray(LEVELS)
    open_image(given).putpixel((0, 0), (9, 9, 9))
    assert np.array_equal(np.asarray(given), LEVELS)


@pytest.mark.parametrize("seed", range(40))
def test_no_damage_stops_a_stream(seed, tmp_path):
    random = np.random.default_rng(seed)
    kind = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF")[seed % 6]
    content = bytearray(saved(Image.effect_noise((40, 30), 60).convert("RGB"), kind))
    for index in random.integers(0, len(content), 12):
        content[index] = random.integers(256)
    report = ImageReport()
    (tmp_path / "x.png").write_bytes(content)
    opened = [image.mode for _, image in Images(tmp_path).stream(["x.png"], report)]
    assert opened == ["RGB"] or report.bad["x.png"].startswith("x.png ")


def test_a_square_is_the_centre_of_an_image():
    wide = np.zeros((40, 120, 3), np.uint8)
    wide[:, 40:80] = 255
    assert np.asarray(Square(20)(Image.fromarray(wide)))[:, 2:-2].min() > 250
    assert Square(20)(Image.fromarray(wide.transpose(1, 0, 2).copy())).shape == (20, 20, 3)
    assert repr(Square(20)) == "Square(side=20)"
    with pytest.raises(OptionError, match="side=0"):
        Square(0)


def test_a_square_of_a_grey_image_has_one_channel():
    assert Square(3)(Image.new("L", (5, 4))).shape == (3, 3)
    assert np.array_equal(channels_first(LEVELS[:, :, 0]), LEVELS[None, :, :, 0])
    assert np.array_equal(channels_first(LEVELS)[2], LEVELS[:, :, 2])


def test_arrays_of_every_layout_are_opened():
    grey = np.arange(15, dtype=np.uint8).reshape(3, 5) * 17
    for array in (grey, grey / 255, grey.astype(int), grey[:, :, None], grey[None]):
        assert np.array_equal(np.asarray(open_image(array, channels=1)), grey)
    for array in (LEVELS / 255, LEVELS.astype(int), LEVELS.transpose(2, 0, 1)):
        assert np.array_equal(np.asarray(open_image(array)), LEVELS)
    assert np.asarray(open_image(np.zeros((3, 4, 4), np.uint8))).min() == 255, "transparent"


@pytest.mark.parametrize(("height", "width"), [(1, 4), (1, 1), (3, 4), (3, 1)])
def test_an_array_of_few_rows_has_its_channels_last(height, width):
    pixels = np.arange(height * width * 3, dtype=np.uint8).reshape(height, width, 3)
    assert np.array_equal(np.asarray(open_image(pixels)), pixels)


@pytest.mark.parametrize(
    "array", [np.zeros(5), np.zeros((2, 3, 5)), np.full((2, 2), -1), np.full((2, 2), 300), np.zeros((0, 3), np.uint8)]
)
def test_arrays_that_are_not_images_are_explained(array, as_a_user):
    with pytest.raises(DataError, match=r"The array is not an image: .*; got"):
        open_image(array)
    with pytest.raises(DataError, match=r"^x is not an image"):
        open_image(array, name="x")


def test_the_size_of_an_upright_image_is_read_without_decoding_it(tmp_path):
    image = Image.new("RGB", (5, 3))
    exif = image.getexif()
    exif[0x0112] = 6
    (tmp_path / "turned.jpg").write_bytes(saved(image, "JPEG", exif=exif.tobytes()))
    (tmp_path / "broken.png").write_bytes(saved(image, exif=b"Exif\x00\x00MM\x00\x2a\xff\xff\xff\xff nonsense"))
    (tmp_path / "cut.png").write_bytes(b"no image")
    images = Images(tmp_path)
    assert images.size("turned.jpg") == images.open("turned.jpg").size == (3, 5)
    assert images.size("broken.png") == (5, 3)
    with pytest.raises(DataError, match=r"cut\.png is not an image"):
        images.size("cut.png")
