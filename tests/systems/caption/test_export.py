"""Exported captioners compute what torch computes, from pixels on."""

import numpy as np
import pytest
import torch
from helpers.exported import Exported, steps_of_both
from helpers.models import photograph, small_captioner

from regard.systems.export import export

KINDS = {
    "soft": {},
    "hard": {"align": "hard"},
    "adaptive": {"architecture": "adaptive"},
    "show_and_tell": {"architecture": "show_and_tell"},
    "annotated": {"annotation_dim": 9, "coordinates": True, "stride": 4},
}


def pixels_of(model):
    return model.prepare([model.seen(photograph(seed=seed)) for seed in (3, 4, 5)])


@pytest.mark.parametrize("kind", KINDS)
def test_every_step_of_an_exported_captioner_is_that_of_torch(kind, tmp_path):
    model = small_captioner(**KINDS[kind])
    exported = Exported(export(model, tmp_path / "out", precision="float32"))
    pixels = pixels_of(model)
    with torch.no_grad():
        encoded = model.encode(pixels)
    for outputs, step in steps_of_both(exported, model.decoder, encoded, {"pixel_values": pixels}):
        np.testing.assert_allclose(outputs["log_probs"], step.logits.log_softmax(-1), atol=1e-5)
        if kind == "show_and_tell":
            assert "attention" not in outputs
            continue
        np.testing.assert_allclose(outputs["attention"], step.attended.weights[:, 0], atol=1e-5)
        np.testing.assert_allclose(outputs["gate"], step.attended.extras["gate"][:, 0], atol=1e-5)
        assert ("distribution" in outputs) == (kind == "hard")


def test_hard_attention_comes_with_the_distribution_it_chose_from(tmp_path):
    model = small_captioner(align="hard")
    exported = Exported(export(model, tmp_path / "out", precision="float32"))
    pixels = pixels_of(model)
    with torch.no_grad():
        encoded = model.encode(pixels)
        state = model.decoder.start(encoded)
        expected = model.decoder.distribution(state)
    first = exported.run("encoder", pixel_values=pixels)
    given = {name: value for name, value in first.items() if name.startswith(("memory.", "past."))}
    outputs = exported.run("decoder", input_ids=np.ones(3, np.int64), **given)
    np.testing.assert_allclose(outputs["distribution"], expected, atol=1e-5)


def test_a_frozen_encoder_is_a_part_of_the_graph_and_says_how_unlike_an_image_is(tmp_path):
    model = small_captioner(
        encoder="efficientnet_lite0", stride=16, coarse_stride=32, drop_last_layers=1, image_size=64, feature_dim=432,
        pca_dim=8, annotation_dim=9, domain="noise", architecture="adaptive",
    )  # fmt: skip
    pixels = pixels_of(model)
    with torch.no_grad():
        features = model.features(pixels)
        encoded = model.encode(pixels)
        novelty = model.novelty(features.mean(1))
    exported = Exported(export(model, tmp_path / "out", precision="float32"))
    outputs = exported.run("encoder", pixel_values=pixels)
    np.testing.assert_allclose(outputs["novelty"], novelty, rtol=1e-4)
    for given, step in steps_of_both(exported, model.decoder, encoded, {"pixel_values": pixels}, steps=2):
        np.testing.assert_allclose(given["attention"], step.attended.weights[:, 0], atol=1e-5)
