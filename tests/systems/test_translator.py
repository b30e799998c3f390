"""Translators of every architecture: batches, saving, loading, refusing."""

import dataclasses
import json
import shutil

import pytest
import torch

from regard import load
from regard.data.tokenizer import UNKNOWN, Tokenizer
from regard.errors import ModelError, OptionError
from regard.search.hypothesis import Hypothesis
from regard.systems.shipped import shipped_models
from regard.systems.translator import Translator, TranslatorConfig

TEXTS = ["a dog is running .", "two dogs run", "the small house is red and the sky is blue .", "a"]
SMALL = TranslatorConfig(embedding=12, hidden=10, inner=24, heads=2, layers=1)
KINDS = {
    "plain": {"architecture": "plain"},
    "rnnsearch": {},
    "rnnsearch_lstm": {"cell": "lstm"},
    "conditional": {"conditional": True},
    "luong": {"architecture": "luong", "cell": "lstm", "layers": 2, "score": "general"},
    "luong_dot": {"architecture": "luong", "score": "dot", "bidirectional": False},
    "luong_dot_both_ways": {"architecture": "luong", "score": "dot", "encoder_hidden": 5},
    "luong_location": {"architecture": "luong", "score": "location"},
    "luong_local_m": {"architecture": "luong", "align": "local_m", "score": "general"},
    "luong_local_p": {"architecture": "luong", "align": "local_p", "score": "general", "input_feeding": False},
    "hard": {"align": "hard"},
    "uniform": {"align": "uniform"},
    "transformer": {"architecture": "transformer", "layers": 2},
    "shared": {"share_embeddings": "all"},
    "separate": {"share_embeddings": "none"},
}


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(TEXTS * 3, size=60)


def make(tokenizer, kind):
    torch.manual_seed(3)
    return Translator(dataclasses.replace(SMALL, **KINDS[kind]), tokenizer, tokenizer).eval()


def outputs(model, texts, **options):
    return [[(t.text, round(t.score, 4)) for t in found] for found in model.translate(texts, **options)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_equals_its_sentences_one_by_one(tokenizer, kind):
    model = make(tokenizer, kind)
    together = outputs(model, TEXTS, beam=3, nbest=2, max_length=8)
    assert together == [outputs(model, [text], beam=3, nbest=2, max_length=8)[0] for text in TEXTS]


@pytest.mark.parametrize("store", ["float32", "float16", "int8"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_model_folder_copied_elsewhere_translates_the_same(tokenizer, kind, store, tmp_path):
    model = make(tokenizer, kind)
    model.save(tmp_path / "model", metrics={"bleu": 1.0}, card="# A card\n", store=store)
    shutil.copytree(tmp_path / "model", tmp_path / "elsewhere")
    shutil.rmtree(tmp_path / "model")
    loaded = Translator.load(tmp_path / "elsewhere", device="cpu")
    assert loaded.config == model.config
    weights = dict(loaded.named_parameters())
    for name, weight in model.named_parameters():
        rounding = {"float32": 0.0, "float16": 1e-3, "int8": 0.005}[store] * weight.abs().max().item()
        assert (weights[name] - weight).abs().max() <= rounding, name
    if store == "float32":
        assert outputs(loaded, TEXTS, max_length=8) == outputs(model, TEXTS, max_length=8)
    assert json.loads((tmp_path / "elsewhere" / "metrics.json").read_text()) == {"bleu": 1.0}
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".")], "no draft is left"


def test_saving_again_replaces_the_folder(tokenizer, tmp_path):
    make(tokenizer, "plain").save(tmp_path / "model")
    make(tokenizer, "rnnsearch").save(tmp_path / "model")
    assert Translator.load(tmp_path / "model", device="cpu").config.architecture == "rnnsearch"


def test_a_translation_carries_its_attention(tokenizer):
    model = make(tokenizer, "rnnsearch")
    (translation,) = model.translate(["a dog is running ."], max_length=6)[0]
    trace = translation.trace
    assert trace.source[-1] == "</s>"
    assert len(trace.weights) == len(trace.target)
    assert all(sum(row) == pytest.approx(1, abs=1e-4) for row in trace.weights)
    assert make(tokenizer, "plain").translate(["a dog"], max_length=6)[0][0].trace is None


def test_unknown_words_are_replaced_through_the_attention(monkeypatch):
    words = Tokenizer.train(["the dog sees the cat"] * 3, kind="word", size=30)
    model = make(words, "rnnsearch")
    weights = torch.tensor([[0.1, 0.8, 0.1], [0.7, 0.2, 0.1], [0.0, 0.1, 0.9]])
    hypothesis = Hypothesis([words.encode("the")[0], UNKNOWN], [-1.0, -1.0, -1.0], -1.0, True, weights)
    monkeypatch.setattr(model, "search", lambda *args, **options: [[hypothesis]])
    ((plain,),) = model.translate(["snark dog"])
    ((replaced,),) = model.translate(["snark dog"], replace_unknown=True)
    assert plain.text == "the ⁇"
    assert replaced.text == "the snark"


def test_translating_leaves_the_mode_as_it_was(tokenizer):
    model = make(tokenizer, "rnnsearch").train()
    first = outputs(model, TEXTS, max_length=6)
    assert model.training
    assert first == outputs(model, TEXTS, max_length=6), "dropout must be off"


def test_wrong_calls_are_explained(tokenizer, as_a_user):
    model = make(tokenizer, "rnnsearch")
    with pytest.raises(OptionError, match=r"list of texts"):
        model.translate("a dog")
    with pytest.raises(OptionError, match="nbest=6"):
        model.translate(["a dog"], nbest=6)
    with pytest.raises(OptionError, match="the encoder gives 20 and the decoder 10"):
        Translator(dataclasses.replace(SMALL, architecture="luong", score="dot"), tokenizer, tokenizer)
    with pytest.raises(OptionError, match="Coverage is for rnnsearch and luong; the architecture is transformer"):
        Translator(dataclasses.replace(SMALL, architecture="transformer", coverage=True), tokenizer, tokenizer)
    other = Tokenizer.train(["quite other words here"] * 3, size=60)
    with pytest.raises(OptionError, match="one joint vocabulary"):
        Translator(dataclasses.replace(SMALL, share_embeddings="all"), tokenizer, other)


def test_what_is_not_a_model_is_explained(tokenizer, tmp_path):
    with pytest.raises(ModelError, match="is not a model folder"):
        Translator.load(tmp_path)
    model = make(tokenizer, "rnnsearch")
    model.save(tmp_path / "m")
    config = tmp_path / "m" / "config.json"
    good = config.read_text()
    config.write_text("{")
    with pytest.raises(ModelError, match=r"config\.json cannot be read"):
        Translator.load(tmp_path / "m")
    config.write_text(good.replace('"translator"', '"captioner"'))
    with pytest.raises(ModelError, match="holds a captioner, not a translator"):
        Translator.load(tmp_path / "m")
    config.write_text(good.replace('"hidden"', '"hiden"'))
    with pytest.raises(OptionError, match="Did you mean 'hidden'"):
        Translator.load(tmp_path / "m")
    config.write_text(good.replace('"hidden": 10', '"hidden": 11'))
    with pytest.raises(ModelError, match="the config wants"):
        Translator.load(tmp_path / "m")
    config.write_text(good)
    (tmp_path / "m" / "model.safetensors").write_bytes(b"not weights at all")
    with pytest.raises(ModelError, match="is damaged"):
        Translator.load(tmp_path / "m")
    with pytest.raises(ModelError, match="no shipped model named 'nowhere'"):
        load("nowhere")


def test_shipped_models_are_small_and_say_what_they_are():
    models = shipped_models()
    assert sum(model.mebibytes for model in models) <= 30
    for model in models:
        assert model.mebibytes <= 5, model.name
        assert model.summary, model.name
        measured = [model.metrics.get(name, 0) for name in ("test_bleu", "test_accuracy", "valid_beam_bleu4")]
        assert max(measured) > 0, model.name
