"""Lists of layers: the same table as of the network, and clear reasons why a list is impossible."""

import re

import pytest
import torch

import regard
from regard.encoders.image import AlexNet, LeNet5
from regard.errors import OptionError
from regard.systems.recognize.inspection import MAX_LAYERS, LayerSpec, known_networks, tabulate


def outputs(found):
    return [row.output for row in found.rows]


def test_the_example_of_the_lecture():
    found = tabulate([LayerSpec(filters=6, kernel=5)])
    assert outputs(found) == [(6, 28, 28)]
    assert found.problem is None
    assert found.parameters == 6 * 3 * 25 + 6


@pytest.mark.parametrize(("name", "net"), [("lenet5", LeNet5), ("alexnet", AlexNet)])
def test_known_networks_have_the_table_of_their_network(name, net):
    known = next(each for each in known_networks() if each.name == name)
    size = known.channels, known.height, known.width
    found = tabulate(known.layers, channels=size[0], height=size[1], width=size[2])
    with torch.device("meta"):
        net = net(10)
    rows = [row for row in regard.layer_table(net, size).rows if row.kernel]
    assert [(row.output, row.field, row.parameters) for row in found.rows] == [
        (row.output, row.field, row.parameters) for row in rows
    ]


@pytest.mark.parametrize(
    ("layers", "problem", "message"),
    [
        ([LayerSpec(), LayerSpec(kernel=40)], 1, "A kernel of 40 .* does not fit on 30 pixels"),
        ([LayerSpec("max_pool", 2, 2, 2)], 0, "padding of a pooling is at most half its kernel"),
        ([LayerSpec(filters=6, groups=4)], 0, "4 groups need numbers of maps that are multiples"),
        ([LayerSpec("max_pool", 2, 2)] * 6, 5, "does not fit on 1 pixel with"),
    ],
)
def test_an_impossible_layer_is_named_with_the_reason(layers, problem, message):
    found = tabulate(layers)
    assert found.problem.layer == problem
    assert len(found.rows) == problem, "the table ends before it"
    assert re.search(message, found.problem.message)


def test_large_layers_take_no_memory():
    found = tabulate([LayerSpec(filters=4096, kernel=64), LayerSpec(filters=4096, kernel=64)], height=512, width=512)
    assert found.parameters > 60e9


def test_limits():
    with pytest.raises(OptionError, match="at most 40 layers"):
        tabulate([LayerSpec()] * (MAX_LAYERS + 1), height=512, width=512)
    with pytest.raises(OptionError, match="1 or more channels"):
        tabulate([], height=0, width=4)
    with pytest.raises(OptionError, match="kernel"):
        LayerSpec(kernel=0)
    assert tabulate([], channels=1, height=5, width=5).rows == ()
