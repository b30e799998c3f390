"""Glimpse models are scored beside random and central glimpses."""

import json

import pytest
import torch

import regard
from regard.errors import DataError, OptionError
from regard.systems.glimpse.config import GlimpsesConfig
from regard.systems.glimpse.evaluation import measure, on_box
from regard.systems.glimpse.model import Glimpser
from regard.worlds.digits import DIGITS, DigitWorld, font_glyphs


def small(labels=DIGITS, **config) -> Glimpser:
    torch.manual_seed(5)
    fields = {"image_size": 40, "glimpse_size": 8, "num_scales": 2, "num_glimpses": 3, "hidden": 12, **config}
    return Glimpser(GlimpsesConfig(**fields), labels).eval()


def test_a_location_is_on_the_digit_when_it_lies_in_its_box():
    boxes = torch.tensor([[10, 20, 20, 40]])
    locations = torch.tensor([[[-0.5, 0.5], [-0.5, -0.5], [0.5, 0.5], [0.0, 0.0]]])  # (10,30) (10,10) (30,30) (20,20)
    assert on_box(locations, boxes, (40, 40)).tolist() == [[True, False, False, True]]


def test_scores_are_those_of_single_images():
    model = small()
    digits = DigitWorld(40).fixed(font_glyphs()[2], 30, seed=1)
    report = regard.evaluate(model, examples=30)
    found = model.glimpse([image[0].numpy() for image in digits.images])
    wrong = [each.label != DIGITS[int(label)] for each, label in zip(found, digits.labels, strict=True)]
    assert report["error"] == pytest.approx(100 * sum(wrong) / 30)
    hits = [
        left <= x <= right and top <= y <= bottom
        for each, (left, top, right, bottom) in zip(found, digits.boxes.tolist(), strict=True)
        for x, y in each.path[1:]
    ]
    assert report["glimpses on the digit"] == pytest.approx(100 * sum(hits) / len(hits))
    assert [output["predicted"] for output in report.outputs] == [each.label for each in found]
    steps, policies = report.tables.values()
    assert steps[-1]["error"] == report["error"]
    assert [row["locations"] for row in policies] == ["learned", "random", "center"]
    json.dumps(report.to_dict())


def test_random_glimpses_hit_as_often_as_the_box_is_large():
    model = small(policy="random", num_glimpses=6)
    digits = DigitWorld(40).fixed(font_glyphs()[0], 400, seed=1)
    left, top, right, bottom = digits.boxes.unbind(1)
    share = float(((right - left) * (bottom - top)).float().mean()) / 40**2
    assert measure(model, digits, "random").on_digit == pytest.approx(100 * share, abs=4)
    assert regard.evaluate(model, examples=20)["error"] >= 0


def test_a_seed_and_clutter_change_the_images():
    model = small()
    assert regard.evaluate(model, examples=40, seed=1).to_dict() == regard.evaluate(model, examples=40).to_dict()
    assert regard.evaluate(model, examples=40, pieces=3).title == "40 images of 40 x 40 pixels, 3 pieces"
    assert "mean of 3 passes" in regard.evaluate(model, examples=10, passes=3).scores["error"].note


def test_what_cannot_be_scored_is_explained():
    with pytest.raises(DataError, match=r"knows the classes \['a'\]; the images show digits"):
        regard.evaluate(small(labels=["a"]), examples=3)
    with pytest.raises(OptionError, match="colour images"):
        regard.evaluate(small(channels=3), examples=3)
    with pytest.raises(OptionError, match="do not fit into images of 1 x 1"):
        regard.evaluate(small(image_size=1, glimpse_size=1), examples=3)
    with pytest.raises(DataError, match=r"train-images|t10k-images"):
        regard.evaluate(small(), folder="nowhere")
