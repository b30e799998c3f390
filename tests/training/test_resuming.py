"""A run that is killed or interrupted, and resumed, is what it would have been: bit by bit, for every system."""

import os
import shutil
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import torch
from helpers.runs import SYSTEMS, comparable, same_parameters, small_recipe, watch_losses

from regard.errors import OptionError
from regard.files import checksum
from regard.systems.run import train
from regard.training import checkpoints
from regard.training.checkpoints import read_checkpoint, step_files
from regard.training.divergence import Divergence


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory):
    """A run without interruption, trained once for each kind: the result, its losses and its folder."""

    @cache
    def run(kind: str):
        folder, losses = tmp_path_factory.mktemp(kind.replace(" ", "-")), {}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Divergence, "update", watch_losses(losses))
            trained = train(small_recipe(kind, folder / "data"), out=folder / "run", progress=False)
        return trained, losses, folder

    return run


def newest(run):
    return read_checkpoint(step_files(run / "checkpoints")[0])


def kill_and_resume(kind, steps, data, out, monkeypatch):
    """Train, die after these numbers of updates, and go on each time: the result and all losses."""
    losses: dict[int, float] = {}
    original = Divergence.update
    for step in steps:
        monkeypatch.setattr(Divergence, "update", watch_losses(losses, stop_at=step))
        with pytest.raises(MemoryError, match="killed"):
            train(small_recipe(kind, data), out=out, resume=True, progress=False)
        monkeypatch.setattr(Divergence, "update", original)
        assert sorted(losses) == list(range(1, step + 1))
    monkeypatch.setattr(Divergence, "update", watch_losses(losses))
    return train(out=out, resume=True, progress=False), losses


@pytest.mark.parametrize("kind", SYSTEMS)
def test_every_system_goes_on_exactly_where_it_was_killed(kind, whole_run, tmp_path, monkeypatch):
    whole, losses, folder = whole_run(kind)
    steps = whole.metrics["steps"]
    assert steps >= 6
    # A captioner logs some metrics only at the beginning: they have to survive being killed twice.
    when = [steps // 2 + 1, steps - 1] if kind == "caption" else [steps // 2 + 1]
    resumed, again = kill_and_resume(kind, when, folder / "data", tmp_path / "run", monkeypatch)
    assert again == losses
    assert comparable(resumed.metrics) == comparable(whole.metrics)
    assert same_parameters(whole.model, resumed.model)
    first, second = newest(folder / "run"), newest(tmp_path / "run")
    assert same_parameters(first["state_dict"], second["state_dict"])
    for name in ("epoch", "global_step", "plateau", "best", "failures", "precision"):
        assert first[name] == second[name], name
    assert torch.equal(first["random"]["cpu"], second["random"]["cpu"])


ANOTHER = """
import sys
from pathlib import Path
import torch
from helpers.runs import SYSTEMS, small_recipe
from regard.files import checksum
from regard.systems.run import train

torch.set_num_threads(1)
for kind in SYSTEMS:
    place = Path(sys.argv[1]) / kind.replace(" ", "-")
    workers = {"workers": 2} if kind == "translate" else {}
    trained = train(small_recipe(kind, place / "data", **workers), out=place / "run", progress=False)
    print(kind, checksum(trained.folder / "model.safetensors"), sep=",", flush=True)
"""


def test_another_process_trains_the_same_models_with_any_number_of_workers(whole_run, tmp_path):
    """With another order of sets, and, where there are workers, two of them."""
    other = "1" if os.environ.get("PYTHONHASHSEED") == "0" else "0"
    path = os.pathsep.join([str(Path(__file__).parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-W", "ignore", "-c", ANOTHER, str(tmp_path)]
    environment = os.environ | {"PYTHONHASHSEED": other, "PYTHONPATH": path}
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    found = dict(line.split(",") for line in said.splitlines())
    assert found == {kind: checksum(whole_run(kind)[0].folder / "model.safetensors") for kind in SYSTEMS}


@pytest.mark.parametrize("when", ["before the first update", "at the end of an epoch", "in the last update"])
def test_a_run_goes_on_from_any_moment(when, whole_run, tmp_path, monkeypatch):
    whole, losses, folder = whole_run("translate")
    steps = whole.metrics["steps"]
    step = {"before the first update": 0, "at the end of an epoch": steps // 2, "in the last update": steps - 1}[when]
    resumed, again = kill_and_resume("translate", [step], folder / "data", tmp_path / "run", monkeypatch)
    assert again == losses
    assert comparable(resumed.metrics) == comparable(whole.metrics)
    assert same_parameters(whole.model, resumed.model)


def test_a_run_that_stopped_early_and_was_killed_before_it_was_saved_stays_stopped(tmp_path, monkeypatch):
    options = {"epochs": 9, "patience": 1, "learning_rate": 1e-12, "average_decay": 0.0}
    recipe = small_recipe("translate", tmp_path / "data", **options)
    whole = train(recipe, out=tmp_path / "whole", progress=False)
    assert whole.metrics["epochs"] == 2
    with monkeypatch.context() as patch:
        patch.setattr("regard.systems.run._tested", lambda *_: (_ for _ in ()).throw(MemoryError("killed")))
        with pytest.raises(MemoryError, match="killed"):
            train(recipe, out=tmp_path / "parts", progress=False)
    resumed = train(out=tmp_path / "parts", resume=True, progress=False)
    assert comparable(resumed.metrics) == comparable(whole.metrics)
    assert same_parameters(whole.model, resumed.model)
    patient = train(out=tmp_path / "parts", resume=True, train={"patience": 3}, progress=False)
    assert patient.metrics["epochs"] == 4, "the new patience counts from the best validation on"


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("at_end", [False, True], ids=["within an epoch", "at its end"])
def test_a_signal_saves_the_run_and_it_goes_on(signum, at_end, whole_run, tmp_path, monkeypatch, capsys):
    whole, _, folder = whole_run("translate")
    step = whole.metrics["steps"] // 2 - (0 if at_end else 1)
    out, original = tmp_path / "run", Divergence.update

    def interrupted(self, loss, done):
        if done == step:
            signal.raise_signal(signum)
        original(self, loss, done)

    monkeypatch.setattr(Divergence, "update", interrupted)
    handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    stopped = train(small_recipe("translate", folder / "data"), out=out, progress=False)
    assert handlers == [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    assert (stopped.signum, stopped.interrupted, whole.interrupted) == (signum, True, False)
    assert stopped.metrics["steps"] == step
    assert "stopping after this batch" in capsys.readouterr().err
    assert (out / "model" / "model.safetensors").is_file()
    resumed = train(out=out, resume=True, progress=False)
    assert not resumed.interrupted
    assert comparable(resumed.metrics) == comparable(whole.metrics)
    assert same_parameters(whole.model, resumed.model)


@pytest.mark.parametrize(("signum", "ends"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
def test_a_second_signal_ends_everything_at_once(signum, ends, whole_run, tmp_path, monkeypatch, capsys):
    whole, _, folder = whole_run("translate")
    original = Divergence.update

    def interrupted(self, loss, step):
        if step == 3:
            signal.raise_signal(signum)
            signal.raise_signal(signum)
        original(self, loss, step)

    with monkeypatch.context() as patch:
        patch.setattr(Divergence, "update", interrupted)
        with pytest.raises(ends) as ended:
            train(small_recipe("translate", folder / "data"), out=tmp_path / "run", progress=False)
    assert ends is KeyboardInterrupt or ended.value.code == 143
    assert f"step-2.ckpt. To continue: regard train --resume --out {tmp_path / 'run'}" in capsys.readouterr().err
    assert not (tmp_path / "run" / "model").exists()
    assert same_parameters(whole.model, train(out=tmp_path / "run", resume=True, progress=False).model)


def test_within_an_epoch_a_checkpoint_is_written_only_when_it_is_due(tmp_path, monkeypatch):
    written = []
    write = checkpoints.write_checkpoint

    def watched(content, path):
        written.append(content["global_step"])
        write(content, path)

    monkeypatch.setattr(checkpoints, "write_checkpoint", watched)
    recipe = small_recipe("tape", tmp_path, checkpoint_minutes=30.0, keep_checkpoints=1)
    steps = train(recipe, out=tmp_path / "run", progress=False).metrics["steps"]
    assert written == [0, steps // 2, steps]
    assert [file.name for file in step_files(tmp_path / "run" / "checkpoints")] == [f"step-{steps}.ckpt"]


def test_the_end_of_a_training_is_validated_whatever_the_interval_is(tmp_path):
    settings = {"epochs": 3, "validate_every": 2, "patience": 0}
    trained = train(small_recipe("translate", tmp_path / "data", **settings), out=tmp_path / "run", progress=False)
    seen = []
    rows = (tmp_path / "run" / "logs" / "metrics.csv").read_text(encoding="utf-8").splitlines()
    names = rows[0].split(",")
    for row in rows[1:]:
        values = dict(zip(names, row.split(","), strict=True))
        if values["valid_bleu"]:
            seen.append(int(values["epoch"]) + 1)
    assert seen == [2, 3]
    assert trained.metrics["epochs"] == 3
    settings = {"epochs": 5000, "validate_every": 5000, "minutes": 0.01, "patience": 0}
    stopped = train(small_recipe("translate", tmp_path / "data", **settings), out=tmp_path / "stopped", progress=False)
    assert stopped.metrics["stopped"].startswith("by train.minutes")
    assert "valid_bleu" in stopped.metrics


def test_a_run_is_not_resumed_with_fewer_epochs_than_it_has(whole_run, tmp_path):
    whole, _, folder = whole_run("translate")
    copied = tmp_path / "run"
    shutil.copytree(folder / "run", copied)
    with pytest.raises(OptionError, match=f"in epoch {whole.metrics['epochs']} already, and train.epochs = 1"):
        train(small_recipe("translate", folder / "data", epochs=1), out=copied, resume=True, progress=False)
