"""Labelled images in the published formats and in folders, and what is wrong with a damaged file."""

import gzip

import numpy as np
import pytest
import torch
from helpers.files import idx, tar
from PIL import Image

from regard.data.labelled_images import LabelledImages, read_cifar10, read_class_folders, read_idx, read_mnist
from regard.errors import DataError, OptionError

RANDOM = np.random.default_rng(5)


def write_mnist(folder, count: int = 23) -> np.ndarray:
    images = RANDOM.integers(0, 255, (count, 28, 28), np.uint8)
    for part in ("train", "t10k"):
        labels = (np.arange(count) % 10).astype(np.uint8)
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images)))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(idx(labels))
    return images


def cifar_files(count: int = 4) -> dict[str, bytes]:
    names = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]
    records = {name: RANDOM.integers(0, 256, (count, 3073)).astype(np.uint8) for name in names}
    for rows in records.values():
        rows[:, 0] %= 10
    return {f"{name}.bin": rows.tobytes() for name, rows in records.items()}


def test_mnist_is_read_zipped_or_not(tmp_path):
    images = write_mnist(tmp_path)
    train, test = read_mnist(tmp_path)
    assert torch.equal(train.images[:, 0], torch.from_numpy(images))
    assert train.labels.tolist() == [number % 10 for number in range(23)]
    assert test.classes == tuple("0123456789")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not an IDX file"),
        (b"\0\0\7\1" + bytes(9), "is not an IDX file"),
        (idx(np.zeros((2, 3), np.uint8)), "is not an IDX file of images or labels: it begins with 00 00 08 02"),
        (idx(np.zeros((2, 3, 5), np.uint8))[:-1], "is truncated or too long"),
        (idx(np.zeros((2, 3, 5), np.uint8)) + b"x", "is truncated or too long"),
        (b"\0\0\x08\x03\0\0", "is truncated or too long"),
        (gzip.compress(idx(np.zeros((2, 3, 5), np.uint8)), mtime=0)[:-9], "cannot be read"),
    ],
    ids=["empty", "another type", "two axes", "cut off", "too long", "cut off in its head", "damaged"],
)
def test_broken_idx_files_are_explained(content, message, tmp_path):
    path = tmp_path / ("broken.gz" if content.startswith(b"\x1f\x8b") else "broken")
    path.write_bytes(content)
    with pytest.raises(DataError, match=f"{path.name} {message}"):
        read_idx(path)


def test_cifar_is_read_from_its_binary_files_and_from_their_archive(tmp_path):
    files = cifar_files()
    (tmp_path / "cifar-10-batches-bin").mkdir()
    packed = tmp_path / "packed"
    packed.mkdir()
    for name, content in files.items():
        (tmp_path / "cifar-10-batches-bin" / name).write_bytes(content)
    members = {f"cifar-10-batches-bin/{name}": content for name, content in files.items()}
    (packed / "cifar-10-binary.tar.gz").write_bytes(tar(members, "w:gz"))
    train, test = read_cifar10(tmp_path)
    assert train.images.shape == (20, 3, 32, 32)
    assert len(test) == 4
    assert train.classes[3] == "cat"
    first = np.frombuffer(files["data_batch_1.bin"], np.uint8)
    assert train.labels[0] == first[0]
    assert train.images[0, 1, 2, 3] == first[1 + 1024 + 2 * 32 + 3], "red, green, blue, each row by row"
    again, _ = read_cifar10(packed)
    assert torch.equal(again.images, train.images)
    assert torch.equal(again.labels, train.labels)
    (tmp_path / "cifar-10-batches-bin" / "test_batch.bin").write_bytes(b"abc")
    with pytest.raises(DataError, match=r"batches-bin/test_batch\.bin is not a binary file of CIFAR-10: 3 bytes"):
        read_cifar10(tmp_path)
    (tmp_path / "cifar-10-batches-bin" / "data_batch_3.bin").unlink()
    with pytest.raises(DataError, match=r"There is no file .*data_batch_3\.bin\."):
        read_cifar10(tmp_path)


def test_folders_are_classes(tmp_path):
    for name, colour in (("red", (250, 0, 0)), ("blue", (0, 0, 250))):
        (tmp_path / name / "deep").mkdir(parents=True)
        Image.new("RGB", (9, 6), colour).save(tmp_path / name / "deep" / "a.png")
        Image.new("RGB", (5, 7), colour).save(tmp_path / name / "b.JPG")
        (tmp_path / name / "notes.txt").write_text("not an image")
    images = read_class_folders(tmp_path, size=5)
    assert images.classes == ("blue", "red")
    assert images.images.shape == (4, 3, 5, 5)
    assert images.labels.tolist() == [0, 0, 1, 1]
    assert (images.images[images.labels == 1, 0].float().mean() > 200).all()
    (tmp_path / "red" / "c.png").write_bytes(b"broken")
    with pytest.raises(DataError, match=r"red/c\.png is not an image"):
        read_class_folders(tmp_path, size=5)
    with pytest.raises(DataError, match="holds no images"):
        read_class_folders(tmp_path / "red" / "deep", size=5)


def test_folders_may_be_read_in_grey_with_a_progress_bar(tmp_path, capfd, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    (tmp_path / "images" / "white").mkdir(parents=True)
    (tmp_path / "images" / "nothing").mkdir()
    (tmp_path / "images" / ".hidden").mkdir()
    Image.new("RGBA", (9, 6)).save(tmp_path / "images" / "white" / "a.png")
    images = read_class_folders(tmp_path / "images", size=5, channels=1)
    assert images.images.tolist() == [[[[255] * 5] * 5]]
    assert images.classes == ("nothing", "white")
    out, err = capfd.readouterr()
    assert not out
    assert "1 of 1 images" in err
    read_class_folders(tmp_path / "images", size=5, progress=False)
    assert capfd.readouterr() == ("", "")


def test_missing_files_are_named(tmp_path):
    with pytest.raises(DataError, match=r"lacks train-images-idx3-ubyte\.gz"):
        read_mnist(tmp_path)
    with pytest.raises(DataError, match="does not hold CIFAR-10"):
        read_cifar10(tmp_path)
    with pytest.raises(DataError, match="is not a folder"):
        read_class_folders(tmp_path / "nowhere", size=5)


def random_images(count: int) -> LabelledImages:
    images = torch.from_numpy(RANDOM.integers(0, 255, (count, 1, 3, 5), np.uint8))
    return LabelledImages(images, torch.arange(count) % 7, tuple("abcdefg"))


def test_held_out_images_do_not_depend_on_the_order_and_are_on_one_side_only():
    labelled = random_images(101)
    train, held = labelled.hold_out(17)
    assert (len(train), len(held)) == (84, 17)
    _, again = labelled[torch.randperm(101)].hold_out(17)
    assert {image.numpy().tobytes() for image in held.images} == {image.numpy().tobytes() for image in again.images}
    twice = labelled[torch.cat([torch.arange(101), torch.arange(101)])]
    train, held = twice.hold_out(20)
    assert not {image.numpy().tobytes() for image in train.images} & {image.numpy().tobytes() for image in held.images}
    with pytest.raises(OptionError, match="must be from 0 to 100; got 101"):
        labelled.hold_out(101)
    with pytest.raises(DataError, match="all 7 images are identical"):
        labelled[torch.zeros(7, dtype=torch.long)].hold_out(2)


def test_a_loader_gives_every_image_once_in_another_order_each_epoch():
    labelled = random_images(53)
    batches = labelled.loader(batch_size=10, shuffle=True, seed=3)
    first = [tuple(labels.tolist()) for _, labels in batches]
    assert [len(labels) for labels in sorted(first, key=len)] == [3, 10, 10, 10, 10, 10]
    batches.batch_sampler.set_epoch(1)
    second = [tuple(labels.tolist()) for _, labels in batches]
    assert first != second
    assert sorted(sum(first, ())) == sorted(sum(second, ())) == sorted(labelled.labels.tolist())
    images, labels = next(iter(labelled.loader(batch_size=4, shuffle=False)))
    assert torch.equal(images, labelled.images[:4])
    assert torch.equal(labels, labelled.labels[:4])


def test_labels_beyond_the_classes_or_too_few_are_refused(as_a_user):
    with pytest.raises(DataError, match="3 images and 2 labels"):
        LabelledImages(torch.zeros(3, 1, 2, 2, dtype=torch.uint8), torch.arange(2), ("a", "b"))
    with pytest.raises(DataError, match="Labels must be from 0 to 1, the index of a class; got labels from 0 to 2"):
        LabelledImages(torch.zeros(3, 1, 2, 2, dtype=torch.uint8), torch.arange(3), ("a", "b"))
