"""The progress of a training: a bar on a terminal, a line per epoch elsewhere."""

from io import StringIO
from types import SimpleNamespace

import lightning.pytorch as lightning
import pytest
import torch
from helpers.runs import small_recipe, watch_losses
from rich.console import Console
from torch import nn

from regard.systems.run import train
from regard.training import progress
from regard.training.divergence import StopWhenDiverged
from regard.training.progress import TrainingBar
from regard.training.settings import TrainSettings
from regard.training.task import Task

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*LeafSpec.*:FutureWarning", "ignore:.*isinstance.treespec.*", "ignore:.*does not have many workers"
)


class Scripted(Task):
    """Logs one loss per step and one score per validation, as they are given."""

    unit = "tokens"

    def __init__(self, losses, scores):
        super().__init__(TrainSettings(), total_steps=len(losses))
        self.weight = nn.Parameter(torch.zeros(1))
        self.losses, self.scores = iter(losses), iter(scores)

    def training_step(self, batch, index):
        self.log("loss", next(self.losses))
        self.log("tokens/s", 12345.6)
        return self.weight.sum()

    def validation_step(self, batch, index):
        self.log("valid_bleu", next(self.scores))


def fitted(console: Console, tmp_path, losses, scores, epochs: int) -> None:
    trainer = lightning.Trainer(
        accelerator="cpu",
        max_epochs=epochs,
        callbacks=[TrainingBar("valid_bleu", "tokens", console)],
        default_root_dir=tmp_path,
        num_sanity_val_steps=0,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
    )
    batches = torch.utils.data.DataLoader(torch.zeros(len(losses) // epochs, 1))
    trainer.fit(Scripted(losses, scores), batches, torch.utils.data.DataLoader(torch.zeros(1, 1)))


def test_without_a_terminal_each_epoch_is_one_line(tmp_path):
    written = StringIO()
    losses = [9.0, 4.0, 9.0, 2.0, 9.0, 3.0]
    fitted(Console(file=written, width=40), tmp_path, losses, [10.0, 30.0, 20.0], epochs=3)
    # The loss is smoothed: 0.8 of the one before and 0.2 of the last of the epoch.
    assert written.getvalue().splitlines() == [
        "Epoch 1/3: loss 4.000  tokens/s 12,346  best bleu 10.00",
        "Epoch 2/3: loss 3.600  tokens/s 12,346  best bleu 30.00",
        "Epoch 3/3: loss 3.480  tokens/s 12,346  best bleu 30.00",
    ]


def test_on_a_terminal_a_bar_counts_the_steps_and_closes(tmp_path):
    written = StringIO()
    console = Console(file=written, force_terminal=True, width=120)
    fitted(console, tmp_path, [3.0] * 8, [10.0, 20.0], epochs=2)
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
def test_at_80_columns_no_number_is_cut(score, unit, reward, has_room, monkeypatch):
    bar = TrainingBar(score, unit, Console(file=StringIO(), force_terminal=True, width=80))
    task, page = Scripted([], []), Console(file=StringIO(), width=80)
    for name, value in {
        "callback_metrics": {"loss": 1.5, f"{unit}/s": 123456, score: 12.5} | reward,
        "current_epoch": 99,
        "num_training_batches": 15000,
    }.items():
        monkeypatch.setattr(lightning.Trainer, name, value)
    trainer = lightning.Trainer(logger=False, max_epochs=200)
    bar.on_train_start(trainer, task)
    bar.on_train_epoch_start(trainer, task)
    bar.on_train_batch_end(trainer, task, None, None, 12344)
    for happens in (bar.on_validation_end, bar.on_validation_start):
        happens(trainer, task)
        page.print(bar._progress.get_renderable())
    bar.on_train_end(trainer, task)
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
    metrics = {"loss": torch.tensor(2.0), "tokens/s": torch.tensor(5.0), "lr-AdamW": torch.tensor(1.0)}
    monkeypatch.setattr(lightning.Trainer, "callback_metrics", metrics)
    times = iter([0.0, 0.1, 0.4, 0.6])
    monkeypatch.setattr(progress, "time", SimpleNamespace(perf_counter=lambda: next(times)))
    bar = TrainingBar("valid_bleu", "tokens", Console(file=StringIO(), force_terminal=True))
    trainer, task = lightning.Trainer(logger=False, max_epochs=3), Scripted([], [])
    shown = []

    class Recorder:
        """Takes the place of the bar."""

        def update(self, bar, **fields):
            shown.append((fields["completed"], fields["metrics"]))

    bar._progress, bar._bar = Recorder(), 0
    for step in range(4):
        bar.on_train_batch_end(trainer, task, None, None, step)
        metrics["loss"] = torch.tensor(1.0)
    first = "loss 2.000  tokens/s 5"
    assert shown == [(1, first), (2, first), (3, first), (4, "loss 1.800  tokens/s 5")]


def test_a_reward_is_shown_beside_the_loss(monkeypatch):
    monkeypatch.setattr(lightning.Trainer, "callback_metrics", {"reward": torch.tensor(0.25)})
    written = StringIO()
    bar = TrainingBar("valid_bleu", "captions", Console(file=written))
    bar.on_train_epoch_end(lightning.Trainer(logger=False, max_epochs=3), Scripted([], []))
    assert written.getvalue() == "Epoch 1/3: reward 0.250\n"


def test_a_run_that_is_resumed_within_an_epoch_has_a_bar_and_its_best_score(tmp_path, monkeypatch):
    recipe = small_recipe("tape", tmp_path / "data")
    losses: dict[int, float] = {}
    with monkeypatch.context() as patch:
        patch.setattr(StopWhenDiverged, "on_train_batch_end", watch_losses(losses, stop_at=6))
        with pytest.raises(MemoryError):
            train(recipe, out=tmp_path / "run", progress=True)
    bar = TrainingBar("valid_log_likelihood", "tapes", Console(file=StringIO(), force_terminal=True, width=160))
    monkeypatch.setattr("regard.training.fit.TrainingBar", lambda score, unit: bar)
    begun = []
    begin = TrainingBar.on_train_epoch_start
    monkeypatch.setattr(
        TrainingBar, "on_train_epoch_start", lambda *given: begun.append(bar._metrics()) or begin(*given)
    )
    train(out=tmp_path / "run", resume=True, progress=True)
    assert len(begun) == 1, "the rest of the second epoch"
    assert begun[0].startswith("best log_likelihood -")
