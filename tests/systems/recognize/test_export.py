"""Exported image classifiers compute what torch computes."""

import json

import numpy as np
import pytest
import torch
from helpers.exported import Exported
from helpers.models import photograph, small_classifier

from regard.errors import OptionError
from regard.systems.export import export


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"architecture": "convnetjs_cifar", "channels": 3, "image_size": 32},
        {"architecture": "small_vgg", "channels": 3, "image_size": 32},
        {"architecture": "efficientnet_lite0", "channels": 3, "image_size": 64},
    ],
    ids=lambda config: config.get("architecture", "lenet5"),
)
def test_the_logits_of_an_exported_classifier_are_those_of_torch(config, tmp_path):
    model = small_classifier(**config)
    model.learn_normalisation(torch.randint(0, 256, (5, model.config.channels, 9, 9), dtype=torch.uint8))
    pixels = torch.from_numpy(np.stack([model.pixels(photograph(seed=seed)) for seed in (1, 2)]))
    exported = Exported(export(model, tmp_path / "out", precision="float32"))
    with torch.no_grad():
        expected = model(pixels)
    np.testing.assert_allclose(exported.run("model", pixel_values=pixels)["logits"], expected, atol=1e-5, rtol=1e-5)


def test_in_8_bits_the_logits_are_close_and_the_labels_are_named(tmp_path):
    model = small_classifier()
    pixels = torch.from_numpy(np.stack([model.pixels(photograph(seed=seed)) for seed in (1, 2)]))
    folder = export(model, tmp_path / "out")
    with torch.no_grad():
        expected = model(pixels)
    np.testing.assert_allclose(Exported(folder).run("model", pixel_values=pixels)["logits"], expected, atol=0.01)
    config = json.loads((folder / "config.json").read_text())
    assert config["id2label"] == {"0": "cat", "1": "chien", "2": "گربه"}
    assert json.loads((folder / "labels.json").read_text()) == list(model.labels)


def test_a_network_with_more_than_layers_in_a_row_is_refused(tmp_path):
    model = small_classifier(architecture="vgg11", channels=3, image_size=32)
    with pytest.raises(OptionError, match="VGG cannot be exported: it is not only layers in a row"):
        export(model, tmp_path / "out")
