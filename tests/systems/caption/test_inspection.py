"""A captioner asked again: with regions hidden, with a given caption, with hard attention drawn anew."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch
from helpers.models import photograph, small_captioner
from PIL import Image

import regard
from regard.data.tokenizer import END
from regard.errors import OptionError
from regard.systems.caption.examples import photographs, scene_examples
from regard.systems.caption.inspection import (
    caption_given,
    caption_without,
    hide,
    resample,
    with_gold,
)
from regard.worlds.scenes import scenes


@pytest.fixture(scope="module")
def scenes_model():
    return regard.load("scenes", device="cpu")


@pytest.fixture(scope="module")
def scene():
    return next(islice(scenes(split="test", side=64), 0, None))


def hard_captioner():
    torch.manual_seed(5)
    model = small_captioner(align="hard")
    with torch.no_grad():
        model.decoder.output.bias[END] = -9.0
    return model


def test_a_hidden_box_has_the_mean_colour_and_nothing_else_changes():
    image = photograph(40, 20)
    hidden = np.asarray(hide(image, [(0.25, 0.5, 0.5, 1.0)]))
    mean = np.asarray(image).mean((0, 1)).round()
    assert (hidden[10:, 10:20] == mean).all()
    outside = np.ones((20, 40), bool)
    outside[10:, 10:20] = False
    assert (hidden[outside] == np.asarray(image)[outside]).all()


def test_hiding_an_object_removes_its_words(scenes_model, scene):
    assert scene.caption == "a small green star left of a large red ring"
    boxes = [tuple(edge / 64 for edge in box) for box in scene.regions[3]]
    found = caption_without(scenes_model, scene.image, boxes)
    assert found.before.text == scene.caption
    assert "star" not in found.after.text
    changes = {word.word: word.after - word.before for word in found.words}
    assert changes["star"] < -3
    assert found.change == pytest.approx(sum(word.after - word.before for word in found.words))
    assert found.before.trace.image != found.after.trace.image
    removed = " ".join(word for edit in found.edits if edit.kind == "removed" for word in edit.words)
    assert "star" in removed


def test_log_probabilities_before_are_those_of_the_caption(scenes_model, scene):
    found = caption_without(scenes_model, scene.image, [(0.0, 0.0, 0.1, 0.1)], beam=1)
    own = next(series for series in found.before.trace.series if series.name == "log_prob")
    assert [word.before for word in found.words[:-1]] == pytest.approx(list(own.values), abs=1e-4)
    assert found.words[-1].word == "the end"


def test_the_own_caption_given_is_the_same_caption(scenes_model, scene):
    own = scenes_model.caption(scene.image, beam=1)
    given = caption_given(scenes_model, scene.image, own.text)
    assert given.text == own.text
    assert given.score == pytest.approx(own.score, abs=1e-4)
    np.testing.assert_allclose(given.trace.maps[0].weights, own.trace.maps[0].weights, atol=1e-5)
    wrong = caption_given(scenes_model, scene.image, "a large blue moon above a square")
    assert wrong.score < given.score - 1
    with pytest.raises(OptionError, match="needs a word"):
        caption_given(scenes_model, scene.image, " ")


def test_cells_are_drawn_from_their_distributions():
    model, image = hard_captioner(), photograph()
    one, same = (resample(model, image, seed=4, max_length=5) for _ in range(2))
    assert one == same, "a seed gives the same caption"
    choices = {tuple(_choices(resample(model, image, seed=seed, max_length=5))) for seed in range(6)}
    assert len(choices) > 1, "other seeds look elsewhere"
    weights = np.asarray(one.trace.maps[0].weights)
    np.testing.assert_allclose(weights.sum(1), 1, atol=1e-5)
    # The distribution of the first word does not depend on what is drawn; over many draws it is met.
    drawn = [_choices(resample(model, image, seed=seed, max_length=1))[0] for seed in range(150)]
    counts = np.bincount(drawn, minlength=64) / 150
    assert np.abs(counts - weights[0]).max() < 0.12


def test_a_caption_that_is_drawn_may_have_no_words():
    model = hard_captioner()
    with torch.no_grad():
        model.decoder.output.bias[END] = 50.0
    drawn, usual = resample(model, photograph(40, 20), seed=1), model.caption(photograph(40, 20))
    assert (drawn.text, drawn.finished) == (usual.text, usual.finished) == ("", True)
    assert drawn.trace.weights.shape == usual.trace.weights.shape == (0, 64)


def test_drawing_the_most_probable_cells_gives_the_usual_caption(monkeypatch):
    model, image = hard_captioner(), photograph()
    monkeypatch.setattr(torch, "multinomial", lambda chances, count, generator: chances.argmax())
    drawn = resample(model, image, seed=1, max_length=6)
    usual = model.caption(image, beam=1, max_length=6)
    assert drawn.text == usual.text
    assert drawn.score == pytest.approx(usual.score, abs=1e-4)
    np.testing.assert_allclose(drawn.trace.maps[0].weights, usual.trace.maps[0].weights, atol=1e-5)


def test_soft_attention_draws_nothing(scenes_model, scene):
    with pytest.raises(OptionError, match="Only hard attention draws"):
        resample(scenes_model, scene.image, seed=1)


def test_gold_boxes_are_those_of_the_common_words(scenes_model):
    example = scene_examples(1)[0]
    trace = scenes_model.caption(example.image).trace
    marked = with_gold(trace, example.caption.split(), example.gold)
    named = {trace.target[box.position] for box in marked.boxes}
    assert {"star", "ring"} <= named
    assert "of" not in named
    other = with_gold(replace(trace), ["nothing", "like", "it"], [[(0.0, 0.0, 1.0, 1.0)]] * 3)
    assert other.boxes == ()
    with pytest.raises(OptionError, match="2 words and 1 boxes"):
        with_gold(trace, ["a", "b"], [None])


def test_examples_can_be_captioned(scenes_model):
    for example in scene_examples(4):
        assert scenes_model.caption(example.image).text == example.caption
        assert len(example.caption.split()) == len(example.gold)
    for example in photographs():
        assert len(example.caption.split()) == len(example.gold)
        assert any(example.gold)


@pytest.mark.parametrize(
    "box", [(0.5, 0.0, 0.5, 1.0), (0.0, 0.0, 1.2, 1.0), (0.9, 0.0, 0.1, 1.0), (0.0, float("nan"), 1.0, 1.0)]
)
def test_impossible_boxes_are_refused(box):
    with pytest.raises(OptionError, match="fractions of the image"):
        hide(Image.new("RGB", (8, 8)), [box])


def _choices(caption):
    return [int(value) for value in next(s for s in caption.trace.series if s.name == "choice").values]
