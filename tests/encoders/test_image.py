"""Convolutional networks: their published sizes, maps at every stride, and grids that attention reads."""

import sys

import pytest
import torch

from regard import Attention, score
from regard.encoders.image import VGG, AlexNet, ConvNetJS, ImageEncoder, LeNet5, SmallVGG
from regard.encoders.image_networks import NETWORKS, TimmNet, make_net
from regard.errors import OptionError

CIFAR = {"channels": 3, "size": 32, "filters": (16, 20, 20), "pools": (2, 2, 2)}
# Positions in `features` of the convolutions of published checkpoints.
VGG_PLACES = {
    (11, False): [0, 3, 6, 8, 11, 13, 16, 18],
    (16, False): [0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28],
    (16, True): [0, 3, 7, 10, 14, 17, 20, 24, 27, 30, 34, 37, 40],
    (19, False): [0, 2, 5, 7, 10, 12, 14, 16, 19, 21, 23, 25, 28, 30, 32, 34],
}


def count_parameters(net) -> int:
    return sum(part.numel() for part in net.parameters())


def test_networks_have_the_number_of_parameters_of_their_papers():
    assert count_parameters(LeNet5()) == 61_706
    with torch.device("meta"):
        assert count_parameters(AlexNet()) == 60_965_224
        assert count_parameters(VGG(11)) == 132_863_336
        assert count_parameters(VGG(16)) == 138_357_544
        assert count_parameters(VGG(19)) == 143_667_240
        assert count_parameters(VGG(16, batch_norm=True)) == 138_365_992
    assert count_parameters(ConvNetJS(**CIFAR)) == 16 * 76 + 20 * 401 + 20 * 501 + 10 * 321


@pytest.mark.parametrize(("depth", "batch_norm"), VGG_PLACES)
def test_the_parameters_of_vgg_are_named_as_in_published_checkpoints(depth, batch_norm):
    with torch.device("meta"):
        state = VGG(depth, batch_norm=batch_norm).state_dict()
    places = [
        int(name.split(".")[1]) for name, weight in state.items() if name.startswith("features") and weight.ndim == 4
    ]
    assert places == VGG_PLACES[depth, batch_norm]
    linear = [name for name in state if name.startswith("classifier") and name.endswith("weight")]
    assert linear == ["classifier.0.weight", "classifier.3.weight", "classifier.6.weight"]
    assert state["classifier.0.weight"].shape == (4096, 25088)
    if batch_norm:
        assert {"features.1.running_mean", "features.1.running_var", "features.1.num_batches_tracked"} <= set(state)


@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_predicts_classes_and_has_maps_at_its_strides(name):
    channels, size = (1, 28) if name in ("lenet5", "convnetjs_mnist") else (3, 64)
    size = 67 if name == "alexnet" else 32 if name in ("convnetjs_cifar", "small_vgg") else size
    with torch.device("meta"):
        net = make_net(name, 7, channels=channels, size=size, batch_norm=True).eval()
        images = torch.randn(2, channels, size, size)
        assert net(images).shape == (2, 7)
        for stride in net.strides:
            encoder = ImageEncoder(net, stride)
            encoded = encoder(images)
            assert encoded.states.shape[::2] == (2, encoder.dim)
            assert encoded.mask.shape == (2, 1, encoded.states.shape[1])
            assert encoded.summary.shape == (2, encoder.dim)
    with pytest.raises(OptionError, match=r"has maps at the strides \[.*; got stride=3"):
        net.maps(images, 3)


def test_the_grid_of_vgg_is_that_of_show_attend_and_tell():
    with torch.device("meta"):
        encoded = ImageEncoder(VGG(19), 16)(torch.randn(1, 3, 224, 224))
    assert encoded.states.shape == (1, 14 * 14, 512)


def test_cells_are_in_reading_order_and_their_mean_is_the_summary():
    net = SmallVGG(5).eval()
    images = torch.randn(2, 3, 32, 32)
    maps, encoded = net.maps(images, 4), ImageEncoder(net, 4)(images)
    assert maps.shape == (2, 512, 8, 8)
    assert torch.equal(encoded.states[1, 3 * 8 + 5], maps[1, :, 3, 5])
    torch.testing.assert_close(encoded.summary, maps.mean((2, 3)))
    torch.testing.assert_close(net.classifier(net.maps(images, 16)), net(images))


def test_attention_reads_the_grid():
    encoder = ImageEncoder(LeNet5(), 4)
    encoded = encoder(torch.randn(3, 1, 28, 28))
    attention = Attention(score.Additive(11, encoder.dim, 13))
    context, weights = attention(torch.randn(3, 2, 11), attention.remember(encoded.states, encoded.mask), weights=True)
    assert context.shape == (3, 2, 16)
    assert weights.shape == (3, 2, 25)
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 2))


def test_the_tanh_form_of_lenet_averages():
    net = LeNet5(activation="tanh")
    assert "AvgPool2d" in str(net)
    assert net(torch.randn(1, 1, 28, 28)).shape == (1, 10)


def test_unknown_networks_are_explained():
    with pytest.raises(OptionError, match=r"one of lenet5, .*; got 'lenet'"):
        make_net("lenet", 10)
    with pytest.raises(OptionError, match="11, 16, 19; got depth=13"):
        VGG(13)


def test_networks_of_timm_have_maps_too():
    pytest.importorskip("timm", reason="timm, or torchvision that it needs, is not installed", exc_type=ImportError)
    net = make_net("timm:resnet18", 7).eval()
    assert isinstance(net, TimmNet)
    assert net.strides == [2, 4, 8, 16, 32]
    encoder = ImageEncoder(net, 16)
    assert encoder(torch.randn(2, 3, 64, 64)).states.shape == (2, 16, encoder.dim)
    assert net(torch.randn(2, 3, 64, 64)).shape == (2, 7)
    with pytest.raises(OptionError, match="cannot create a network 'nothing'"):
        make_net("timm:nothing", 7)


def test_the_error_without_timm_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(OptionError, match=r"pip install 'regard\[timm\]'"):
        make_net("timm:resnet18", 7)


def test_fine_cells_are_joined_with_the_coarse_maps_at_their_place():
    net, images = SmallVGG().eval(), torch.rand(2, 3, 32, 32)
    fine, coarse = net.maps(images, 4), net.maps(images, 16)
    encoder = ImageEncoder(net, 4, coarse_stride=16)
    states = encoder(images).states
    assert encoder.dim == states.shape[-1] == fine.shape[1] + coarse.shape[1]
    torch.testing.assert_close(states[..., : fine.shape[1]], fine.flatten(2).mT)
    # The corners of the image are the corners of both grids.
    torch.testing.assert_close(states[:, 0, fine.shape[1] :], coarse[:, :, 0, 0])
    torch.testing.assert_close(states[:, -1, fine.shape[1] :], coarse[:, :, -1, -1])
