"""regard.train and regard.evaluate: recipes by file, name and keyword; where a training begins; what is refused."""

import tomllib

import pytest
import torch
from helpers.command_line import write_lines
from helpers.models import TEXTS, TRANSFORMER, small_captioner, small_translator

import regard
from regard.data.tokenizer import Tokenizer
from regard.errors import DataError, OptionError, RegardError
from regard.systems.plan import read_recipe
from regard.systems.pretrained import card_summary
from regard.training.recipes import recipe_names, recipe_toml


@pytest.fixture
def texts(tmp_path):
    lines = TEXTS * 6
    return {"source": write_lines(tmp_path / "a", lines), "target": write_lines(tmp_path / "b", lines)}


def test_keywords_replace_fields_of_a_recipe():
    recipe = read_recipe("babel-en-fr", {"train": {"epochs": 7}, "model": {"hidden": 31}})
    plain = read_recipe("babel-en-fr")
    assert recipe.system == "translate"
    assert (recipe.train.epochs, recipe.model.hidden) == (7, 31)
    assert recipe.data == plain.data
    assert "hidden" in recipe.given
    assert plain.train.epochs != 7
    assert read_recipe().system == "translate"


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_written_as_toml_reads_back(name, tmp_path):
    recipe = read_recipe(name)
    (tmp_path / "again.toml").write_text(recipe_toml(recipe), encoding="utf-8")
    again = read_recipe(tmp_path / "again.toml")
    assert (again.system, again.data, again.model, again.train) == (
        recipe.system,
        recipe.data,
        recipe.model,
        recipe.train,
    )


def test_wrong_keywords_are_explained(tmp_path, texts, as_a_user):
    out = tmp_path / "run"
    for options, says in (
        (
            {"recipe": "babel-en-fr", "train": {"epochs": 0}},
            r"babel-en-fr.toml \[train\]: epochs must be a whole number",
        ),
        ({"recipe": "babel-en-fr", "train": {"epohs": 1}}, "Did you mean 'epochs'"),
        ({"model": {"architecture": "rnsearch"}}, "Did you mean 'rnnsearch'"),
        ({"recipe": read_recipe("babel-en-fr"), "train": {"epochs": 1}}, "A Recipe is complete"),
        (
            {"data": texts, "start_from": small_captioner()},
            "system 'translate'; the model to start from is of 'caption'",
        ),
        ({}, "Say what to train on"),
    ):
        with pytest.raises(OptionError, match=says):
            regard.train(**options, out=out, progress=False)
    assert not (out / "model").exists()


def test_a_model_to_start_from_keeps_its_sizes(tmp_path, texts):
    base = small_translator(Tokenizer.train(TEXTS * 3, size=45), dropout=0.3)
    before = {name: tensor.clone() for name, tensor in base.state_dict().items()}
    settings = {
        "out": tmp_path / "run",
        "data": texts,
        "train": {"epochs": 1, "learning_rate": 1e-6},
        "progress": False,
    }
    for wrong in ({"hidden": 512}, {"architecture": "luong"}, TRANSFORMER):
        with pytest.raises(OptionError, match=r"do not fit the changed .model. fields: .* -> "):
            regard.train(**settings, start_from=base, model=wrong)
    trained = regard.train(**settings, start_from=base, model={"dropout": 0.4})
    assert trained.folder == tmp_path / "run" / "model"
    assert not trained.interrupted
    assert (trained.model.config.hidden, trained.model.config.dropout) == (10, 0.4)
    recipe = tomllib.loads((tmp_path / "run" / "recipe.toml").read_text())
    assert (recipe["model"]["hidden"], recipe["model"]["dropout"]) == (10, 0.4)
    loaded = regard.load(tmp_path / "run", device="cpu")
    assert loaded.config == trained.model.config
    for name, tensor in loaded.state_dict().items():
        torch.testing.assert_close(tensor, before[name], atol=1e-3, rtol=0, msg=name)
    with pytest.raises(OptionError, match="already contains a run"):
        regard.train(**settings, start_from=tmp_path / "run")
    again = regard.train(**settings, start_from=tmp_path / "run", overwrite=True)
    assert again.model.config.hidden == 10


@pytest.mark.parametrize("model", [{}, {"dropout": 0.4}])
def test_a_model_does_not_claim_the_scores_of_the_one_that_it_started_from(tmp_path, texts, model):
    base = small_translator(Tokenizer.train(TEXTS * 3, size=45), dropout=0.3)
    measured = {"attention_measured": "As a word alignment: error rate 0.1.", "test_bleu": 48.4}
    base.save(tmp_path / "base", metrics=measured, card="# base\n\nLearned from old letters. BLEU 48.4.\n")
    settings = {"data": texts, "train": {"epochs": 1}, "model": model, "progress": False}
    trained = regard.train(out=tmp_path / "run", start_from=tmp_path / "base", **settings)
    loaded = regard.load(trained.folder, device="cpu")
    for each in (trained.model, loaded):
        assert "attention_measured" not in each.metrics
        assert card_summary(each.card).startswith(f"This model was trained from {tmp_path / 'base'} on other data")
        assert "Its scores are not those of this model.\n\n# base\n\nLearned from old letters." in each.card
    assert loaded.metrics.get("test_bleu") != 48.4


def test_a_folder_of_the_user_is_refused_before_the_data_are_read(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "thesis.py").write_text("years of work")
    missing = {"source": str(tmp_path / "no"), "target": str(tmp_path / "no")}
    with pytest.raises(DataError, match="model is not replaced, because it holds files that regard did not write"):
        regard.train(out=tmp_path, data=missing, progress=False)
    assert [path.name for path in tmp_path.rglob("*")] == ["model", "thesis.py"]


SMALL = {"embedding": 8, "hidden": 8}


@pytest.mark.parametrize(
    ("limit", "says"),
    [
        (
            {"minutes": 1e-5, "epochs": 3},
            "Stopped by train.minutes = 1e-05 in epoch 1 of 3. Its schedule had not ended: choose fewer "
            "--train.epochs, or --train.schedule_by clock.\n",
        ),
        (
            {"minutes": 1e-5, "schedule_by": "clock", "epochs": 3},
            "Stopped by train.minutes = 1e-05 in epoch 1 of 3.\n",
        ),
        ({"patience": 1, "epochs": 9, "learning_rate": 1e-9}, "Stopped by train.patience = 1 in epoch 2 of 9.\n"),
        ({"minutes": 9.0, "patience": 1, "epochs": 1}, ""),
    ],
)
def test_a_training_says_which_limit_ended_it(limit, says, tmp_path, texts, capsys):
    trained = regard.train(data=texts, model=SMALL, train=limit, out=tmp_path / "run")
    assert "".join(line for line in capsys.readouterr().err.splitlines(True) if "Stopped" in line) == says
    assert says.startswith(f"Stopped {trained.metrics.get('stopped')}." if says else "")
    assert ("stopped" in trained.metrics) == bool(says)


def test_a_failed_training_leaves_nothing_of_its_own_behind(tmp_path, texts):
    uneven = texts | {"target": write_lines(tmp_path / "c", TEXTS)}
    missing = texts | {"target": str(tmp_path / "nowhere")}
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").touch()
    (tmp_path / "locked").mkdir()
    (tmp_path / "locked" / ".lock").touch()
    before = {path for path in tmp_path.rglob("*") if "nowhere" not in path.name}
    for data, model in ((uneven, SMALL), (missing, SMALL), (texts, {"score": "json:nothing"})):
        for out in ("new", "deep/new", "empty", "other", "locked", "other/new"):
            with pytest.raises(RegardError):
                regard.train(data=data, model=model, out=tmp_path / out, progress=False)
            assert set(tmp_path.rglob("*")) - before <= {tmp_path / "other" / ".lock"}, out
    assert before <= set(tmp_path.rglob("*"))


def test_models_are_evaluated_by_name_folder_or_object(tmp_path):
    model = small_translator()
    model.save(tmp_path / "m")
    options = {"world": "babel:en-fr", "count": 3, "beam": 1, "max_length": 4}
    first, second = regard.evaluate(model, **options), regard.evaluate(tmp_path / "m", **options)
    assert (first.model, second.model) == ("Translator", str(tmp_path / "m"))
    assert first.outputs == second.outputs
    with pytest.raises(OptionError, match=r"no field 'wrld'\. Did you mean 'world'"):
        regard.evaluate(model, wrld="babel:en-fr")
    with pytest.raises(OptionError, match="already on the device cpu"):
        regard.evaluate(model, device="cpu", **options)
    with pytest.raises(OptionError, match="device must be such as 'cpu'"):
        regard.evaluate(tmp_path / "m", device="gpu", **options)


@pytest.mark.parametrize("name", ["hansards-en-fr", "fa-en", "ptb-lstmn", "imdb-han", "flickr8k-soft", "mnist-lenet"])
def test_a_packaged_recipe_without_its_data_explains_how_it_is_used(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((DataError, OptionError), match=f"The recipe is used like this: regard train {name} --data"):
        regard.train(name, out=tmp_path / "run")


def test_an_error_in_data_that_was_given_does_not_repeat_the_usage_of_the_recipe(tmp_path):
    with pytest.raises(DataError) as caught:
        regard.train("ptb-lstmn", out=tmp_path / "run", data={"folder": str(tmp_path)})
    assert "The recipe is used" not in str(caught.value)
