"""Image classifiers: recognizing images of every kind, saving, loading, refusing; and the shipped digits."""

import json

import pytest
import torch
from helpers.models import photograph
from PIL import Image, ImageDraw, ImageFont

from regard import load
from regard.encoders import image_networks
from regard.encoders.image import LeNet5
from regard.errors import ModelError, OptionError, RegardError
from regard.systems.recognize.config import NETWORKS, RecognitionConfig
from regard.systems.recognize.model import ImageClassifier
from regard.systems.translate.model import Translator

GREY = RecognitionConfig(architecture="lenet5", channels=1, image_size=28)
COLOUR = RecognitionConfig(architecture="small_vgg")


def page(digit: str, colour: str = "navy", ground: str = "white") -> Image.Image:
    """A printed digit in a corner of a page."""
    image = Image.new("RGB", (230, 190), ground)
    ImageDraw.Draw(image).text((30, 20), digit, fill=colour, font=ImageFont.load_default(110))
    return image


@pytest.fixture(scope="module")
def digits() -> ImageClassifier:
    return load("digits", device="cpu")


def test_the_settings_name_every_network():
    assert tuple(image_networks.NETWORKS) == NETWORKS


# The 1 of this font has a long flag, and no 1 of MNIST has one.
@pytest.mark.parametrize("digit", "023456789")
def test_the_shipped_model_reads_printed_digits(digit, digits):
    found = digits.recognize(page(digit))
    assert found.label == found.predictions[0].label == digit
    assert len(found.predictions) == 5
    assert found.probability > found.predictions[1].probability
    assert digits.recognize(page(digit, "white", "black"), top=1).label == digit


def test_pixels_are_normalised_by_the_training_images():
    model = ImageClassifier(COLOUR, ["a", "b"])
    images = torch.randint(0, 255, (11, 3, 5, 7), dtype=torch.uint8)
    model.learn_normalisation(images)
    numbers = model.normalised(images)
    torch.testing.assert_close(numbers.mean((0, 2, 3)), torch.zeros(3), atol=1e-4, rtol=0)
    torch.testing.assert_close(numbers.var((0, 2, 3), unbiased=False), torch.ones(3), atol=1e-3, rtol=0)


def test_its_grid_can_be_attended_to(digits):
    encoded = digits.encode(torch.zeros(2, 1, 28, 28, dtype=torch.uint8), 4)
    assert isinstance(digits.net, LeNet5)
    assert encoded.states.shape == (2, 25, 16)


def test_a_part_of_ones_own_is_the_network(tmp_path, monkeypatch):
    (tmp_path / "my_network.py").write_text(
        "from torch import nn\n"
        "def flat(classes, channels, size):\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(channels * size**2, classes))\n"
    )
    monkeypatch.chdir(tmp_path)
    model = ImageClassifier(RecognitionConfig(architecture="my_network:flat", image_size=5), ["a", "b"]).eval()
    assert model.net[1].weight.shape == (2, 75)
    model.save("model")
    with pytest.raises(OptionError, match="trust=True"):
        load("model")
    again = load("model", device="cpu", trust=True)
    assert again.recognize(photograph()) == model.recognize(photograph())


def test_what_is_wrong_is_explained(tmp_path, digits, as_a_user):
    with pytest.raises(OptionError, match="needs the names of its classes"):
        ImageClassifier(GREY, [])
    with pytest.raises(OptionError, match="top must be a whole number, 1 or more; got 0"):
        digits.recognize(page("1"), top=0)
    with pytest.raises(OptionError, match="resize must be one of center_crop, mnist; got 'ink'"):
        RecognitionConfig(resize="ink")
    with pytest.raises(ModelError, match="digits holds a recognize model, not a translate model"):
        Translator.load("digits")
    with pytest.raises(ModelError, match="en-fr holds a translate model, not a recognize model"):
        ImageClassifier.load("en-fr")
    digits.save(tmp_path / "m")
    stored = json.loads((tmp_path / "m" / "config.json").read_text())
    (tmp_path / "m" / "labels.json").write_text('{"no": "list"}')
    with pytest.raises(ModelError, match=r"labels.json is damaged: it has another SHA-256"):
        load(tmp_path / "m")
    del stored["sha256"]  # a folder written by hand
    (tmp_path / "m" / "config.json").write_text(json.dumps(stored))
    with pytest.raises(ModelError, match="must be a list of the names of classes"):
        load(tmp_path / "m")
    (tmp_path / "m" / "labels.json").write_text('["zero", "one"]')
    with pytest.raises(ModelError, match=r"bias is \(10,\); the config asks for \(2,\)"):
        load(tmp_path / "m")
    (tmp_path / "m" / "labels.json").unlink()
    with pytest.raises(ModelError, match=r"labels\.json cannot be read"):
        load(tmp_path / "m")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    (tmp_path / "m" / "config.json").write_text(json.dumps(config | {"system": "oracle"}))
    with pytest.raises(OptionError, match=r"system must be one of translate, caption, .*; got 'oracle'"):
        load(tmp_path / "m")


@pytest.mark.parametrize(("architecture", "size"), [("lenet5", 32), ("alexnet", 32), ("vgg11", 28), ("small_vgg", 1)])
def test_a_network_that_does_not_fit_the_images_is_refused_before_it_is_used(architecture, size):
    with pytest.raises(RegardError, match=f"does not accept an image of 3 x {size} x {size}"):
        ImageClassifier(RecognitionConfig(architecture=architecture, image_size=size), ("a", "b"))
