"""Captions in every published form, and their splits."""

import gzip
import json

import pytest

from regard.data.captions import Captioned, read_captions
from regard.errors import DataError, OptionError

PLAIN = [Captioned("1.jpg", ("A dog runs .", "Two dogs")), Captioned("2.jpg", ('A "cat", asleep',))]
SPLIT = [Captioned(one.image, one.captions, split) for one, split in zip(PLAIN, ("train", "valid"), strict=True)]
COCO = {
    "images": [{"id": 7, "file_name": "1.jpg"}, {"id": 9, "file_name": "2.jpg"}],
    "annotations": [
        {"image_id": 7, "caption": "A dog runs ."},
        {"image_id": 9, "caption": 'A "cat", asleep '},
        {"image_id": 7, "caption": "Two\ndogs"},
    ],
}
KARPATHY = {
    "images": [
        {"filename": "1.jpg", "split": "restval", "sentences": [{"raw": "A dog runs ."}, {"raw": "Two dogs"}]},
        {"filename": "2.jpg", "split": "val", "sentences": [{"raw": 'A "cat", asleep'}]},
    ],
    "dataset": "flickr8k",
}
FORMS = {
    "Flickr8k.token.txt": ('1.jpg#0\tA dog runs .\n1.jpg#1\tTwo dogs\n2.jpg#0\tA "cat", asleep\n', PLAIN),
    "captions.json": (json.dumps(COCO), PLAIN),
    "dataset_flickr8k.json": (json.dumps(KARPATHY), SPLIT),
    "captions.txt": ('image,caption\n1.jpg,A dog runs .\n1.jpg,Two dogs\n2.jpg,"A ""cat"", asleep"\n', PLAIN),
    "results.csv": (
        'image_name| comment_number| comment\n1.jpg| 0| A dog runs .\n1.jpg| 1| Two dogs\n2.jpg| 0| A "cat", asleep\n',
        PLAIN,
    ),
    "split.csv": (
        'caption;split;filename\nA dog runs .;train;1.jpg\nTwo dogs;train;1.jpg\n"A ""cat"", asleep";val;2.jpg\n',
        SPLIT,
    ),
    "pairs.tsv": ('1.jpg\tA dog runs .\n1.jpg\tTwo dogs\n2.jpg\tA "cat", asleep\n', PLAIN),
    "four.tsv": ('1.jpg\ttrain\t0\tA dog runs .\n1.jpg\ttrain\t1\tTwo dogs\n2.jpg\tdev\t0\tA "cat", asleep\n', SPLIT),
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("packed", [False, True])
def test_every_form_is_read_the_same(tmp_path, name, packed):
    text, wanted = FORMS[name]
    path = tmp_path / (f"{name}.gz" if packed else name)
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    found = read_captions(path)
    assert list(found) == wanted
    assert found.left_out == ()


def test_pictures_of_coco_lie_in_the_folder_that_karpathy_names(tmp_path):
    content = {"images": [KARPATHY["images"][0] | {"filepath": "val2014"}]}
    (tmp_path / "dataset_coco.json").write_text(json.dumps(content))
    assert read_captions(tmp_path / "dataset_coco.json")[0].image == "val2014/1.jpg"


def test_a_line_without_a_caption_is_left_out_and_told(tmp_path):
    # As line 20,000 of the captions of Flickr30k, which lacks a bar.
    lines = ["image_name| comment_number| comment", *(f"{n}.jpg| 0| A dog" for n in range(150)), "150.jpg| 4   A dog ."]
    (tmp_path / "results.csv").write_text("\n".join(lines) + "\n")
    found = read_captions(tmp_path / "results.csv")
    assert len(found) == 150
    assert found.left_out == ("line 152: 2 column(s): '150.jpg| 4   A dog .'",)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.txt", "", "it is empty"),
        ("a.txt", "just some words\n", "it starts with 'just some words'"),
        ("a.tsv", "1.jpg\ta\tb\n1.jpg\ta\tb\n", r"2 of 2 lines cannot be read, the first: line 1: 3 column\(s\)"),
        ("a.tsv", "1.jpg\t \n2.jpg\ta\n3.jpg\t\n", "2 of 3 lines cannot be read, the first: line 1: 1.jpg without"),
        ("a.tsv", "1.jpg\ttrain\t0\ta\n1.jpg\ttest\t1\tb\n", "1.jpg is in the split 'train' and in 'test'"),
        ("a.tsv", "1.jpg\tlater\t0\ta\n", "'later' is no split; known are train, restval, val"),
        ("a.json", "{", "no JSON of captions"),
        ("a.json", '{"images": [{"id": 1}], "annotations": [{"image_id": 2}]}', "KeyError"),
        ("a.json", '{"pictures": []}', "KeyError"),
    ],
)
def test_what_holds_no_captions_is_explained(tmp_path, name, text, says):
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=says):
        read_captions(tmp_path / name)


def many(tmp_path, count=30):
    (tmp_path / "pairs.tsv").write_text("".join(f"{n}.jpg\ta dog\n{n}.jpg\ta cat\n" for n in range(count)))
    return read_captions(tmp_path / "pairs.tsv")


def test_a_division_takes_whole_pictures_by_their_names(tmp_path):
    captions = many(tmp_path)
    divided = captions.divided(valid=5, test=7)
    parts = {split: {one.image for one in divided.of(split)} for split in ("train", "valid", "test")}
    assert {split: len(part) for split, part in parts.items()} == {"train": 18, "valid": 5, "test": 7}
    assert set().union(*parts.values()) == {one.image for one in captions}
    turned = type(captions)(captions.pictures[::-1]).divided(valid=5, test=7)
    assert {one.image for one in turned.of("test")} == parts["test"], "the order of the file does not matter"
    assert {one.image for one in captions.divided(valid=5, test=7, seed=1).of("test")} != parts["test"]
    with pytest.raises(OptionError, match="30 pictures cannot give 20 for validation, 10 for testing"):
        captions.divided(valid=20, test=10)
    with pytest.raises(OptionError, match="no split 'dev'; choose from train, valid, test"):
        divided.of("dev")


def test_lists_of_names_make_the_splits(tmp_path):
    captions = many(tmp_path)
    for split, names in (("train", "0.jpg\n1.jpg\n\n"), ("dev", "2.jpg\n"), ("twice", "0.jpg\n"), ("other", "x.jpg\n")):
        (tmp_path / split).write_text(names)
    listed = captions.listed({"train": tmp_path / "train", "dev": tmp_path / "dev"})
    assert [one.image for one in listed.of("train")] == ["0.jpg", "1.jpg"]
    assert [one.image for one in listed.of("valid")] == ["2.jpg"]
    assert sum(not one.split for one in listed) == 27
    with pytest.raises(DataError, match=r"0\.jpg is in the list of train and in that of test"):
        captions.listed({"train": tmp_path / "train", "test": tmp_path / "twice"})
    with pytest.raises(DataError, match=r"None of the 30 pictures is in a list: they are called '0.jpg'"):
        captions.listed({"train": tmp_path / "other"})
