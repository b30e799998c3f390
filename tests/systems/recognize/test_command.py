"""`regard layers`: the networks of the literature have the parameters that their papers and checkpoints state."""

import pytest

from regard.errors import OptionError
from regard.systems.recognize.extra_commands import layers

PUBLISHED = {
    "lenet5": 61_706,
    "alexnet": 60_965_224,
    "vgg16": 138_357_544,
    "vgg19": 143_667_240,
    "convnetjs_mnist": 5_994,
}


@pytest.mark.parametrize("network", PUBLISHED)
def test_a_network_has_its_published_number_of_parameters(network, capsys):
    layers(network)
    *rows, total = capsys.readouterr().out.splitlines()
    assert f"{PUBLISHED[network]:,}" in total
    if network.startswith("vgg"):
        assert rows[2].split()[:2] == ["features.0", "Conv2d"]
        assert rows[-1].split()[:2] == ["classifier.6", "Linear"]


def test_the_size_and_the_classes_can_be_chosen(capsys):
    layers("vgg11", size="3x96x128", classes=7)
    *_, last, _ = lines = capsys.readouterr().out.splitlines()
    assert "3 x 96 x 128" in lines[1]
    assert " 7 " in last
    for wrong in ("32", "axbxc", "0x1x1", "3x32x32x1"):
        with pytest.raises(OptionError, match="CHANNELSxHEIGHTxWIDTH"):
            layers("lenet5", size=wrong)
