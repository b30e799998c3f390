"""Image classifiers are scored on folders of images: accuracy, also by class."""

import json
import math

import pytest
from helpers.models import photograph, small_classifier

import regard
from regard.errors import DataError, OptionError

CLASSES = ("bird", "cat", "dog")


@pytest.fixture
def folder(tmp_path):
    """Three images of each of three classes."""
    for number, label in enumerate(CLASSES):
        (tmp_path / label).mkdir()
        for image in range(3):
            photograph(28, 28, seed=10 * number + image).convert("L").save(tmp_path / label / f"{image}.png")
    return tmp_path


def test_the_scores_are_those_of_the_predictions(folder):
    model = small_classifier(CLASSES)
    report = regard.evaluate(model, folder=folder)
    paths = [folder / label / f"{image}.png" for label in CLASSES for image in range(3)]
    found = model.recognize(paths, top=3)
    expected = [label for label in CLASSES for _ in range(3)]
    right = [one.label == label for one, label in zip(found, expected, strict=True)]
    assert report["accuracy"] == pytest.approx(100 * sum(right) / 9)
    assert report["top-5 accuracy"] == 100, "there are only three classes"
    chances = [
        next(each.probability for each in one.predictions if each.label == label)
        for one, label in zip(found, expected, strict=True)
    ]
    assert report["log-likelihood"] == pytest.approx(sum(map(math.log, chances)) / 9, abs=1e-5)
    assert report.title == "9 images"
    (rows,) = report.tables.values()
    assert [row["class"] for row in rows] == list(CLASSES)
    assert [row["images"] for row in rows] == [3, 3, 3]
    assert sum(row["recall"] for row in rows) / 3 == pytest.approx(report["accuracy"])
    assert [output["predicted"] for output in report.outputs] == [one.label for one in found]
    json.dumps(report.to_dict())


def test_what_cannot_be_scored_is_explained(folder, tmp_path_factory):
    with pytest.raises(OptionError, match="Give the folder with the test images"):
        regard.evaluate(small_classifier(CLASSES))
    with pytest.raises(OptionError, match="format must be one of mnist, cifar10, folders; got 'idx'"):
        regard.evaluate(small_classifier(CLASSES), folder=folder, format="idx")
    with pytest.raises(DataError, match="knows the classes"):
        regard.evaluate(small_classifier(), folder=folder)
    with pytest.raises(DataError, match=r"train-images|t10k-images"):
        regard.evaluate(small_classifier(CLASSES), folder=folder, format="mnist")
    with pytest.raises(DataError, match="nowhere"):
        regard.evaluate(small_classifier(CLASSES), folder=folder / "nowhere")
