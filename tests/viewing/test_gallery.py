"""A page of the best and worst captions: graded as told, complete, and safe from what captions hold."""

import re

import pytest
from PIL import Image

from regard.data.images import ImageReport, Images
from regard.data.tokenizer import Tokenizer
from regard.errors import DataError, OptionError
from regard.metrics.captions import caption_words, cider_d
from regard.metrics.grades import GRADES, MIN_CIDER_D, grade
from regard.systems.caption_gallery import CaptionGallery, Graded, caption_gallery
from regard.systems.captioner import Captioner, CaptionerConfig
from regard.viewing.gallery import save_gallery

COLOURS = ["red", "green", "blue", "yellow", "purple"]


@pytest.fixture
def model():
    tokenizer = Tokenizer.train([f"a {colour} wall" for colour in COLOURS], kind="word", minimum_count=1)
    return Captioner(CaptionerConfig(filters=(4, 5, 7), embedding=6, hidden=11, match=5), tokenizer).eval()


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


def test_captions_of_a_few_pictures_score_as_among_many():
    said = [f"a {colour} wall".split() for colour in COLOURS]
    references = [[f"a {colour} wall".split(), f"some {colour} wall here".split()] for colour in COLOURS]
    assert cider_d(said[:2], references[:2], references) == pytest.approx(cider_d(said, references)[:2])
    assert cider_d(said[:1], references[:1]) == [0]


def test_each_grade_shows_what_its_name_promises():
    scores = [3.0, 2.0, 1.5, 0.9, 0.8, 0.7, 0.09, 0.0]
    graded = tuple(Graded(f"{n}", "", ("a",), score) for n, score in enumerate(scores))
    gallery = CaptionGallery(graded, ImageReport())
    assert [one.image for one in gallery.some("without errors", 2)] == ["0", "1"]
    assert [one.image for one in gallery.some("with minor errors", 2)] == ["3", "5"]
    assert gallery.some("somewhat related", 2) == []
    assert [one.image for one in gallery.some("unrelated", 1)] == ["7"]
    with pytest.raises(OptionError, match="no grade 'fine'; choose from without errors"):
        gallery.of("fine")


def test_a_page_shows_pictures_captions_and_what_people_wrote(model, album):
    images = Images(album)
    gallery = caption_gallery(model, album / "captions.tsv", images, beam=2)
    assert len(gallery) == 5
    assert list(gallery.report.bad) == ["damaged.png"]
    assert [one.cider_d for one in gallery.graded] == sorted((one.cider_d for one in gallery.graded), reverse=True)
    again = {one.image: model.caption(album / one.image, beam=2)[0].text for one in gallery.graded}
    assert {one.image: one.text for one in gallery.graded} == again
    page = save_gallery(gallery, model, images, album / "page", beam=2, title="walls & more").read_text()
    named = re.findall(r'src="([^"]+)"', page)
    assert len([name for name in named if name.endswith(".jpg")]) == 5
    assert all((album / "page" / name).is_file() for name in named)
    assert "a red wall &lt;b&gt;&amp;" in page
    assert "walls &amp; more" in page
    assert "given by no person" in page
    assert "<b>" not in page


def test_few_pictures_are_graded_among_all(model, album):
    some = caption_gallery(model, album / "captions.tsv", Images(album), limit=2)
    every = {one.image: one for one in caption_gallery(model, album / "captions.tsv", Images(album)).graded}
    assert [one.image for one in some.graded if one == every[one.image]] == [one.image for one in some.graded]
    assert len(some) == 2
    assert caption_words(some.graded[0].references[0])[-1] == "b"


def test_what_cannot_be_shown_is_explained(model, album):
    (album / "other.tsv").write_text("elsewhere.png\ta wall\n")
    with pytest.raises(DataError, match="has none of the pictures of"):
        caption_gallery(model, album / "other.tsv", Images(album))
    (album / "other.tsv").write_text("damaged.png\ta wall\n")
    with pytest.raises(DataError, match="No picture could be captioned: 0 images read, 1 left out"):
        caption_gallery(model, album / "other.tsv", Images(album))
    with pytest.raises(OptionError, match="limit=-1"):
        caption_gallery(model, album / "captions.tsv", Images(album), limit=-1)
    with pytest.raises(OptionError, match="each=0"):
        save_gallery(CaptionGallery((), ImageReport()), model, Images(album), album / "page", each=0)
