"""Exported glimpse models look where torch looks."""

import numpy as np
import pytest
import torch
from helpers.exported import Exported
from helpers.models import small_glimpser

from regard.systems.export import export

KINDS = {
    "lstm": {},
    "rnn": {"core": "rnn"},
    "one_scale": {"num_scales": 1, "channels": 3},
    "convolution": {"what": "convolution", "glimpse_size": 6},
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_exported_model_looks_where_torch_looks_and_believes_the_same(kind, tmp_path):
    model = small_glimpser(**KINDS[kind])
    torch.nn.init.normal_(model.locator[2].weight, std=3)
    exported = Exported(export(model, tmp_path / "out", precision="float32"))
    pixels = torch.randint(0, 256, (4, model.config.channels, 17, 17), dtype=torch.uint8)
    noise = 0.3 * torch.randn(4, 5, 2)
    noise[:, 0] = 0
    with torch.no_grad():
        expected = model.look(pixels, noise=noise[:, 1:], num_glimpses=5)
    outputs = exported.run("model", pixel_values=pixels, noise=noise, learned=np.ones(1, np.float32))
    np.testing.assert_allclose(outputs["locations"], expected.locations, atol=1e-5)
    np.testing.assert_allclose(outputs["logits"], expected.logits, atol=1e-5)


def test_locations_can_be_given(tmp_path):
    model = small_glimpser()
    exported = Exported(export(model, tmp_path / "out", precision="float32"))
    pixels = torch.randint(0, 256, (2, 1, 17, 17), dtype=torch.uint8)
    locations = 2 * torch.rand(2, 3, 2) - 1
    with torch.no_grad():
        expected = model.look(pixels, locations=locations)
    outputs = exported.run("model", pixel_values=pixels, noise=locations, learned=np.zeros(1, np.float32))
    np.testing.assert_allclose(outputs["logits"], expected.logits, atol=1e-5)
