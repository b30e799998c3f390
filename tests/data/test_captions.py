"""Captions in every published format, and their splits."""

import gzip
import json

import pytest

from regard.data import text
from regard.data.captions import ImageCaptions, read_captions
from regard.errors import DataError, OptionError

PLAIN = [ImageCaptions("1.jpg", ("A dog runs .", "Two dogs")), ImageCaptions("2.jpg", ('A "cat", asleep',))]
SPLIT = [ImageCaptions(item.image, item.captions, split) for item, split in zip(PLAIN, ("train", "valid"), strict=True)]
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
FORMATS = {
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


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("packed", [False, True])
def test_every_format_is_read_the_same(tmp_path, name, packed):
    content, expected = FORMATS[name]
    path = tmp_path / (f"{name}.gz" if packed else name)
    path.write_bytes(gzip.compress(content.encode()) if packed else content.encode())
    found = read_captions(path)
    assert list(found) == expected
    assert found.left_out == ()


@pytest.mark.parametrize("name", [name for name in FORMATS if not name.endswith(".json")])
def test_blank_lines_are_skipped_and_counted_as_lines(tmp_path, name):
    content, expected = FORMATS[name]
    first, second, *others = content.splitlines()
    (tmp_path / name).write_text("\n".join([first, "", "  ", second, *others, "", "3.jpg", "", ""]))
    found = read_captions(tmp_path / name)
    assert list(found) == expected
    assert [line.split(":")[0] for line in found.left_out] == [f"line {len(others) + 6}"]


def test_a_blank_line_inside_of_a_quoted_caption_is_part_of_it(tmp_path):
    (tmp_path / "a.csv").write_text('image,caption\n1.jpg,"Two\n\ndogs"\n')
    assert read_captions(tmp_path / "a.csv")[0].captions == ("Two dogs",)


@pytest.mark.parametrize("caption", [None, 7, ["A dog"]])
def test_an_annotation_whose_caption_is_no_text_is_left_out(tmp_path, caption):
    content = COCO | {"annotations": [*COCO["annotations"], {"image_id": 9, "caption": caption}]}
    (tmp_path / "captions.json").write_text(json.dumps(content))
    found = read_captions(tmp_path / "captions.json")
    assert list(found) == PLAIN
    assert found.left_out == ("caption 4: 2.jpg without a caption",)


def test_images_of_coco_are_in_the_folder_that_karpathy_names(tmp_path):
    content = {"images": [KARPATHY["images"][0] | {"filepath": "val2014"}]}
    (tmp_path / "dataset_coco.json").write_text(json.dumps(content))
    assert read_captions(tmp_path / "dataset_coco.json")[0].image == "val2014/1.jpg"


def test_a_line_without_a_caption_is_left_out_and_listed(tmp_path):
    # Line 20,000 of the captions of Flickr30k lacks a bar in this way.
    lines = ["image_name| comment_number| comment", *(f"{n}.jpg| 0| A dog" for n in range(150)), "150.jpg| 4   A dog ."]
    (tmp_path / "results.csv").write_text("\n".join(lines) + "\n")
    found = read_captions(tmp_path / "results.csv")
    assert len(found) == 150
    assert found.left_out == ("line 152: 2 columns: '150.jpg| 4   A dog .'",)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "", "it is empty"),
        ("a.txt", "just some words\n", "it starts with 'just some words'"),
        ("a.tsv", "1.jpg\ta\tb\n1.jpg\ta\tb\n", "2 of 2 lines cannot be read, the first: line 1: 3 columns"),
        ("a.tsv", "1.jpg\t \n2.jpg\ta\n3.jpg\t\n", "2 of 3 lines cannot be read, the first: line 1: 1.jpg without"),
        ("a.tsv", "1.jpg\ttrain\t0\ta\n1.jpg\ttest\t1\tb\n", "1.jpg is in the split 'train' and in the split 'test'"),
        ("a.tsv", "1.jpg\tlater\t0\ta\n", "'later' is not the name of a split; known names are train, restval, val"),
        ("a.json", "{", "not a JSON file of captions"),
        ("a.json", '{"images": [{"id": 1}], "annotations": [{"image_id": 2}]}', "KeyError"),
        ("a.json", '{"pictures": []}', "KeyError"),
    ],
)
def test_a_file_without_captions_is_explained(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=message):
        read_captions(tmp_path / name)


def many(tmp_path, count=30):
    (tmp_path / "pairs.tsv").write_text("".join(f"{n}.jpg\ta dog\n{n}.jpg\ta cat\n" for n in range(count)))
    return read_captions(tmp_path / "pairs.tsv")


def test_a_split_by_hash_depends_on_the_names_of_whole_images(tmp_path):
    captions = many(tmp_path)
    divided = captions.split_by_hash(valid=5, test=7)
    parts = {split: {item.image for item in divided.select(split)} for split in ("train", "valid", "test")}
    assert {split: len(part) for split, part in parts.items()} == {"train": 18, "valid": 5, "test": 7}
    assert set().union(*parts.values()) == {item.image for item in captions}
    turned = type(captions)(captions.images[::-1]).split_by_hash(valid=5, test=7)
    assert {item.image for item in turned.select("test")} == parts["test"], "the order of the file does not matter"
    assert {item.image for item in captions.split_by_hash(valid=5, test=7, seed=1).select("test")} != parts["test"]
    with pytest.raises(OptionError, match="30 images are too few for 20 to validate with, 10 to test with"):
        captions.split_by_hash(valid=20, test=10)
    with pytest.raises(OptionError, match="no split 'dev'; choose from train, valid, test"):
        divided.select("dev")


def test_splits_are_read_from_lists_of_names(tmp_path):
    captions = many(tmp_path)
    for split, names in (("train", "0.jpg\n1.jpg\n\n"), ("dev", "2.jpg\n"), ("twice", "0.jpg\n"), ("other", "x.jpg\n")):
        (tmp_path / split).write_text(names)
    listed = captions.split_by_lists({"train": tmp_path / "train", "dev": tmp_path / "dev"})
    assert [item.image for item in listed.select("train")] == ["0.jpg", "1.jpg"]
    assert [item.image for item in listed.select("valid")] == ["2.jpg"]
    assert sum(not item.split for item in listed) == 27
    with pytest.raises(DataError, match=r"0\.jpg is in the list for train and in the list for test"):
        captions.split_by_lists({"train": tmp_path / "train", "test": tmp_path / "twice"})
    with pytest.raises(
        DataError,
        match=r"None of the 30 images is in a list: the first image is '0.jpg', the first name in the lists is 'x.jpg'",
    ):
        captions.split_by_lists({"train": tmp_path / "other"})


def test_an_overlong_field_of_a_table_is_explained(tmp_path):
    (tmp_path / "a.csv").write_text('image,caption\n1.jpg,a dog\n2.jpg,"' + "x" * 200_000 + '"\n')
    with pytest.raises(DataError, match=r"a\.csv: line 3 is not a line of a table: field larger than field limit"):
        read_captions(tmp_path / "a.csv")


def test_json_that_expands_to_more_than_is_allowed_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "MAX_FILE_BYTES", 10_000)
    (tmp_path / "captions.json.gz").write_bytes(gzip.compress(b" " * 10_001))
    with pytest.raises(DataError, match=r"captions\.json\.gz has more than 10,000 bytes when decompressed"):
        read_captions(tmp_path / "captions.json.gz")


def test_deeply_nested_json_is_refused(tmp_path):
    (tmp_path / "a.json").write_text("[" * 200_000)
    with pytest.raises(DataError, match="not a JSON file of captions"):
        read_captions(tmp_path / "a.json")
