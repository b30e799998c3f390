"""Captioners are scored on files and on the world scenes, where it is known what each word should look at."""

import json

import pytest
import torch
from helpers.command_line import write_lines
from helpers.models import small_captioner
from PIL import Image

import regard
from regard.data.captions import read_captions
from regard.data.images import Images
from regard.errors import DataError, OptionError
from regard.search.options import Search
from regard.systems.caption.data import forced_maps, to_score
from regard.systems.caption.evaluation import decode

COLOURS = ["red", "green", "blue"]


@pytest.fixture
def album(tmp_path):
    """Images with two captions each; the first is of the test split, the others of the training split."""
    (tmp_path / "images").mkdir()
    for colour in COLOURS:
        Image.new("RGB", (60, 40), colour).save(tmp_path / "images" / f"{colour}.png")
    write_lines(tmp_path / "captions.tsv", [f"{c}.png\t{text} {c} wall" for c in COLOURS for text in ("a", "the")])
    return {"captions": str(tmp_path / "captions.tsv"), "images": str(tmp_path / "images")}


def test_a_captioner_is_scored_on_scenes():
    report = regard.evaluate(small_captioner(align="hard"), world="scenes", count=7, beam=1, meteor=False)
    assert report.title == "7 images, beam 1"
    assert len(report.outputs) == 7
    assert 0 <= report["pointing"] <= 100
    assert {"BLEU-1", "BLEU-4", "ROUGE-L", "CIDEr-D", "exact match", "map variation", "chance"} <= set(report.scores)
    assert "METEOR" not in report.scores
    without = regard.evaluate(
        small_captioner(architecture="show_and_tell"), world="scenes", count=3, beam=1, meteor=False
    )
    assert not {"pointing", "correctness", "map variation", "entropy"} & set(without.scores)


def test_the_shipped_model_describes_scenes_and_looks_at_them():
    report = regard.evaluate("scenes", world="scenes", count=40, beam=1, meteor=False)
    assert report["exact match"] > 85
    shuffled = float(report.scores["pointing"].note.split(";")[1].split()[0])
    assert report["pointing"] > 90 > 70 > shuffled
    assert report.model == "scenes"


def test_a_captioner_is_scored_on_files(album):
    model = small_captioner()
    report = regard.evaluate(model, **album, beam=2)
    assert report.title == "3 images, beam 2"
    assert report.outputs[0]["references"] == ["a red wall", "the red wall"]
    captions = [one.text for one in model.caption([f"{album['images']}/{c}.png" for c in COLOURS], beam=2)]
    assert [output["text"] for output in report.outputs] == captions
    json.dumps(report.to_dict())


def test_the_attention_of_phrases_is_scored_against_boxes(album, tmp_path):
    model = small_captioner()
    # All of the image, which is 60 x 40 pixels and so 500 x 333 in the table.
    rows = [f"{colour}\t1\t4\t{colour} wall\t1\t1\t500\t334" for colour in COLOURS]
    regions = write_lines(tmp_path / "regions.tsv", rows)
    report = regard.evaluate(model, **album, regions=str(regions), beam=1, meteor=False)
    assert report["pointing"] == report["mass"] == pytest.approx(100)
    assert report["phrases"] == 3
    # The left half: what the last word of "the red wall" attends to there.
    halves = write_lines(tmp_path / "halves.tsv", [row.replace("500", "250") for row in rows])
    report = regard.evaluate(model, **album, regions=str(halves), beam=1, meteor=False)
    pixels = model.prepare([Image.open(f"{album['images']}/{colour}.png") for colour in COLOURS])
    maps = [table[2].reshape(8, 8) for table in forced_maps(model, pixels, [f"the {c} wall" for c in COLOURS])]
    assert report["mass"] == pytest.approx(100 * sum(table[:, :4].sum() for table in maps) / 3, abs=1e-4)
    assert report["pointing"] == pytest.approx(100 * sum(table.argmax() % 8 < 4 for table in maps) / 3)
    assert "always the middle 50.0" in report.scores["pointing"].note


def test_boxes_in_pixels_of_the_images_are_scored_with_side_0(album, tmp_path):
    rows = [f"{colour}.png\t1\t4\t{colour} wall\t1\t1\t60\t40" for colour in COLOURS]
    options = album | {"regions": str(write_lines(tmp_path / "regions.tsv", rows)), "beam": 1, "meteor": False}
    report = regard.evaluate(small_captioner(), **options, regions_side=0)
    assert report["mass"] == pytest.approx(100)
    assert regard.evaluate(small_captioner(), **options)["mass"] < 50, "By default the longer side has 500 pixels."
    with pytest.raises(DataError, match=r"regions.tsv, image red: .* whose longer side is 30, lies outside"):
        regard.evaluate(small_captioner(), **options, regions_side=30)


def test_a_model_that_sees_the_centre_has_the_boxes_of_the_centre():
    config = small_captioner(resize="center_crop").config
    assert config.seen([(0.25, 0.0, 0.75, 1.0)], (80, 40)) == [(0.0, 0.0, 1.0, 1.0)]
    assert config.seen([(0.0, 0.25, 1.0, 0.5)], (40, 80)) == [(0.0, 0.0, 1.0, 0.5)]
    assert small_captioner().config.seen([(0.25, 0.0, 0.75, 1.0)], (80, 40)) == [(0.25, 0.0, 0.75, 1.0)]


def test_regions_of_other_images_are_refused(album, tmp_path):
    regions = write_lines(tmp_path / "regions.tsv", ["other\t0\t0\ta wall\t1\t1\t2\t2"])
    with pytest.raises(DataError, match="None of the images has a box"):
        regard.evaluate(small_captioner(), **album, regions=str(regions), beam=1, meteor=False)


def test_the_images_of_the_split_are_scored(tmp_path, album):
    images = [
        {"filename": f"{c}.png", "split": split, "sentences": [{"raw": f"a {c} wall"}]}
        for c, split in zip(COLOURS, ("train", "val", "test"), strict=True)
    ]
    (tmp_path / "karpathy.json").write_text(json.dumps({"images": images}))
    captions, folder = read_captions(tmp_path / "karpathy.json"), Images(album["images"])
    assert [one.image for one in to_score(captions, folder)] == ["blue.png"]
    assert [one.image for one in to_score(captions, folder, split="valid")] == ["green.png"]
    assert to_score(captions, folder, split="other") == []


def test_forced_maps_are_those_of_the_given_words():
    model, pixels = small_captioner(), torch.randint(0, 255, (2, 3, 64, 64), dtype=torch.uint8)
    captions, maps, _ = decode(model, [pixels], Search(beam=1, max_length=5))
    forced = list(forced_maps(model, pixels, captions))
    for one, other in zip(maps, forced, strict=True):
        assert one == pytest.approx(other, abs=1e-5)
    with pytest.raises(OptionError, match="no attention to look at"):
        list(forced_maps(small_captioner(architecture="show_and_tell"), pixels, captions))


def test_what_cannot_be_scored_is_explained(album, tmp_path):
    model = small_captioner()
    other = write_lines(tmp_path / "other.tsv", ["elsewhere.png\ta wall"])
    with pytest.raises(DataError, match="has no images of"):
        regard.evaluate(model, captions=other, images=album["images"])
    for options, says in (
        ({}, "captions and images, or the world scenes"),
        ({"captions": other}, "give both"),
        (album | {"world": "scenes"}, "or the world scenes"),
        ({"world": "sceens"}, "Did you mean 'scenes'"),
    ):
        with pytest.raises(OptionError, match=says):
            regard.evaluate(model, **options)
    with pytest.raises(OptionError, match=r"eval\(\)"):
        regard.evaluate(model.train(), world="scenes", count=1)
