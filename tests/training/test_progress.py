"""The progress of a training: a bar on a terminal, a line per epoch elsewhere, and the logs of a run."""

import csv
import sys
from io import StringIO
from types import SimpleNamespace

import pytest
import torch
from helpers.runs import small_recipe, watch_losses
from rich.console import Console

from regard.errors import OptionError
from regard.systems.run import train
from regard.training import progress
from regard.training.divergence import Divergence
from regard.training.progress import Logs, TrainingBar
from regard.training.settings import TrainSettings
from regard.training.task import Task


def a_bar(console, *, score="valid_bleu", unit="tokens", epochs=3, steps=2, **metrics):
    """A bar of a task with these metrics."""
    task = type("Counting", (Task,), {"unit": unit})(TrainSettings(), epochs * steps)
    task.metrics = metrics
    return TrainingBar(score, task, epochs, steps, console=console)


def shown(console, losses, scores, epochs):
    """Show one loss for each step and one score for each validation, as they are given."""
    steps = len(losses) // epochs
    bar = a_bar(console, epochs=epochs, steps=steps)
    bar.task.metrics["tokens/s"] = 12345.6
    given = iter(losses)
    with bar:
        for epoch in range(epochs):
            bar.begin(epoch)
            for step in range(steps):
                bar.task.metrics["loss"] = next(given)
                bar.advance(step + 1)
            bar.validating()
            bar.validated(max(scores[: epoch + 1]))
            bar.end()


def test_without_a_terminal_each_epoch_is_one_line():
    written = StringIO()
    losses = [9.0, 4.0, 9.0, 2.0, 9.0, 3.0]
    shown(Console(file=written, width=40), losses, [10.0, 30.0, 20.0], epochs=3)
    # The loss is smoothed: 0.8 of the one before and 0.2 of the last of the epoch.
    assert written.getvalue().splitlines() == [
        "Epoch 1/3: loss 4.000  tokens/s 12,346  best bleu 10.00",
        "Epoch 2/3: loss 3.600  tokens/s 12,346  best bleu 30.00",
        "Epoch 3/3: loss 3.480  tokens/s 12,346  best bleu 30.00",
    ]


def test_on_a_terminal_a_bar_counts_the_steps_and_closes():
    written = StringIO()
    console = Console(file=written, force_terminal=True, width=120)
    shown(console, [3.0] * 8, [10.0, 20.0], epochs=2)
    text = written.getvalue()
    assert "Epoch 1/2" in text or "Epoch 2/2" in text
    assert "4/4" in text
    assert "best bleu 20.00" in text
    assert "Epoch 0" not in text
    assert "Epoch 3" not in text
    assert "Epoch 2/2:" not in text, "no line beside the bar"
    assert text.rstrip().endswith("\x1b[?25h"), "the cursor is shown again"


@pytest.mark.parametrize(
    ("score", "unit", "reward", "has_room"),
    [
        ("valid_bleu", "tokens", {}, True),
        ("valid_reward", "captions", {"reward": 0.25}, False),
        ("valid_log_likelihood", "tapes", {}, False),
    ],
)
def test_at_80_columns_no_number_is_cut(score, unit, reward, has_room):
    metrics = {"loss": 1.5, f"{unit}/s": 123456} | reward
    console = Console(file=StringIO(), force_terminal=True, width=80)
    bar, page = (
        a_bar(console, score=score, unit=unit, epochs=200, steps=15000, **metrics),
        Console(file=StringIO(), width=80),
    )
    with bar:
        bar.begin(99)
        bar.advance(12345)
        for happens in (lambda: bar.validated(12.5), bar.validating):
            happens()
            page.print(bar._progress.get_renderable())
    training, validating = page.file.getvalue().splitlines()
    for line in (training, validating):
        assert line.startswith("Epoch 100/200 ")
        assert " 12345/15000 0:00:00 " in line
        assert line.endswith(f"  best {score.removeprefix('valid_')} 12.50")
    assert " loss 1.500  " in training
    assert (f"{unit}/s 123,456" in training) == has_room, "the throughput is left out first"
    assert "validating" in validating


def test_the_metrics_of_a_step_are_read_only_now_and_then(monkeypatch):
    """Each reading waits for the GPU."""
    times = iter([0.0, 0.1, 0.4, 0.6])
    monkeypatch.setattr(progress, "time", SimpleNamespace(perf_counter=lambda: next(times)))
    metrics = {"loss": torch.tensor(2.0), "tokens/s": torch.tensor(5.0), "lr-AdamW": torch.tensor(1.0)}
    bar = a_bar(Console(file=StringIO(), force_terminal=True), **metrics)
    shown = []

    class Recorder:
        """Takes the place of the bar."""

        def update(self, bar, **fields):
            shown.append((fields["completed"], fields["metrics"]))

    bar._progress, bar._bar = Recorder(), 0
    for step in range(4):
        bar.advance(step + 1)
        bar.task.metrics["loss"] = torch.tensor(1.0)
    first = "loss 2.000  tokens/s 5"
    assert shown == [(1, first), (2, first), (3, first), (4, "loss 1.800  tokens/s 5")]


def test_a_reward_is_shown_beside_the_loss():
    written = StringIO()
    bar = a_bar(Console(file=written), unit="captions", reward=torch.tensor(0.25))
    bar.begin(0)
    bar.end()
    assert written.getvalue() == "Epoch 1/3: reward 0.250\n"


def test_a_run_that_is_resumed_within_an_epoch_has_a_bar_and_its_best_score(tmp_path, monkeypatch):
    recipe = small_recipe("tape", tmp_path / "data")
    losses: dict[int, float] = {}
    with monkeypatch.context() as patch:
        patch.setattr(Divergence, "update", watch_losses(losses, stop_at=6))
        with pytest.raises(MemoryError):
            train(recipe, out=tmp_path / "run", progress=True)
    begun, begin = [], TrainingBar.begin
    monkeypatch.setattr(
        TrainingBar, "begin", lambda self, epoch: begun.append((epoch, self.best)) or begin(self, epoch)
    )
    train(out=tmp_path / "run", resume=True, progress=True)
    assert len(begun) == 1, "the rest of the second epoch"
    assert begun[0][0] == 1
    assert begun[0][1] < 0


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_log_has_a_column_for_each_metric_and_keeps_that_of_an_earlier_run(tmp_path):
    for _ in range(2):
        with Logs(tmp_path) as logs:
            logs.write({"loss": torch.tensor(2.5)}, step=20, epoch=0)
            logs.write({"loss": 1.5}, step=40, epoch=0)
            logs.write({"valid_bleu": 30.0}, step=50, epoch=0)
            logs.write({"loss": 0.5, "valid_bleu": 31.0}, step=60, epoch=1)
    expected = [("0", "19", "2.5", ""), ("0", "39", "1.5", ""), ("0", "49", "", "30.0"), ("1", "59", "0.5", "31.0")]
    for name in ("metrics.csv", "metrics-1.csv"):
        found = [
            tuple(row[column] for column in ("epoch", "step", "loss", "valid_bleu")) for row in rows(tmp_path / name)
        ]
        assert found == expected
    with Logs(tmp_path / "other", writes=False) as logs:
        logs.write({"loss": 1.0}, step=20, epoch=0)
    assert not (tmp_path / "other").exists()


def test_tensorboard_finds_the_curves_and_compares_runs_by_their_settings(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with Logs(tmp_path, "tensorboard", {"model.hidden": 8, "data.images": ("a", "b")}) as logs:
        logs.write({"loss": 2.5}, step=20, epoch=0)
        logs.compare({"valid_bleu": 30.0})
    found = EventAccumulator(str(tmp_path))
    found.Reload()
    assert set(found.Tags()["scalars"]) == {"loss", "epoch", "valid_bleu"}
    assert [(event.step, event.value) for event in found.Scalars("loss")] == [(19, 2.5)]
    assert "_hparams_/experiment" in found.summary_metadata


@pytest.mark.parametrize("logger", ["tensorboard", "wandb", "mlflow"])
def test_a_logger_that_is_missing_is_named_with_what_installs_it(logger, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, logger, None)
    says = rf"train.logger '{logger}' needs the package {logger}: pip install 'regard\[\w+\]'"
    with pytest.raises(OptionError, match=says), Logs(tmp_path, logger):
        pass
    with Logs(tmp_path, "csv") as logs:
        logs.write({"loss": 1.0}, step=20, epoch=0)
        logs.compare({"valid_bleu": 30.0})
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.csv"]


@pytest.mark.filterwarnings("ignore")
def test_weights_and_biases_keeps_a_run_without_a_network(tmp_path, monkeypatch):
    pytest.importorskip("wandb", reason="it is an extra of regard")
    monkeypatch.setenv("WANDB_MODE", "offline")
    with Logs(tmp_path / "my-run" / "logs", "wandb", {"model.hidden": 8}) as logs:
        logs.write({"loss": 2.5, "tokens/s": 9.0}, step=20, epoch=0)
        logs.compare({"valid_bleu": 30.0})
    assert list((tmp_path / "my-run" / "logs" / "wandb").glob("offline-run-*/*.wandb"))


@pytest.mark.filterwarnings("ignore")
def test_mlflow_keeps_a_run_in_a_database(tmp_path):
    mlflow = pytest.importorskip("mlflow", reason="it is an extra of regard")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'mlflow.db'}")
    with Logs(tmp_path / "my-run" / "logs", "mlflow", {"model.hidden": 8}) as logs:
        logs.write({"loss": 2.5, "tokens/s": 9.0}, step=20, epoch=0)
        logs.compare({"valid_bleu": 30.0})
    (run,) = mlflow.search_runs(output_format="list")
    assert run.info.run_name == "my-run"
    assert run.data.params == {"model.hidden": "8"}
    assert run.data.metrics == {"loss": 2.5, "tokens/s": 9.0, "epoch": 0.0, "best_valid_bleu": 30.0}
