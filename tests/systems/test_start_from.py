"""Training by name: what a run leaves behind, what it may start from, and what Ctrl-C does."""

import json
import signal

import pytest
import torch
from helpers.models import small_captioner, small_classifier, small_translator
from helpers.runs import comparable

import regard
from regard.errors import ModelError, OptionError
from regard.systems.plan import _adapted, base_name, read_recipe
from regard.systems.run import train
from regard.systems.translate.training import TranslationTask

PAIRS = [(f"a {word} {index} .", f"{index} {word} !") for index, word in enumerate(["dog", "house", "sky"] * 8)]


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS), encoding="utf-8")
    return {"pairs": str(path), "vocabulary": 60, "held_out": 2}


SMALL = {"embedding": 12, "hidden": 10}
SHORT = {"epochs": 1, "max_tokens": 60}


def recipe_with(**model):
    return read_recipe(None, {"model": model})


def test_the_recipe_of_a_run_can_be_trained_again_to_the_same_model(tmp_path, data):
    first = train(out=tmp_path / "first", data=data, model=SMALL, train=SHORT, progress=False)
    assert first.folder == tmp_path / "first" / "model"
    assert not first.interrupted
    read = read_recipe(tmp_path / "first" / "recipe.toml")
    expected = read_recipe(None, {"data": data, "model": SMALL, "train": SHORT})
    assert (read.data, read.model, read.train) == (expected.data, expected.model, expected.train)
    again = train(tmp_path / "first" / "recipe.toml", out=tmp_path / "again", progress=False)
    second = again.model.state_dict()
    assert all(torch.equal(tensor, second[name]) for name, tensor in first.model.state_dict().items())
    assert comparable(again.metrics) == comparable(first.metrics)
    assert json.loads((again.folder / "metrics.json").read_text()) == again.metrics
    assert not again.model.training


def test_ctrl_c_ends_the_training_after_this_batch_and_saves_the_model(tmp_path, data, monkeypatch, capsys):
    loss, handler = TranslationTask.loss, signal.getsignal(signal.SIGINT)

    def interrupted(self, batch):
        if self.step == 1:
            signal.raise_signal(signal.SIGINT)
        return loss(self, batch)

    monkeypatch.setattr(TranslationTask, "loss", interrupted)
    trained = train(out=tmp_path, data=data, model=SMALL, train=SHORT | {"epochs": 9}, progress=False)
    assert trained.interrupted
    assert trained.metrics["steps"] == 2
    assert "Ctrl-C: stopping after this batch, to save the run" in capsys.readouterr().err
    assert isinstance(regard.load(tmp_path).translate("a dog 3 .").text, str)
    assert signal.getsignal(signal.SIGINT) is handler, "Ctrl-C does again what it did before"


def test_a_second_ctrl_c_ends_the_training_at_once(tmp_path, data, monkeypatch):
    def interrupted(self, batch):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(TranslationTask, "loss", interrupted)
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        train(out=tmp_path, data=data, model=SMALL, train=SHORT, progress=False)
    assert not (tmp_path / "model").exists()


def test_without_fields_a_recipe_takes_the_config_of_the_model_it_starts_from():
    base = small_translator(cell="lstm")
    recipe, model = _adapted(base, recipe_with())
    assert recipe.model == base.config
    assert model is base
    recipe, model = _adapted(base, recipe_with(cell="lstm", hidden=10))
    assert recipe.model == base.config
    assert model is base, "the fields say nothing new"


def test_a_changed_dropout_is_used_with_the_same_parameters():
    base = small_translator(cell="lstm")
    recipe, model = _adapted(base, recipe_with(dropout=0.45, state_dropout=0.3))
    assert (recipe.model.dropout, recipe.model.state_dropout, recipe.model.hidden) == (0.45, 0.3, 10)
    assert model.config == recipe.model
    assert model is not base
    assert base.config.dropout == 0.2
    assert model.source_tokenizer is base.source_tokenizer
    theirs = base.state_dict()
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in model.state_dict().items())
    assert {module.p for module in model.modules() if isinstance(module, torch.nn.Dropout)} >= {0.45, 0.3}


def test_a_model_of_any_precision_has_a_name():
    names = {base_name(small_translator().to(kind)) for kind in (torch.float32, torch.bfloat16, torch.float64)}
    assert len(names) == 3
    assert names == {base_name(small_translator().to(kind)) for kind in (torch.float32, torch.bfloat16, torch.float64)}


def test_a_changed_size_is_refused_with_the_difference():
    with pytest.raises(OptionError, match=r"do not fit the changed \[model\] fields: hidden 10 -> 16\. Remove"):
        _adapted(small_translator(), recipe_with(hidden=16))
    with pytest.raises(
        OptionError, match=r"hidden 10 -> 16, dropout 0\.2 -> 0\.1|dropout 0\.2 -> 0\.1, hidden 10 -> 16"
    ):
        _adapted(small_translator(), recipe_with(hidden=16, dropout=0.1))
    with pytest.raises(OptionError, match="cell 'gru' -> 'lstm'"):
        _adapted(small_translator(), recipe_with(cell="lstm"))
    captions = read_recipe("scenes-soft", {"model": {"coordinates": False}})
    with pytest.raises(OptionError, match="attention_dim 5 -> 64"):
        _adapted(small_captioner(), captions)


def test_two_matrices_are_never_tied_into_one_in_silence():
    separate, tied = small_translator(share_embeddings="none"), small_translator(share_embeddings="target")
    with pytest.raises(OptionError, match="share_embeddings 'none' -> 'target'"):
        _adapted(separate, recipe_with(share_embeddings="target"))
    _, untied = _adapted(tied, recipe_with(share_embeddings="none"))
    assert untied.decoder.output.weight is not untied.decoder.embedding.weight
    assert torch.equal(untied.decoder.output.weight, tied.decoder.output.weight)


def test_fields_that_contradict_the_model_are_explained():
    transformer = small_translator(architecture="transformer", hidden=256, heads=2, feedforward_dim=24)
    with pytest.raises(OptionError, match=r"\[model\]: cell is for the architecture plain or rnnsearch or luong"):
        _adapted(transformer, recipe_with(cell="lstm"))


def test_a_model_of_another_system_is_refused(tmp_path):
    message = "trains a model of the system 'translate'; the model to start from is of 'recognize'"
    with pytest.raises(OptionError, match=message):
        train("babel-en-fr", out=tmp_path, start_from=small_classifier(), progress=False)
    assert not list(tmp_path.iterdir())


def test_training_continues_from_a_folder_with_another_dropout(tmp_path, data):
    base = small_translator()
    base.save(tmp_path / "base")
    options = {"data": data, "train": SHORT, "progress": False}
    trained = train(out=tmp_path / "run", model={"dropout": 0.0}, start_from=tmp_path / "base", **options)
    assert (trained.model.config.dropout, trained.model.config.hidden) == (0.0, 10)
    assert trained.model.source_tokenizer.vocabulary_hash == base.source_tokenizer.vocabulary_hash
    assert read_recipe(tmp_path / "run" / "recipe.toml").model == trained.model.config
    again = train(out=tmp_path / "again", start_from=trained.model, **options)
    assert again.model.config.dropout == 0.0
    with pytest.raises(ModelError, match="no folder and no shipped model named"):
        train(out=tmp_path / "no", start_from="nowhere", **options)


def test_a_complete_recipe_takes_no_more_fields(tmp_path):
    with pytest.raises(OptionError, match="A Recipe is complete"):
        train(read_recipe("babel-en-fr"), out=tmp_path, train={"epochs": 1})
