"""Sets of pictures in the formats in which they are published, and in folders; and what is wrong with a file."""

import gzip
import io
import struct
import tarfile

import numpy as np
import pytest
import torch
from PIL import Image

from regard.data.labelled_images import LabelledImages, loader, read_cifar10, read_class_folders, read_idx, read_mnist
from regard.errors import DataError, OptionError

RANDOM = np.random.default_rng(5)


def idx(array: np.ndarray, code: int = 8) -> bytes:
    return bytes([0, 0, code, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


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


def test_idx_holds_numbers_of_other_kinds(tmp_path):
    array = RANDOM.normal(size=(3, 5)).astype(">f4")
    (tmp_path / "a").write_bytes(idx(array, 13))
    assert np.array_equal(read_idx(tmp_path / "a"), array)
    assert read_idx(tmp_path / "a").dtype == np.float32


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is not an IDX file"),
        (b"\0\0\7\1" + bytes(9), "is not an IDX file"),
        (idx(np.zeros((2, 3), np.uint8))[:-1], "is cut off or too long"),
        (idx(np.zeros((2, 3), np.uint8)) + b"x", "is cut off or too long"),
        (b"\0\0\x08\x03\0\0", "is cut off or too long"),
        (gzip.compress(idx(np.zeros((2, 3), np.uint8)), mtime=0)[:-9], "is damaged"),
    ],
    ids=["empty", "another type", "cut off", "too long", "cut off in its head", "damaged"],
)
def test_broken_idx_files_are_explained(content, says, tmp_path):
    (tmp_path / "broken").write_bytes(content)
    with pytest.raises(DataError, match=f"broken {says}"):
        read_idx(tmp_path / "broken")


def test_cifar_is_read_from_its_binary_files_and_from_their_archive(tmp_path):
    files = cifar_files()
    (tmp_path / "cifar-10-batches-bin").mkdir()
    packed = tmp_path / "packed"
    packed.mkdir()
    with tarfile.open(packed / "cifar-10-binary.tar.gz", "w:gz") as archive:
        for name, content in files.items():
            (tmp_path / "cifar-10-batches-bin" / name).write_bytes(content)
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
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
    with pytest.raises(DataError, match=r"data_batch_3\.bin cannot be read: No such file"):
        read_cifar10(tmp_path)


def test_mosaics_are_cut_into_tiles(tmp_path):
    tiles = np.repeat(np.arange(6, dtype=np.uint8) * 40, 32 * 32 * 3).reshape(2, 3, 32, 32, 3)
    mosaic = Image.fromarray(tiles.transpose(0, 2, 1, 3, 4).reshape(64, 96, 3))
    for name in ("data_batch_1", "data_batch_2", "test_batch"):
        mosaic.save(tmp_path / f"{name}.jpg", quality=95)
    np.save(tmp_path / "train_labels.npy", np.arange(12, dtype=np.uint8) % 10)
    np.save(tmp_path / "test_labels.npy", np.arange(6, dtype=np.uint8))
    train, test = read_cifar10(tmp_path)
    assert train.images.shape == (12, 3, 32, 32)
    assert [round(float(image.float().mean()) / 40) for image in test.images] == [0, 1, 2, 3, 4, 5]
    (tmp_path / "test_labels.npy").write_bytes(b"no numbers")
    with pytest.raises(DataError, match=r"test_labels\.npy is not a file of numbers"):
        read_cifar10(tmp_path)
    Image.new("RGB", (64, 40)).save(tmp_path / "test_batch.jpg")
    with pytest.raises(DataError, match="64 x 40 pixels, which are no tiles of 32 x 32"):
        read_cifar10(tmp_path)
    (tmp_path / "train_labels.npy").unlink()
    with pytest.raises(DataError, match=r"train_labels\.npy is not a file of numbers: .*No such file"):
        read_cifar10(tmp_path)
    for file in tmp_path.glob("data_batch_*.jpg"):
        file.unlink()
    with pytest.raises(DataError, match=r"holds no data_batch_\*\.jpg"):
        read_cifar10(tmp_path)


def test_folders_are_classes(tmp_path):
    for name, colour in (("red", (250, 0, 0)), ("blue", (0, 0, 250))):
        (tmp_path / name / "deep").mkdir(parents=True)
        Image.new("RGB", (9, 6), colour).save(tmp_path / name / "deep" / "a.png")
        Image.new("RGB", (5, 7), colour).save(tmp_path / name / "b.JPG")
        (tmp_path / name / "notes.txt").write_text("not a picture")
    pictures = read_class_folders(tmp_path, size=5)
    assert pictures.classes == ("blue", "red")
    assert pictures.images.shape == (4, 3, 5, 5)
    assert pictures.labels.tolist() == [0, 0, 1, 1]
    assert (pictures.images[pictures.labels == 1, 0].float().mean() > 200).all()
    (tmp_path / "red" / "c.png").write_bytes(b"broken")
    with pytest.raises(DataError, match=r"red/c\.png is no picture"):
        read_class_folders(tmp_path, size=5)
    with pytest.raises(DataError, match="holds no pictures"):
        read_class_folders(tmp_path / "red" / "deep", size=5)


def test_folders_may_be_read_in_grey_and_show_how_far_they_are(tmp_path, capfd):
    (tmp_path / "pictures" / "white").mkdir(parents=True)
    (tmp_path / "pictures" / "nothing").mkdir()
    (tmp_path / "pictures" / ".hidden").mkdir()
    Image.new("RGBA", (9, 6)).save(tmp_path / "pictures" / "white" / "a.png")
    pictures = read_class_folders(tmp_path / "pictures", size=5, channels=1)
    assert pictures.images.tolist() == [[[[255] * 5] * 5]]
    assert pictures.classes == ("nothing", "white")
    out, err = capfd.readouterr()
    assert not out
    assert "1 of 1 pictures" in err
    read_class_folders(tmp_path / "pictures", size=5, progress=False)
    assert capfd.readouterr() == ("", "")


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(DataError, match=r"lacks train-images-idx3-ubyte\.gz"):
        read_mnist(tmp_path)
    with pytest.raises(DataError, match="holds no CIFAR-10"):
        read_cifar10(tmp_path)
    with pytest.raises(DataError, match="is not a folder"):
        read_class_folders(tmp_path / "nowhere", size=5)


def pictures(count: int) -> LabelledImages:
    images = torch.from_numpy(RANDOM.integers(0, 255, (count, 1, 3, 5), np.uint8))
    return LabelledImages(images, torch.arange(count) % 7, tuple("abcdefg"))


def test_what_is_held_out_does_not_change_with_the_order_and_is_on_one_side_only():
    some = pictures(101)
    train, held = some.held_out(17)
    assert (len(train), len(held)) == (84, 17)
    _, again = some[torch.randperm(101)].held_out(17)
    assert {image.numpy().tobytes() for image in held.images} == {image.numpy().tobytes() for image in again.images}
    twice = some[torch.cat([torch.arange(101), torch.arange(101)])]
    train, held = twice.held_out(20)
    assert not {image.numpy().tobytes() for image in train.images} & {image.numpy().tobytes() for image in held.images}
    with pytest.raises(OptionError, match="but not 101"):
        some.held_out(101)
    with pytest.raises(DataError, match="the 7 pictures are the same"):
        some[torch.zeros(7, dtype=torch.long)].held_out(2)


def test_a_loader_gives_every_picture_once_in_an_order_of_each_epoch():
    some = pictures(53)
    batches = loader(some, batch=10, shuffle=True, seed=3)
    first = [tuple(labels.tolist()) for _, labels in batches]
    assert [len(labels) for labels in sorted(first, key=len)] == [3, 10, 10, 10, 10, 10]
    batches.batch_sampler.set_epoch(1)
    second = [tuple(labels.tolist()) for _, labels in batches]
    assert first != second
    assert sorted(sum(first, ())) == sorted(sum(second, ())) == sorted(some.labels.tolist())
    images, labels = next(iter(loader(some, batch=4, shuffle=False)))
    assert torch.equal(images, some.images[:4])
    assert torch.equal(labels, some.labels[:4])


def test_labels_beyond_the_classes_or_too_few_are_refused(as_a_user):
    with pytest.raises(DataError, match="3 pictures and 2 labels"):
        LabelledImages(torch.zeros(3, 1, 2, 2, dtype=torch.uint8), torch.arange(2), ("a", "b"))
    with pytest.raises(DataError, match="Labels are from 0 to 1; got one of 2"):
        LabelledImages(torch.zeros(3, 1, 2, 2, dtype=torch.uint8), torch.arange(3), ("a", "b"))
