"""The maps of each layer are those of the network, cut and made smaller as asked."""

import numpy as np
import pytest
import torch
from helpers.models import photograph, small_captioner, small_classifier

from regard.encoders.feature_maps import feature_maps
from regard.encoders.image import SmallVGG
from regard.errors import OptionError
from regard.systems.caption import inspection as captioning
from regard.systems.recognize import inspection as images


def test_maps_are_those_of_the_network_and_nothing_is_changed_in_place():
    torch.manual_seed(2)
    net = SmallVGG(5, filters=(3, 0, 7)).eval()
    image = torch.randn(3, 12, 12)
    found = feature_maps(net.features.named_children(), image, max_maps=99, max_side=99)
    assert [each.kind for each in found] == ["Conv2d", "ReLU", "MaxPool2d", "Conv2d", "ReLU"]
    torch.testing.assert_close(found[-1].maps, net.features(image[None])[0])
    torch.testing.assert_close(found[0].maps, net.features[0](image[None])[0])
    assert (found[0].maps < 0).any(), "the ReLU after it works in place, on a copy"
    torch.testing.assert_close(found[3].filters, net.features[4].weight[:, :4].detach())


def test_maps_are_bounded():
    net = SmallVGG(5, filters=(11, 13)).eval()
    first, *_ = feature_maps(net.features.named_children(), torch.randn(3, 24, 12), max_maps=5, max_side=8)
    assert first.shape == (11, 24, 12)
    assert first.maps.shape == (5, 8, 4)
    assert first.filters.shape == (5, 3, 3, 3)
    with pytest.raises(OptionError, match="must be 1 or more"):
        feature_maps([], torch.zeros(1, 2, 2), max_maps=0)


def test_a_classifier_shows_what_its_layers_see():
    model = small_classifier()
    maps = images.layer_maps(model, photograph())
    pixels, found = maps.image, maps.layers
    assert pixels.shape == (1, 28, 28)
    assert [each.shape for each in found if each.kind == "Conv2d"] == [(6, 28, 28), (16, 10, 10), (120, 1, 1)]
    last = model.net.features(model.normalised(pixels[None]))[0]
    pooled = [each for each in found if each.kind == "MaxPool2d"][-1]
    np.testing.assert_allclose(pooled.maps, last.detach(), atol=1e-5)


def test_the_encoder_of_a_captioner_shows_its_layers():
    model = small_captioner()
    maps = captioning.layer_maps(model, photograph(), max_maps=99, max_side=99)
    pixels, found = maps.image, maps.layers
    assert pixels.shape == (3, 64, 64)
    cells = model.cells(pixels[None])[0].detach()
    torch.testing.assert_close(found[-1].maps.flatten(1).T, cells, atol=1e-4, rtol=1e-4)
