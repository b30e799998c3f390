"""The progress bar of a training."""

from types import SimpleNamespace

import lightning.pytorch as lightning
import torch
from lightning.pytorch.callbacks import RichProgressBar

from regard.training import bar


def test_it_shows_the_loss_and_the_speed_but_looks_only_now_and_then(monkeypatch):
    metrics = {"loss": torch.tensor(2.0), "tokens/s": torch.tensor(5.0), "lr-AdamW": torch.tensor(1.0)}
    monkeypatch.setattr(RichProgressBar, "get_metrics", lambda *_: {"valid_bleu": 30.0})
    monkeypatch.setattr(lightning.Trainer, "callback_metrics", metrics)
    times = iter([0.0, 0.1, 0.4, 0.6])
    monkeypatch.setattr(bar, "time", SimpleNamespace(perf_counter=lambda: next(times)))
    made, trainer, task = bar.TrainingBar(), lightning.Trainer(logger=False), lightning.LightningModule()
    first = {"valid_bleu": 30.0, "loss": 2.0, "tokens/s": 5.0}
    assert made.get_metrics(trainer, task) == first
    metrics["loss"] = torch.tensor(1.0)
    assert made.get_metrics(trainer, task) == made.get_metrics(trainer, task) == first
    assert made.get_metrics(trainer, task) == first | {"loss": 1.0}
