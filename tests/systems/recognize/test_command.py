"""regard recognize: images in, the most probable classes out, and errors."""

import json

import pytest
from helpers.command_line import refused, regard, write_lines
from helpers.models import photograph, small_classifier
from PIL import Image, ImageDraw


@pytest.fixture
def pages(tmp_path):
    """A page with a stroke, and an empty one."""
    for name, box in (("one", (50, 10, 60, 90)), ("empty", (0, 0, 0, 0))):
        image = Image.new("L", (110, 100), 255)
        ImageDraw.Draw(image).rectangle(box, fill=0)
        image.save(tmp_path / f"{name}.png")
    return [tmp_path / "one.png", tmp_path / "empty.png"]


def test_images_are_recognized(pages):
    first, second = regard("recognize", *pages, "--top", 2, check=True).stdout.splitlines()
    assert first.startswith(f"{pages[0]}: 1 ")
    assert len(second.removeprefix(f"{pages[1]}: ").split(",")) == 2
    (line,) = regard("recognize", "--model", "digits", "--json", pages[0], check=True).stdout.splitlines()
    result = json.loads(line)
    assert result["image"] == str(pages[0])
    assert result["predictions"][0]["label"] == "1"
    assert len(result["predictions"]) == 5


def test_an_image_classifier_is_evaluated(tmp_path):
    labels = ("bird", "cat")
    small_classifier(labels).save(tmp_path / "model")
    for number, label in enumerate(labels):
        (tmp_path / "test" / label).mkdir(parents=True)
        for place in range(2):
            photograph(28, 28, seed=10 * number + place).save(tmp_path / "test" / label / f"{place}.png")
    command = ["evaluate", tmp_path / "model", "--folder", tmp_path / "test", "--format", "folders"]
    said = regard(*command, "--output", tmp_path / "out.jsonl", check=True).stdout
    for part in ("4 images", "accuracy", "top-5 accuracy", "log-likelihood", "By class", "bird", "cat"):
        assert part in " ".join(said.split())
    assert max(map(len, said.splitlines())) <= 80
    outputs = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [output["label"] for output in outputs] == ["bird", "bird", "cat", "cat"]
    report = json.loads(regard(*command, "--json", check=True).stdout)
    right = sum(output["label"] == output["predicted"] for output in outputs)
    assert report["scores"]["accuracy"]["value"] == 25 * right


def test_what_is_wrong_is_explained(pages, tmp_path):
    for arguments, says in (
        ([], "Name the images to recognize"),
        ([write_lines(tmp_path / "text.png", "ab")], "text.png is not an image"),
        ([tmp_path / "none.png"], "There is no image"),
        ([pages[0], "--top", 0], "1 or more; got 0"),
        ([pages[0], "--model", "en-fr"], "en-fr holds a translate model, not a recognize model"),
    ):
        message = refused("recognize", *arguments)
        assert says in message, message
    assert "Give the folder with the test images" in refused("evaluate", "digits")
    assert "Did you mean 'folder'" in refused("evaluate", "digits", "--foldr", tmp_path)
    assert "format must be one of mnist" in refused("evaluate", "digits", "--folder", tmp_path, "--format", "idx")
