"""The best and the worst captions of a test set: graded, sampled by grade, and explained where that fails."""

import pytest
from helpers.models import small_captioner
from PIL import Image

from regard.data.images import ImageReport, Images
from regard.errors import DataError, OptionError
from regard.metrics.captions import GRADES, MIN_CIDER_D, caption_words, cider_d, grade
from regard.systems.caption.gallery import GradedCaption, GradedCaptions, captions_of, grade_captions

COLOURS = ["red", "green", "blue", "yellow", "purple"]


@pytest.fixture
def model():
    return small_captioner()


@pytest.fixture
def album(tmp_path):
    for colour in COLOURS:
        Image.new("RGB", (60, 40), colour).save(tmp_path / f"{colour}.png")
    (tmp_path / "damaged.png").write_bytes(b"nothing")
    lines = [f"{colour}.png\ta {colour} wall <b>&" for colour in [*COLOURS, "damaged", "absent"]]
    (tmp_path / "captions.tsv").write_text("\n".join(lines))
    return tmp_path


def test_grades_fall_with_the_score():
    assert [grade(score) for score in (10.0, *MIN_CIDER_D, 0.099, 0.0)] == [
        GRADES[0],
        *GRADES[:3],
        GRADES[3],
        GRADES[3],
    ]


def test_captions_of_a_few_images_score_as_among_many():
    predictions = [f"a {colour} wall".split() for colour in COLOURS]
    references = [[f"a {colour} wall".split(), f"some {colour} wall here".split()] for colour in COLOURS]
    assert cider_d(predictions[:2], references[:2], references) == pytest.approx(cider_d(predictions, references)[:2])
    assert cider_d(predictions[:1], references[:1]) == [0]


def test_each_grade_shows_what_its_name_promises():
    scores = [3.0, 2.0, 1.5, 0.9, 0.8, 0.7, 0.09, 0.0]
    captions = tuple(GradedCaption(f"{n}", "", ("a",), score) for n, score in enumerate(scores))
    graded = GradedCaptions(captions, ImageReport())
    assert [one.image for one in graded.examples("without errors", 2)] == ["0", "1"]
    assert [one.image for one in graded.examples("with minor errors", 2)] == ["3", "5"]
    assert graded.examples("somewhat related", 2) == []
    assert [one.image for one in graded.examples("unrelated", 1)] == ["7"]
    with pytest.raises(OptionError, match="no grade 'fine'; choose from without errors"):
        graded.select("fine")


def test_every_image_is_captioned_and_graded(model, album):
    images = Images(album)
    found = grade_captions(model, album / "captions.tsv", images, beam=2)
    assert len(found) == 5
    assert list(found.report.bad) == ["damaged.png"]
    assert [one.cider_d for one in found.graded] == sorted((one.cider_d for one in found.graded), reverse=True)
    again = {one.image: model.caption(album / one.image, beam=2).text for one in found.graded}
    assert {one.image: one.text for one in found.graded} == again
    captions = captions_of(model, images, found.graded, beam=2)
    assert [one.text for one in captions] == [one.text for one in found.graded]
    assert all(one.trace.axis("target").text == one.text for one in captions)


def test_few_images_are_graded_among_all(model, album):
    some = grade_captions(model, album / "captions.tsv", Images(album), limit=2)
    every = {one.image: one for one in grade_captions(model, album / "captions.tsv", Images(album)).graded}
    assert [one.image for one in some.graded if one == every[one.image]] == [one.image for one in some.graded]
    assert len(some) == 2
    assert caption_words(some.graded[0].references[0])[-1] == "b"


def test_what_cannot_be_graded_is_explained(model, album):
    (album / "other.tsv").write_text("elsewhere.png\ta wall\n")
    with pytest.raises(DataError, match="has none of the images of"):
        grade_captions(model, album / "other.tsv", Images(album))
    (album / "other.tsv").write_text("damaged.png\ta wall\n")
    with pytest.raises(DataError, match="No image could be captioned: 0 images read, 1 left out"):
        grade_captions(model, album / "other.tsv", Images(album))
    with pytest.raises(OptionError, match="or 0 for all; got -1"):
        grade_captions(model, album / "captions.tsv", Images(album), limit=-1)
