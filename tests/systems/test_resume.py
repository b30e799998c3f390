"""Going on with a run: its folder is enough, what contradicts it is refused, and what is changed is used."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
import torch
from helpers.command_line import refused, regard
from helpers.models import small_translator
from helpers.runs import same_parameters, small_recipe

from regard.errors import DataError, OptionError, RegardWarning
from regard.files import DRAFT, EARLIER_DRAFT, checksum, locked
from regard.systems.plan import read_recipe
from regard.systems.run import train
from regard.systems.translate.model import Translator
from regard.training.checkpoints import read_checkpoint, step_files
from regard.training.divergence import Divergence
from regard.training.run_folder import RunFolder


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of two epochs without patience or averages."""
    folder = tmp_path_factory.mktemp("finished")
    recipe = small_recipe("translate", folder / "data", patience=0, average_decay=0.0, checkpoint_minutes=30.0)
    return train(recipe, out=folder / "run", progress=False)


@pytest.fixture
def run(finished, tmp_path):
    """A copy of that run, in another place."""
    shutil.copytree(finished.folder.parent, tmp_path / "run")
    return tmp_path / "run"


def rates(run):
    return read_checkpoint(step_files(run / "checkpoints")[0])["optimizer"]["param_groups"][0]


def test_a_run_is_made_longer(finished, run, capsys):
    longer = train(out=run, resume=True, train={"epochs": 3}, progress=True)
    assert longer.metrics["steps"] == finished.metrics["steps"] * 3 // 2
    assert "Resuming with train.epochs 2 -> 3." in capsys.readouterr().err
    assert read_recipe(run / "recipe.toml").train.epochs == 3
    record = json.loads((run / "run.json").read_text())
    assert len(record["resumed"]) == 1
    assert longer.metrics["run"] == finished.metrics["run"], "how the run began"


def test_another_learning_rate_is_used_from_the_next_update_on(run):
    assert rates(run)["initial_lr"] == 0.01
    train(out=run, resume=True, train={"epochs": 3, "learning_rate": 0.002}, progress=False)
    assert rates(run)["initial_lr"] == pytest.approx(0.002)
    assert read_recipe(run / "recipe.toml").train.learning_rate == 0.002


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"model": {"hidden": 9}}, r"other settings: model\.hidden 8 -> 9\. Leave them out, or start another run"),
        ({"model": {"dropout": 0.4}}, r"model\.dropout 0\.2 -> 0\.4"),
        ({"data": {"vocabulary": 50}}, r"data\.vocabulary 60 -> 50"),
        ({"data": {"world": "babel:en-fr"}}, r"data\.world '' -> 'babel:en-fr'"),
        ({"train": {"seed": 5, "epochs": 4}}, r"train\.seed 1 -> 5\. .*A resumed run may change .*train\.epochs"),
        ({"train": {"label_smoothing": 0.3}}, r"train\.label_smoothing 0\.1 -> 0\.3"),
        ({"recipe": "babel-en-fr"}, r"model\.\w+ .* -> "),
        ({"recipe": "mnist-lenet"}, r"holds a run of the system 'translate'; the recipe is of 'recognize'"),
        ({"start_from": "en-fr"}, r"was started without a model to start from, not from en-fr"),
        ({"train": {"epochs": 1, "epohs": 2}}, "Did you mean 'epochs'"),
        ({"overwrite": True}, "not both"),
    ],
)
def test_what_contradicts_a_run_is_refused_with_the_difference(given, says, run):
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with pytest.raises(OptionError, match=says):
        train(out=run, resume=True, progress=False, **given)
    after = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert {path for path in after if path.name != ".lock"} == {path for path in before if path.name != ".lock"}
    assert all(after[path] == content for path, content in before.items())


def test_data_that_has_changed_is_refused_and_data_that_has_moved_is_not(finished, run, tmp_path):
    pairs = finished.metrics["run"]["data"]
    original = read_recipe(run / "recipe.toml").data.pairs
    assert pairs == {"pairs": checksum(original)}
    moved = tmp_path / "elsewhere.tsv"
    shutil.copy(original, moved)
    with moved.open("a") as stream:
        stream.write("one more\tpair\n")
    with pytest.raises(DataError, match="cannot continue, because its data has changed: pairs has the SHA-256"):
        train(out=run, resume=True, data={"pairs": str(moved)}, progress=False)
    shutil.copy(original, moved)
    resumed = train(out=run, resume=True, data={"pairs": str(moved)}, progress=False)
    assert same_parameters(resumed.model, finished.model)
    assert read_recipe(run / "recipe.toml").data.pairs == str(moved)


def test_a_run_with_relative_paths_says_where_it_was_started(tmp_path, monkeypatch):
    small_recipe("classify", tmp_path / "data")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    options = {"data": {"folder": "data", "train": "rows.jsonl", "held_out": 4}, "train": {"epochs": 1}}
    (tmp_path / "documents.toml").write_text('system = "classify"\n[model]\nembedding = 4\nhidden = 3\n')
    train("documents.toml", out="run", **options, progress=False)
    monkeypatch.chdir(tmp_path / "other")
    with pytest.raises(DataError, match=rf"The run was started in {tmp_path}: resume it there"):
        train(out="../run", resume=True, progress=False)


def test_a_folder_that_holds_a_run_is_overwritten_only_when_asked(finished, run):
    recipe = read_recipe(run / "recipe.toml")
    with pytest.raises(OptionError, match=rf"already contains a run. Continue it: regard train --resume --out {run}\."):
        train(recipe, out=run, progress=False)
    again = train(recipe, out=run, overwrite=True, progress=False)
    assert same_parameters(again.model, finished.model)
    assert "resumed" not in json.loads((run / "run.json").read_text())


def test_an_overwritten_run_leaves_nothing_to_resume_from(run, monkeypatch):
    """Killed in its first update, the new run goes on from its own beginning and not from the old checkpoints."""

    def killed(*_):
        raise MemoryError

    recipe = read_recipe(run / "recipe.toml", {"train": {"seed": 7}})
    with monkeypatch.context() as patch:
        patch.setattr(Divergence, "update", killed)
        with pytest.raises(MemoryError):
            train(recipe, out=run, overwrite=True, progress=False)
    assert [path.name for path in step_files(run / "checkpoints")] == ["step-0.ckpt"]
    assert not (run / "model").exists()
    assert not (run / "checkpoints" / "best.ckpt").exists()
    assert train(out=run, resume=True, progress=False).metrics["seed"] == 7


@pytest.mark.parametrize("name", ["recipe.toml", "test.tsv", "checkpoints"])
def test_files_of_the_user_are_not_replaced_by_a_run(name, tmp_path):
    (tmp_path / name).write_text("mine")
    with pytest.raises(DataError, match=rf"holds {name}, which no run of regard wrote and a run would replace"):
        train(small_recipe("tape", tmp_path / "data"), out=tmp_path, progress=False)
    assert (tmp_path / name).read_text() == "mine"


def test_a_run_whose_record_is_lost_keeps_its_checkpoints(run):
    kept = step_files(run / "checkpoints")
    for damaged in ("{}", '{"data": {}}', '{"data": {}, "notes": 1}', "[]"):
        (run / "run.json").write_text(damaged)
        with pytest.raises(DataError, match=r"run\.json does not describe a run"):
            train(out=run, resume=True, progress=False)
    assert step_files(run / "checkpoints") == kept


@pytest.mark.parametrize("end", [DRAFT, EARLIER_DRAFT])
def test_a_run_removes_its_own_drafts_and_no_other_files(end, tmp_path):
    folder = RunFolder(tmp_path)
    folder.checkpoints.mkdir()
    (tmp_path / f".model.k3dj_2x9{end}").mkdir()
    (tmp_path / f".model.k3dj_2x9{end}" / "config.json").write_text("half")
    (tmp_path / f".recipe.toml.k3dj_2x9{end}").write_text("half")
    (folder.checkpoints / f".step-8.ckpt.k3dj_2x9{end}").write_text("half")
    others = {tmp_path / f".{name}{end}" for name in ("notes", "notes.k3dj_2x9", "model.old", "recipe.toml.mine")}
    others.add(folder.checkpoints / f".notes.of-mine{end}")
    for path in others:
        path.write_text("mine")
    folder.clean()
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == others
    assert sorted(path for path in tmp_path.iterdir() if path.is_dir()) == [folder.checkpoints]


def test_there_must_be_a_run_to_resume(tmp_path):
    with pytest.raises(DataError, match=r"nowhere holds no run to resume\. Say what to train"):
        train(out=tmp_path / "nowhere", resume=True, progress=False)
    assert not (tmp_path / "nowhere").exists()
    recipe = small_recipe("tape", tmp_path / "data", epochs=1)
    assert train(recipe, out=tmp_path / "new", resume=True, progress=False).metrics["epochs"] == 1


def test_a_run_from_a_trained_model_goes_on_without_it(tmp_path, monkeypatch):
    small_translator().save(tmp_path / "base")
    recipe = small_recipe("translate", tmp_path / "data")
    options = {"data": recipe.data.to_dict(), "train": recipe.train.to_dict(), "progress": False}
    whole = train(out=tmp_path / "whole", start_from=tmp_path / "base", **options)
    original = Divergence.update

    def killed(self, loss, step):
        if step == 3:
            raise MemoryError
        original(self, loss, step)

    with monkeypatch.context() as patch:
        patch.setattr(Divergence, "update", killed)
        with pytest.raises(MemoryError):
            train(out=tmp_path / "run", start_from=tmp_path / "base", **options)
    shutil.rmtree(tmp_path / "base")
    resumed = train(out=tmp_path / "run", resume=True, progress=False)
    assert resumed.model.config.hidden == 10
    assert same_parameters(resumed.model, whole.model)


@pytest.mark.parametrize("given", ["folder", "object"])
def test_a_run_that_ended_before_it_began_starts_from_the_same_model_again(given, tmp_path, monkeypatch):
    base = small_translator(dropout=0.0)
    base.save(tmp_path / "base")
    recipe = small_recipe("translate", tmp_path / "data", epochs=1)
    start_from = tmp_path / "base" if given == "folder" else base
    options = {"data": recipe.data.to_dict(), "train": recipe.train.to_dict(), "start_from": start_from}
    with monkeypatch.context() as patch:
        patch.setattr("regard.training.fit.fit", lambda *_, **__: pytest.fail("killed", pytrace=False))
        with pytest.raises(pytest.fail.Exception, match="killed"):
            train(out=tmp_path / "run", model={"dropout": 0.4}, progress=False, **options)
    again = {} if given == "folder" else {"start_from": base}
    resumed = train(out=tmp_path / "run", resume=True, progress=False, **again)
    assert resumed.model.config.dropout == 0.4


def test_two_trainings_into_one_folder_are_refused(run):
    with (
        locked(run / ".lock"),
        pytest.raises(DataError, match=rf"Another training is writing to {run}\. Wait for it, or choose another"),
    ):
        train(out=run, resume=True, progress=False)


HOLDING = """
import os, sys, time
from regard.files import locked
with locked(sys.argv[1]):
    worker = os.fork()
    if worker == 0:
        time.sleep(3600)
        os._exit(0)
    print(worker, flush=True)
    time.sleep(3600)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_killed_training_leaves_no_lock_though_its_workers_live_on(tmp_path):
    command = [sys.executable, "-c", HOLDING, str(tmp_path / "run" / ".lock")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holding:
        worker = int(holding.stdout.readline())
        with pytest.raises(DataError, match="Another training"), RunFolder(tmp_path / "run").locked():
            pass
        holding.kill()
        holding.wait()
        holding.stdout.close()
    # On a busy machine, the worker may not have had its turn to let go of the lock yet.
    deadline = time.monotonic() + 600
    try:
        while True:
            try:
                with RunFolder(tmp_path / "run").locked():
                    break
            except DataError:
                assert time.monotonic() < deadline, "the worker holds the lock of the training"
                time.sleep(0.1)
    finally:
        os.kill(worker, signal.SIGKILL)


def test_a_run_a_checkpoint_and_a_model_are_all_models(finished, run):
    expected = Translator.load(run / "model", device="cpu")
    for place in (run, run / "checkpoints" / "best.ckpt"):
        found = Translator.load(place, device="cpu")
        assert same_parameters(found, expected)
        assert found.translate("3 one").text == expected.translate("3 one").text
    shutil.rmtree(run / "model")
    with pytest.warns(RegardWarning, match=r"run has no finished model; best\.ckpt is used"):
        assert same_parameters(Translator.load(run, device="cpu"), expected)
    (run / "checkpoints" / "best.ckpt").unlink()
    with pytest.warns(RegardWarning, match=r"step-\d+\.ckpt is used"):
        Translator.load(run, device="cpu")
    (run / "checkpoints" / "config.json").unlink()
    with pytest.raises(Exception, match=r"needs .*config\.json beside it"):
        Translator.load(step_files(run / "checkpoints")[0], device="cpu")


def test_the_command_line_goes_on_and_refuses(run):
    said = regard("train", "--resume", "--out", run, "--train.epochs", 3, check=True)
    assert f"Wrote {run / 'model'}" in said.stdout
    assert "model.hidden 8 -> 16" in refused("train", "--resume", "--out", run, "--model.hidden", 16)
    assert "already contains a run" in refused("train", "--data.world", "babel:en-fr", "--out", run)
    assert "holds no run to resume" in refused("train", "--resume", "--out", run / "nowhere")
    shutil.rmtree(run / "model")
    shown = regard("translate", "--model", run, "3 one", check=True)
    assert f"regard: {run} has no finished model; best.ckpt is used.\n" in shown.stderr


@pytest.mark.parametrize(("signum", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_status_of_a_command_says_that_it_was_interrupted(run, signum, status, monkeypatch):
    original = Divergence.update

    def interrupted(self, *given):
        signal.raise_signal(signum)
        original(self, *given)

    monkeypatch.setattr(Divergence, "update", interrupted)
    ended = regard("train", "--resume", "--out", run, "--train.epochs", 9)
    assert ended.returncode == status
    said = f"Interrupted. The best model so far is in {run / 'model'}. To continue: regard train --resume"
    assert said in ended.stdout


def test_a_run_records_how_it_was_made(finished):
    record = json.loads((finished.folder.parent / "run.json").read_text())
    stored = json.loads((finished.folder / "metrics.json").read_text())
    assert stored["run"] == {name: value for name, value in record.items() if name != "notes"}
    assert record["seed"] == 1
    assert record["versions"]["torch"] == torch.__version__
    assert set(record["versions"]) >= {"regard", "python", "torch", "lightning-fabric", "numpy", "tokenizers"}
    assert record["command"]
    assert len(record["data"]["pairs"]) == 64
