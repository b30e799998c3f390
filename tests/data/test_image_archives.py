"""Images in folders, tar and zip archives: found by name, and damage to an archive is explained."""

import pickle
import tarfile
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from helpers.files import saved
from PIL import Image

from regard.data.images import ImageReport, Images, list_images
from regard.errors import DataError, OptionError


@pytest.fixture
def places(tmp_path):
    """The same images in a folder, a tar and two kinds of zip."""
    folder = tmp_path / "folder"
    (folder / "sub").mkdir(parents=True)
    files = {f"sub/{n}.png": saved(Image.new("RGB", (8, 8), (n, 0, 0))) for n in range(5)}
    files["sub/bad.jpg"] = saved(Image.effect_noise((64, 64), 50), "JPEG")[:1200]
    files["notes.txt"] = b"not an image"
    for name, content in files.items():
        (folder / name).write_bytes(content)
    with tarfile.open(tmp_path / "all.tar", "w") as tar:
        tar.add(folder, ".")
    for name, how in (("stored.zip", zipfile.ZIP_STORED), ("deflated.ZIP", zipfile.ZIP_DEFLATED)):
        with zipfile.ZipFile(tmp_path / name, "w", how) as archive:
            archive.writestr("__MACOSX/sub/0.png", b"not an image")
            for file, content in files.items():
                archive.writestr(file, content)
    return [folder, tmp_path / "all.tar", tmp_path / "stored.zip", tmp_path / "deflated.ZIP"]


@pytest.mark.parametrize("which", range(4))
def test_folders_and_archives_hold_the_same_images(places, which):
    images = pickle.loads(pickle.dumps(Images(places[which])))  # noqa: S301
    assert len(images) == 6
    for name in ("3", "3.png", "sub/3.png"):
        assert name in images
    assert np.asarray(images.open("3"))[0, 0].tolist() == [3, 0, 0]
    report = ImageReport()
    good = [name for name, _ in images.stream(["0", "bad", "1.png", "nowhere.jpg"], report)]
    assert good == ["0", "1.png"]
    assert list(report.bad) == ["bad", "nowhere.jpg"]
    assert str(report).startswith("2 images read, 2 left out: bad cannot be decoded")
    assert "There is no image nowhere.jpg in" in str(report)


def test_an_ambiguous_name_is_refused(places, tmp_path):
    (places[0] / "3.png").write_bytes(saved(Image.new("RGB", (8, 8), (99, 0, 0))))
    images = Images(places[0])
    assert np.asarray(images.open("3.png"))[0, 0, 0] == 99, "the whole path is meant"
    assert np.asarray(images.open("sub/3.png"))[0, 0, 0] == 3
    with pytest.raises(DataError, match="3 is ambiguous: it matches 2 images"):
        images.open("3")
    with pytest.raises(DataError, match="ambiguous: it matches 2"):
        Images(places[1], places[2]).open("0.png")


def test_locations_that_cannot_hold_images_are_explained(tmp_path, places):
    reasons = {"nowhere": "There is no folder or archive", "x.tar.gz": "unpack it", "x.zip": "as an archive"}
    for wrong, message in reasons.items():
        path = tmp_path / wrong
        if "." in wrong:
            path.write_bytes(b"xyz" * 99)
        with pytest.raises(DataError, match=message):
            Images(path)
    with pytest.raises(OptionError, match="got none"):
        Images()
    whole = places[1].read_bytes()
    images = Images(places[1])
    places[1].write_bytes(whole[:1000])
    with pytest.raises(DataError, match=r"4\.png cannot be read from .*all\.tar"):
        images.open("4.png")


def test_hidden_files_are_left_out(tmp_path):
    for name in ("a.png", "._a.png", ".thumbnails/b.png"):
        (tmp_path / "folder" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "folder" / name).write_bytes(b"")
    with tarfile.open(tmp_path / "all.tar", "w") as tar:
        tar.add(tmp_path / "folder", ".")
    for place in ("folder", "all.tar"):
        assert [member.name for member in list_images(tmp_path / place)] == ["a.png"]


def test_a_zip_does_not_expand_to_more_than_it_states_or_than_is_allowed(tmp_path, monkeypatch):
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.png", bytes(10**6))
    (member,) = list_images(path)
    assert member.read() == bytes(10**6)
    with pytest.raises(
        DataError, match=r"a\.png cannot be read from .*bomb\.zip/a\.png: it does not expand to the 10 bytes"
    ):
        replace(member, inflated=10).read()
    monkeypatch.setattr("regard.data.images.MAX_BYTES", 10**5)
    with pytest.raises(DataError, match="it expands to 1,000,000 bytes, and at most 100,000 are allowed"):
        member.read()


def test_only_images_need_a_supported_compression(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("notes.txt", "x")
    assert list(list_images(tmp_path / "a.zip")) == []
    with zipfile.ZipFile(tmp_path / "a.zip", "a", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("a.png", "x")
    with pytest.raises(DataError, match=r"a\.zip/a\.png is encrypted or uses an unsupported compression"):
        list(list_images(tmp_path / "a.zip"))
