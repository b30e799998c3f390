"""The table of layers: output sizes, receptive fields as gradients show them, and skipped pixels."""

import pytest
import torch
from torch import nn
from torch.nn import functional

import regard
from regard.encoders.efficientnet import EfficientNetLite0
from regard.encoders.image import VGG, AlexNet, LeNet5, SmallVGG
from regard.encoders.layer_table import output_size, uncovered
from regard.errors import OptionError, ShapeError


def rows_of(net, size):
    return {row.name: row for row in regard.layer_table(net, size).rows}


def seen_pixels(net: nn.Sequential, size: int) -> int:
    """In how many columns of the image the middle of the output has a gradient."""
    image = torch.zeros(1, 1, size, size, requires_grad=True)
    for weight in net.parameters():
        nn.init.ones_(weight)
    maps = net(image)
    maps[0, :, maps.shape[2] // 2, maps.shape[3] // 2].sum().backward()
    return int((image.grad[0, 0].abs().sum(0) > 0).sum())


def test_the_example_of_the_lecture():
    (row,) = regard.layer_table(nn.Conv2d(3, 6, 5), size=(3, 32, 32)).rows
    assert row.output == (6, 28, 28)
    assert (row.kernel, row.stride, row.padding, row.field) == ((5, 5), (1, 1), (0, 0), 5)
    assert row.parameters == 6 * 3 * 25 + 6
    assert row.multiply_adds == 6 * 28 * 28 * 3 * 25
    assert row.note == ""


def test_the_table_of_lenet():
    table = regard.layer_table(LeNet5(), (1, 28, 28))
    assert [row.output for row in table.rows[:5]] == [
        (6, 28, 28),
        (6, 14, 14),
        (16, 10, 10),
        (16, 5, 5),
        (120, 1, 1),
    ]
    assert [row.field for row in table.rows] == [5, 6, 14, 16, 32, None, None]
    assert table.parameters == 61_706
    text = str(table)
    assert text.splitlines()[0].split()[:3] == ["layer", "kind", "kernel"]
    assert "61,706" in text.splitlines()[-1]


def test_alexnet_skips_pixels_at_224_but_not_at_227():
    with torch.device("meta"):
        net = AlexNet()
    assert "skips 1 of 224 rows at the bottom, 1 of 224 columns" in rows_of(net, (3, 224, 224))["features.0"].note
    assert not any(row.note for row in regard.layer_table(net, (3, 227, 227)).rows)


def test_gaps_between_windows_are_reported():
    (row,) = regard.layer_table(nn.Conv2d(1, 1, 1, stride=3), (1, 7, 7)).rows
    assert row.note == "skips 2 of 3 rows between windows, 2 of 3 columns between windows"


@pytest.mark.parametrize(
    "layers",
    [
        [nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Conv2d(2, 1, 5, stride=2), nn.AvgPool2d(3, 2), nn.Conv2d(1, 1, 3)],
        [nn.Conv2d(1, 2, 3, stride=2, padding=1), nn.Conv2d(2, 1, 3, dilation=2), nn.AvgPool2d(2)],
    ],
    ids=["pooled", "dilated"],
)
def test_receptive_fields_are_as_far_as_gradients_reach(layers):
    net, size = nn.Sequential(*layers), 61
    row = regard.layer_table(net, (1, size, size)).rows[-1]
    span = seen_pixels(net, size)
    # With a dilation, pixels between are skipped: then the field is wider than what has a gradient.
    assert span <= row.field
    assert span == row.field or any(isinstance(layer, nn.Conv2d) and layer.dilation[0] > 1 for layer in layers)


def test_large_networks_and_residuals_take_no_time_and_leave_the_network_unchanged():
    with torch.device("meta"):
        vgg = VGG(16, batch_norm=True).train()
    rows = rows_of(vgg, (3, 224, 224))
    assert rows["features.43"].field == 212
    assert vgg.training
    table = regard.layer_table(EfficientNetLite0(), (3, 224, 224))
    convolutions = [row for row in table.rows if row.kind == "Conv2d"]
    assert convolutions[-1].field == 851
    assert 380e6 < sum(row.multiply_adds for row in convolutions) < 390e6


def test_images_that_do_not_fit_are_explained():
    with pytest.raises(ShapeError, match="LeNet5 does not accept an image of 3 x 32 x 32"):
        regard.layer_table(LeNet5())
    net = SmallVGG()
    with pytest.raises(ShapeError, match="SmallVGG does not accept an image of 3 x 4 x 4"):
        regard.layer_table(net, (3, 4, 4))


def test_a_network_keeps_the_mode_of_each_layer():
    net = SmallVGG().train()
    net.features.eval()
    regard.layer_table(net, (3, 32, 32))
    assert net.training
    assert not net.features[0].training
    assert net.classifier[2].training


@pytest.mark.parametrize("stride", [1, 2, 3, 4])
@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("kernel", [2, 3, 5])
def test_uncovered_pixels_are_those_at_the_end_that_have_no_gradient(kernel, stride, padding):
    for size in range(kernel, 17):
        line = torch.ones(1, 1, 1, size, requires_grad=True)
        functional.conv2d(line, torch.ones(1, 1, 1, kernel), stride=(1, stride), padding=(0, padding)).sum().backward()
        touched = line.grad[0, 0, 0].nonzero().max()
        assert uncovered(size, kernel, stride=stride, padding=padding) == size - 1 - touched


def test_impossible_sizes_are_explained():
    with pytest.raises(ShapeError, match=r"kernel of 5 .* does not fit on 3 pixels"):
        output_size(3, 5)
    with pytest.raises(OptionError, match="stride=0"):
        output_size(3, 1, stride=0)
