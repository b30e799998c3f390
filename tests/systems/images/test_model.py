"""Image classifiers: recognizing pictures of every kind, saving, loading, refusing; and the shipped digits."""

import json

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw, ImageFont

from regard import load
from regard.encoders.image import LeNet5
from regard.errors import ModelError, OptionError
from regard.systems.image_classifier import ImageClassifier, ImageClassifierConfig
from regard.systems.shipped import load_as
from regard.systems.translator import Translator

GREY = ImageClassifierConfig(architecture="lenet5", channels=1, size=28)
COLOUR = ImageClassifierConfig(architecture="small_vgg")


def page(digit: str, colour: str = "navy", ground: str = "white") -> Image.Image:
    """A printed digit in a corner of a page."""
    picture = Image.new("RGB", (230, 190), ground)
    ImageDraw.Draw(picture).text((30, 20), digit, fill=colour, font=ImageFont.load_default(110))
    return picture


@pytest.fixture(scope="module")
def digits() -> ImageClassifier:
    return load("digits", device="cpu")


# The 1 of this font has a long flag, and no 1 of MNIST has one.
@pytest.mark.parametrize("digit", "023456789")
def test_the_shipped_model_reads_printed_digits(digit, digits):
    (best, *others) = digits.recognize(page(digit))
    assert best.label == digit
    assert len(others) == 4
    assert best.probability > others[0].probability
    assert digits.recognize(page(digit, "white", "black"), top=1)[0].label == digit


def test_files_pil_and_arrays_are_recognized_alike(digits, tmp_path):
    picture = page("4")
    picture.save(tmp_path / "four.png")
    forms = [tmp_path / "four.png", str(tmp_path / "four.png"), picture, np.asarray(picture), np.asarray(picture) / 255]
    found = list(digits.recognize_each(forms, top=3, batch=2))
    for guesses in found:
        assert [guess.label for guess in guesses] == [guess.label for guess in found[0]]
        assert guesses[0].probability == pytest.approx(found[0][0].probability, abs=1e-4)
    assert sum(guess.probability for guess in digits.recognize(picture, top=99)) == pytest.approx(1)


@pytest.mark.parametrize("config", [GREY, COLOUR], ids=["grey", "colour"])
@pytest.mark.parametrize("store", ["float32", "float16", "int8"])
def test_a_saved_model_says_what_it_said(config, store, tmp_path):
    model = ImageClassifier(config, ["cat", "chien", "گربه"])
    model.learn_normalisation(torch.randint(0, 255, (5, config.channels, 7, 7), dtype=torch.uint8))
    images = torch.randint(0, 255, (3, config.channels, config.size, config.size), dtype=torch.uint8)
    model.train()
    model(images)  # so that batch normalisation has something to remember
    model.save(tmp_path / "m", metrics={"test_accuracy": 50.0}, store=store)
    loaded = load(tmp_path / "m", device="cpu")
    assert loaded.labels == model.labels
    assert loaded.config == config
    torch.testing.assert_close(
        loaded.probabilities(images), model.probabilities(images), atol=1e-6 if store == "float32" else 0.02, rtol=0
    )
    assert model.training, "as it was before"


def test_pixels_are_normalised_by_the_training_pictures():
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


def test_what_is_wrong_is_explained(tmp_path, digits):
    with pytest.raises(OptionError, match="needs the names of its classes"):
        ImageClassifier(GREY, [])
    with pytest.raises(OptionError, match="got top=0"):
        digits.recognize(page("1"), top=0)
    with pytest.raises(ModelError, match="digits holds an image-classifier, not a translator"):
        load_as(Translator, "digits")
    with pytest.raises(ModelError, match="en-fr holds a translator, not an image-classifier"):
        load_as(ImageClassifier, "en-fr")
    digits.save(tmp_path / "m")
    (tmp_path / "m" / "labels.json").write_text('{"no": "list"}')
    with pytest.raises(ModelError, match="is a list of names"):
        load(tmp_path / "m")
    (tmp_path / "m" / "labels.json").unlink()
    with pytest.raises(ModelError, match=r"labels\.json cannot be read"):
        load(tmp_path / "m")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    (tmp_path / "m" / "config.json").write_text(json.dumps(config | {"system": "oracle"}))
    with pytest.raises(ModelError, match="another system: oracle; this version knows translator, image-classifier"):
        load(tmp_path / "m")
