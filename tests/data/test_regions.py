"""Boxes around what phrases name: reading tables and Flickr30k Entities, and how much of a cell a box covers."""

import numpy as np
import pytest
from helpers.command_line import write_lines

from regard.data.regions import Phrase, cover, image_key, read_regions
from regard.errors import DataError

ROWS = [
    "img1\t2\t0\tTwo dogs\t1\t1\t100\t50",
    "img1\t2\t0\tTwo dogs\t101\t1\t200\t50",
    "img1\t2\t12\ta ball\t5\t6\t7\t8",
    "img2\t-1\t-1\ta man\t1\t1\t2\t2",
]
ANNOTATION = """<annotation><size><width>400</width><height>200</height></size>
<object><name>7</name><name>8</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>200</xmax><ymax>200</ymax></bndbox></object>
<object><name>9</name><scene>1</scene></object></annotation>"""


def test_a_table_gives_each_phrase_all_of_its_boxes(tmp_path):
    regions = read_regions(write_lines(tmp_path / "regions.tsv", ROWS))
    assert set(regions) == {"img1"}, "A phrase without a place in a caption is left out."
    dogs, ball = regions["img1"]
    assert (dogs.text, dogs.caption, dogs.start) == ("Two dogs", 2, 0)
    assert dogs.boxes == ((0, 0, 100, 50), (100, 0, 200, 50))
    assert ball.boxes == ((4, 5, 7, 8),)


def test_images_of_a_table_may_have_folders_and_suffixes(tmp_path):
    rows = ["in/i0.png\t0\t0\ta dog\t1\t1\t2\t2", "i0\t0\t0\ta dog\t3\t3\t4\t4", "v1.0_7\t0\t0\ta cat\t1\t1\t2\t2"]
    regions = read_regions(write_lines(tmp_path / "regions.tsv", rows))
    assert {name: [len(one.boxes) for one in found] for name, found in regions.items()} == {"i0": [2], "v1.0_7": [1]}
    assert [image_key(name) for name in ("a/i0.JPG", "i0", "v1.0_7.jpg")] == ["i0", "i0", "v1.0_7"]


def test_the_longer_side_of_a_table_is_chosen(tmp_path):
    table = write_lines(tmp_path / "regions.tsv", ["i0\t0\t0\ta dog\t1\t401\t1000\t800"])
    for side, size in ((1000, (100, 80)), (1000, (2000, 1600)), (0, (1000, 800))):
        ((phrase,),) = read_regions(table, longer_side=side).values()
        assert phrase.fractions(*size) == ((0.0, 0.5, 1.0, 1.0),)
    ((phrase,),) = read_regions(table).values()
    says = (
        r"regions.tsv, image i0: the box of 'a dog' with the corners 1, 401, 1000, 800, taken as pixels of an image "
        r"whose longer side is 500, lies outside of the image, which has 1000 x 800 pixels. Set regions_side \("
    )
    with pytest.raises(DataError, match=says):
        phrase.fractions(1000, 800)
    ((phrase,),) = read_regions(table, longer_side=0).values()
    with pytest.raises(DataError, match="taken as pixels of the image, lies outside of the image, which has 500 x 400"):
        phrase.fractions(500, 400)


def test_a_box_may_exceed_its_image_by_rounding(tmp_path):
    """An image of 500 x 375 pixels that was resized to 61 x 45 seems to be 500 x 369."""
    table = write_lines(tmp_path / "regions.tsv", ["i0\t0\t0\ta dog\t1\t1\t501\t375", "i1\t0\t0\ta cat\t1\t1\t9\t410"])
    inside, outside = (found[0] for found in read_regions(table).values())
    assert inside.fractions(61, 45)[0][3] == pytest.approx(375 / 369, rel=1e-3)
    with pytest.raises(DataError, match=r"image i1: .* lies outside"):
        outside.fractions(61, 45)


def test_boxes_are_fractions_of_the_image_at_any_resolution():
    phrase = Phrase(0, 0, "it", ((0.0, 0.0, 250.0, 125.0),), longer_side=500.0)
    assert phrase.fractions(500, 250) == phrase.fractions(200, 100) == ((0.0, 0.0, 0.5, 0.5),)
    assert phrase.fractions(250, 500) == ((0.0, 0.0, 1.0, 0.25),)


def test_a_phrase_is_found_where_it_begins_or_else_where_it_first_occurs():
    assert Phrase(0, 8, "a dog", ()).end_in("a dog or a dog .") == 5, "nothing begins at 8, so it is the first"
    assert Phrase(0, 9, "a dog", ()).end_in("a dog or a dog .") == 14
    assert Phrase(0, 3, "A Dog", ()).end_in("see a dog") == 9
    assert Phrase(0, 0, "a cat", ()).end_in("a dog") is None


def test_a_phrase_ends_where_it_does_if_lower_case_changes_the_length_of_the_caption():
    caption = "İİİ sees a DOG"
    assert Phrase(0, 0, "a dog", ()).end_in(caption) == len(caption)
    assert Phrase(0, 9, "a dog", ()).end_in(caption) == len(caption)
    assert Phrase(0, 0, "i\u0307i\u0307i\u0307", ()).end_in(caption) == 3


def test_the_files_of_flickr30k_entities_are_read(tmp_path):
    for name in ("Annotations", "Sentences"):
        (tmp_path / name).mkdir()
    (tmp_path / "Annotations" / "1.xml").write_text(ANNOTATION)
    line = "[/EN#7/people A man] sees [/EN#9/scene a park] and [/EN#8/animals/other his dog] ."
    write_lines(tmp_path / "Sentences" / "1.txt", ["Nothing is marked .", line])
    regions = read_regions(tmp_path)
    assert [(one.text, one.caption, one.start) for one in regions["1"]] == [("A man", 1, 0), ("his dog", 1, 22)]
    assert "A man sees a park and his dog ."[22:29] == "his dog"
    assert regions["1"][0].fractions(40, 20) == ((0.0, 0.0, 0.5, 1.0),)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (
            "img\t0\t0\ta man\t1\t1\t2",
            r"line 1 should be image, caption, .* y2, separated by tabs \(it has 7 columns\)",
        ),
        ("img\t0\tx\ta man\t1\t1\t2\t2", "line 1 should be image, caption, .*invalid literal for int.*'x'"),
        ("img\t0\t0\ta man\t9\t1\t2\t2", "line 1 should be .*a box has 0 <= x1 <= x2.*, not 9, 1, 2, 2"),
        ("img\t0\t0\ta man\tnan\t1\t2\t2", "line 1 should be .*a box has"),
        ("img\t-1\t-1\ta man\t1\t1\t2\t2", "no phrase with a box"),
    ],
)
def test_a_bad_row_is_reported_with_its_line(row, says, tmp_path):
    with pytest.raises(DataError, match=says):
        read_regions(write_lines(tmp_path / "regions.tsv", [row]))


@pytest.mark.parametrize(
    ("annotation", "says"),
    [
        ("<annotation>", "not an annotation"),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><annotation/>", "declares a document type"),
        ("<annotation/>", "does not state the size"),
        (None, "not an annotation"),
    ],
)
def test_a_bad_annotation_is_refused(annotation, says, tmp_path):
    for name in ("Annotations", "Sentences"):
        (tmp_path / name).mkdir()
    write_lines(tmp_path / "Sentences" / "1.txt", ["[/EN#7/people A man] ."])
    if annotation is not None:
        (tmp_path / "Annotations" / "1.xml").write_text(annotation)
    with pytest.raises(DataError, match=says):
        read_regions(tmp_path)


def test_a_folder_that_is_not_flickr30k_entities_is_refused(tmp_path):
    with pytest.raises(DataError, match="not Flickr30k Entities"):
        read_regions(tmp_path)


def test_cells_are_covered_by_the_union_of_boxes():
    left, all_of_it = (0.0, 0.0, 0.5, 1.0), (0.0, 0.0, 1.0, 1.0)
    assert cover([left], (2, 2)).tolist() == [1, 0, 1, 0]
    assert cover([left, left], (1, 1)).tolist() == [0.5], "An area that two boxes cover counts once."
    assert cover([all_of_it], (3, 5)).tolist() == [1] * 15
    np.testing.assert_allclose(cover([(0.25, 0.25, 0.75, 0.75)], (2, 2)), 0.25)
    assert cover([], (2, 3)).tolist() == [0] * 6
