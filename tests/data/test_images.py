"""Pictures of every kind: upright, RGB, or named with what is wrong; from folders, tar and zip alike."""

import io
import pickle
import tarfile
import zipfile
import zlib

import numpy as np
import pytest
from PIL import Image

from regard.data.images import ImageReport, Images, Square, open_image
from regard.errors import DataError, OptionError

LEVELS = np.arange(7 * 5 * 3, dtype=np.uint8).reshape(7, 5, 3) * 2


def saved(image: Image.Image, kind: str = "PNG", **options) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def test_what_needs_no_change_comes_out_as_it_is(tmp_path):
    (tmp_path / "a.png").write_bytes(saved(Image.fromarray(LEVELS)))
    for picture in (LEVELS, Image.fromarray(LEVELS), saved(Image.fromarray(LEVELS)), tmp_path / "a.png"):
        assert np.array_equal(np.asarray(open_image(picture)), LEVELS)
    assert np.array_equal(np.asarray(open_image(str(tmp_path / "a.png"))), LEVELS)


def test_a_picture_is_turned_as_its_note_says():
    image = Image.fromarray(LEVELS)
    exif = image.getexif()
    exif[0x0112] = 6
    turned = open_image(saved(image, exif=exif.tobytes()))
    assert turned.size == (7, 5)
    assert np.array_equal(np.asarray(turned), np.rot90(LEVELS, -1))


def test_a_broken_note_does_not_lose_the_picture():
    broken = saved(Image.fromarray(LEVELS), exif=b"Exif\x00\x00MM\x00\x2a\xff\xff\xff\xff nonsense")
    assert open_image(broken).size == (5, 7)


@pytest.mark.parametrize("mode", ["1", "L", "P", "CMYK", "YCbCr", "LAB", "HSV", "I", "F", "I;16"])
def test_every_mode_becomes_rgb(mode):
    grey = Image.fromarray(np.full((4, 6), 255, np.uint8))
    image = (
        grey.convert("RGB").convert(mode) if mode not in ("I", "F", "I;16") else grey.convert(mode.partition(";")[0])
    )
    if mode == "I;16":
        image = Image.fromarray(np.full((4, 6), 65535, np.uint16))
    made = open_image(image)
    assert made.mode == "RGB"
    assert np.asarray(made).min() > 250, "white stays white"


def test_a_cmyk_photograph_keeps_its_colours():
    red = Image.new("RGB", (16, 16), (230, 20, 30))
    made = np.asarray(open_image(saved(red.convert("CMYK"), "JPEG", quality=95)))
    assert abs(made.astype(int) - [230, 20, 30]).max() < 12


@pytest.mark.parametrize("mode", ["RGBA", "LA", "PA"])
def test_what_is_transparent_becomes_white(mode):
    image = Image.new("RGBA", (4, 4), (0, 0, 0, 0)).convert(mode if mode != "PA" else "RGBA")
    assert np.asarray(open_image(image)).min() == 255


def test_a_transparent_palette_becomes_white():
    image = Image.new("P", (4, 4), 3)
    image.putpalette([0, 0, 0] * 4)
    assert np.asarray(open_image(saved(image, transparency=3))).min() == 255
    assert np.asarray(open_image(saved(image))).max() == 0


def test_of_an_animation_the_first_frame_is_taken():
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "blue")]
    made = open_image(saved(frames[0], "GIF", save_all=True, append_images=frames[1:]))
    assert np.asarray(made)[0, 0].tolist() == [255, 0, 0]


def bomb(side: int) -> bytes:
    """A PNG of a few bytes that says it is a large picture."""
    picture = bytearray(saved(Image.new("L", (1, 1))))
    picture[16:24] = side.to_bytes(4) + side.to_bytes(4)
    picture[29:33] = zlib.crc32(picture[12:29]).to_bytes(4)
    return bytes(picture)


PHOTO = saved(Image.effect_noise((64, 64), 50).convert("RGB"), "JPEG")
BROKEN = {
    "empty.jpg": (b"", "no picture that Pillow can read"),
    "text.png": (b"not a picture", "no picture that Pillow can read"),
    "half.jpg": (PHOTO[: len(PHOTO) // 2], "truncated"),
    "half.png": (saved(Image.effect_noise((64, 64), 50))[:900], "cannot be"),
    "bomb.png": (bomb(60_000), "too large"),
    "bomb2.png": (bomb(12_000), r"too large: 12000 x 12000 pixels"),
    "chunk.png": (saved(Image.new("L", (9, 9))).replace(b"IDAT", b"IDAX"), "chunk.png"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_cannot_be_used_is_named(name):
    content, why = BROKEN[name]
    with pytest.raises(DataError, match=why) as caught:
        open_image(content, name=name)
    assert name in str(caught.value)


@pytest.mark.parametrize("seed", range(40))
def test_no_damage_stops_a_stream(seed, tmp_path):
    chance = np.random.default_rng(seed)
    kind = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF")[seed % 6]
    content = bytearray(saved(Image.effect_noise((40, 30), 60).convert("RGB"), kind))
    for place in chance.integers(0, len(content), 12):
        content[place] = chance.integers(256)
    report = ImageReport()
    (tmp_path / "x.png").write_bytes(content)
    made = [image.mode for _, image in Images(tmp_path).stream(["x.png"], report)]
    assert made == ["RGB"] or report.bad["x.png"].startswith("x.png ")


@pytest.fixture
def places(tmp_path):
    """The same pictures in a folder, a tar and two kinds of zip."""
    folder = tmp_path / "folder"
    (folder / "sub").mkdir(parents=True)
    files = {f"sub/{n}.png": saved(Image.new("RGB", (8, 8), (n, 0, 0))) for n in range(5)}
    files["sub/bad.jpg"] = PHOTO[: len(PHOTO) // 2]
    files["notes.txt"] = b"no picture"
    for name, content in files.items():
        (folder / name).write_bytes(content)
    with tarfile.open(tmp_path / "all.tar", "w") as tar:
        tar.add(folder, ".")
    for name, how in (("stored.zip", zipfile.ZIP_STORED), ("deflated.ZIP", zipfile.ZIP_DEFLATED)):
        with zipfile.ZipFile(tmp_path / name, "w", how) as archive:
            archive.writestr("__MACOSX/sub/0.png", b"no picture")
            for file, content in files.items():
                archive.writestr(file, content)
    return [folder, tmp_path / "all.tar", tmp_path / "stored.zip", tmp_path / "deflated.ZIP"]


@pytest.mark.parametrize("which", range(4))
def test_folders_and_archives_hold_the_same_pictures(places, which):
    images = pickle.loads(pickle.dumps(Images(places[which])))  # noqa: S301
    assert len(images) == 6
    for name in ("3", "3.png", "sub/3.png"):
        assert name in images
    assert np.asarray(images.open("3"))[0, 0].tolist() == [3, 0, 0]
    report = ImageReport()
    good = [name for name, _ in images.stream(["0", "bad", "1.png", "nowhere.jpg"], report)]
    assert good == ["0", "1.png"]
    assert list(report.bad) == ["bad", "nowhere.jpg"]
    assert str(report).startswith("2 pictures read, 2 left out: bad cannot be decoded")
    assert "There is no picture nowhere.jpg in" in str(report)


def test_a_name_in_two_places_must_be_told_apart(places, tmp_path):
    (places[0] / "3.png").write_bytes(saved(Image.new("RGB", (8, 8), (99, 0, 0))))
    images = Images(places[0])
    assert np.asarray(images.open("3.png"))[0, 0, 0] == 99, "the whole path is meant"
    assert np.asarray(images.open("sub/3.png"))[0, 0, 0] == 3
    with pytest.raises(DataError, match="3 could be any of 2 pictures"):
        images.open("3")
    with pytest.raises(DataError, match="could be any of 2"):
        Images(places[1], places[2]).open("0.png")


def test_places_that_hold_no_pictures_are_explained(tmp_path, places):
    reasons = {"nowhere": "There is no folder or archive", "x.tar.gz": "unpack it", "x.zip": "as an archive"}
    for wrong, says in reasons.items():
        path = tmp_path / wrong
        if "." in wrong:
            path.write_bytes(b"xyz" * 99)
        with pytest.raises(DataError, match=says):
            Images(path)
    with pytest.raises(OptionError, match="got none"):
        Images()
    whole = places[1].read_bytes()
    images = Images(places[1])
    places[1].write_bytes(whole[:1000])
    with pytest.raises(DataError, match=r"4\.png cannot be read from .*all\.tar"):
        images.open("4.png")


def test_a_square_is_the_middle():
    wide = np.zeros((40, 120, 3), np.uint8)
    wide[:, 40:80] = 255
    assert np.asarray(Square(20)(Image.fromarray(wide)))[:, 2:-2].min() > 250
    assert Square(20)(Image.fromarray(wide.transpose(1, 0, 2).copy())).shape == (20, 20, 3)
    assert repr(Square(20)) == "Square(side=20)"
    with pytest.raises(OptionError, match="side=0"):
        Square(0)


def test_arrays_that_are_no_pictures_are_explained():
    with pytest.raises(DataError, match=r"must be uint8 \(h, w, 3\), but is float64 \(4, 4, 3\)"):
        open_image(np.zeros((4, 4, 3)))
    with pytest.raises(DataError, match="There is no picture nowhere"):
        open_image("nowhere.png")
