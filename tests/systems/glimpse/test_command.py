"""regard glimpse: what images show, where the model looked, figures and crops."""

import json

import pytest
import torch
from helpers.command_line import refused, regard, write_lines
from PIL import Image, ImageDraw

from regard.systems.glimpse.config import GlimpsesConfig
from regard.systems.glimpse.model import Glimpser
from regard.trace import Trace
from regard.worlds.digits import DIGITS


@pytest.fixture
def model(tmp_path):
    torch.manual_seed(1)
    config = GlimpsesConfig(image_size=30, glimpse_size=8, num_scales=2, num_glimpses=3, hidden=12)
    Glimpser(config, DIGITS).save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def page(tmp_path):
    image = Image.new("L", (90, 60), 255)
    ImageDraw.Draw(image).rectangle((50, 10, 60, 50), fill=0)
    image.save(tmp_path / "page.png")
    return tmp_path / "page.png"


def test_images_are_looked_at(model, page):
    (line,) = regard("glimpse", "--model", model, page, check=True).stdout.splitlines()
    assert line.startswith(f"{page}: ")
    assert "looked at (45,30) (" in line
    (line,) = regard("glimpse", "-m", model, page, "--json", "--num-glimpses", 2, check=True).stdout.splitlines()
    result = json.loads(line)
    assert result["image"] == str(page)
    assert len(result["beliefs"]) == 2
    assert Trace.from_dict(result["trace"]).kind == "glimpses"
    assert len(regard("glimpse", "-m", model, page, page, check=True).stdout.splitlines()) == 2


def test_the_path_is_shown_and_the_image_is_cropped(model, page, tmp_path):
    shown = regard("glimpse", "-m", model, page, "--show", "-", check=True).stdout
    assert " 1 at  50%, 50%" in shown
    assert max(map(len, shown.splitlines())) <= 80 or str(page) in max(shown.splitlines(), key=len)
    command = ["glimpse", "-m", model, page, "--show", tmp_path / "path.png", "--crop", tmp_path / "part.png"]
    said = regard(*command, "--json", check=True)
    left, top, right, bottom = json.loads(said.stdout)["crop_box"]
    with Image.open(tmp_path / "path.png") as figure, Image.open(tmp_path / "part.png") as part:
        assert figure.width > 300
        assert part.size == (right - left, bottom - top)
    assert f"Wrote {tmp_path / 'part.png'}" in said.stderr


def test_a_model_is_evaluated(model):
    said = regard("evaluate", model, "--examples", 20, check=True).stdout
    for part in ("error", "random glimpses on the digit", "After each glimpse", "This model with other locations"):
        assert part in said
    assert max(map(len, said.splitlines())) <= 80


def test_what_is_wrong_is_explained(model, page, tmp_path):
    for arguments, says in (
        (["-m", model], "Name the images to look at"),
        (["-m", model, write_lines(tmp_path / "text.png", "ab")], "text.png is not an image"),
        (["-m", model, page, "--policy", "left"], 'Invalid value "left" for --policy'),
        (["-m", model, page, page, "--crop", "a.png"], "--crop a.png is for one image; got 2"),
        (["-m", model, page, "--crop", tmp_path / "a.txt"], "--crop saves an image, such as FILE.png"),
        (["-m", model, page, page, "--show", "a.png"], "--show a.png is for one input; got 2"),
        (["-m", "en-fr", page], "en-fr holds a translate model, not a glimpse model"),
    ):
        message = refused("glimpse", *arguments)
        assert says in message, message
