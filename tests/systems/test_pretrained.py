"""Shipped models, and finding any model by its name or folder."""

import json
import subprocess
import sys

import pytest
from helpers.models import small_translator

from regard import load
from regard.errors import ModelError, OptionError
from regard.systems import registry
from regard.systems.folder import find_model
from regard.systems.pretrained import pretrained_models
from regard.systems.translate.alignment import align_pairs
from regard.systems.translate.model import Translator
from regard.viewing.view import MEASURED


def test_shipped_models_are_small_and_say_what_they_are():
    models = pretrained_models()
    assert sum(model.mebibytes for model in models) <= 42
    for model in models:
        assert model.mebibytes <= 12, model.name
        assert model.summary, model.name
        assert model.headline, model.name
        assert any(name in model.metrics for name in registry.entry(model.kind).declaration.headline), model.name
        assert registry.entry(model.kind).declaration.test_of(model.metrics), (
            f"{model.name} says what its scores were measured on"
        )


def test_every_shipped_model_loads_in_evaluation_mode():
    for shipped in pretrained_models():
        model = load(shipped.name, device="cpu")
        assert type(model) is registry.entry(shipped.kind).system
        assert not any(module.training for module in model.modules())
        assert model.metrics == shipped.metrics
        assert model.card.startswith("#")


def test_how_right_attention_is_can_be_understood_without_a_paper():
    lines = {model.name: model.metrics.get(MEASURED, "") for model in pretrained_models()}
    config = json.loads((find_model("photo-en") / "config.json").read_text())["config"]
    side = config["image_size"] // config["stride"]
    assert f"the middle of {side} x {side} cells" in lines["photo-en"], "which its score depends on"
    assert "average precision 0.18 (1 is perfect;" in lines["reviews-en"]
    assert not [name for name, line in lines.items() if "AUPRC" in line]


@pytest.mark.parametrize(("ending", "noun"), [("tired", "animal"), ("wide", "street")])
def test_one_word_decides_what_it_refers_to(ending, noun):
    reading = load("stories-both", device="cpu").read(
        f"The animal didn't cross the street because it was too {ending}."
    )
    it = reading.words.index("it")
    assert reading.tags[it] == noun
    assert set(reading.tags) == {"-", noun}
    assert reading.trace.weights[it, reading.words.index(noun)] > 0.95


def test_the_attention_of_en_fr_crosses_where_french_adjectives_follow_their_noun():
    sentence = "The agreement on the European Economic Area was signed in August 1992 ."
    translation = "L' accord sur l' espace économique européen a été signé en août 1992 ."
    source, target = sentence.split(), translation.split()
    (pair,) = align_pairs(load("en-fr", device="cpu"), [(source, target)])
    linked = {(source[i], target[j]) for i, j in pair.links}
    assert {("Area", "espace"), ("Economic", "économique"), ("European", "européen")} <= linked
    assert {("agreement", "accord"), ("signed", "signé"), ("August", "août"), ("1992", "1992")} <= linked


def test_listing_imports_no_torch():
    code = (
        "import sys; from regard.systems.pretrained import pretrained_models;"
        "assert len(pretrained_models()) > 5; [m.headline for m in pretrained_models()]; print('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "False\n"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("en-frr", "Did you mean 'en-fr'"),
        ("digit", "Did you mean 'digits'"),
        ("nowhere", "no folder and no shipped model named 'nowhere'. Shipped models: babel, digits, en-de"),
        ("../recipes", "no folder and no shipped model"),
    ],
)
def test_a_misspelt_name_is_explained(name, says):
    for find in (load, Translator.load, find_model):
        with pytest.raises(ModelError, match=says):
            find(name)


def test_a_name_that_no_file_can_have_is_explained():
    for find in (load, Translator.load):
        with pytest.raises(OptionError, match=r"name must be the path of a file or folder; got 'a\\x00b'"):
            find("a\0b")
    with pytest.raises(ModelError, match="no folder and no shipped model"):
        find_model("a\0b")


def test_a_folder_without_a_model_is_explained(tmp_path):
    for find in (load, Translator.load):
        with pytest.raises(ModelError, match=r"is not a model folder: it needs config\.json and model\.safetensors"):
            find(tmp_path)


def test_a_model_with_custom_parts_loads_with_trust(tmp_path, monkeypatch):
    (tmp_path / "my_parts.py").write_text(
        "from regard import score\n"
        "print('this code runs')\n"
        "class MyScore(score.General):\n"
        "    def __init__(self, query_dim, key_dim):\n"
        "        super().__init__(query_dim, key_dim)\n"
    )
    monkeypatch.chdir(tmp_path)
    model = small_translator(score="my_parts:MyScore")
    expected = model.translate("a dog", max_length=5)
    model.save("model")
    monkeypatch.delitem(sys.modules, "my_parts")
    for loader in (load, Translator.load):
        with pytest.raises(
            OptionError, match=r"uses score = 'my_parts:MyScore': loading it runs that code.*trust=True"
        ):
            loader("model")
    assert "my_parts" not in sys.modules, "nothing of it has run"
    found = load("model", device="cpu", trust=True).translate("a dog", max_length=5)
    assert (found.text, found.score) == (expected.text, pytest.approx(expected.score, abs=1e-5))
    (tmp_path / "my_parts.py").unlink()
    monkeypatch.delitem(sys.modules, "my_parts")
    with pytest.raises(OptionError, match="there is no module 'my_parts'"):
        load("model", trust=True)
