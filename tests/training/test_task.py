"""What every task shares: the optimizer, the time limit, metrics."""

import pytest
import torch
from torch import nn

from regard.training.settings import TrainSettings
from regard.training.task import Task


class Falling(Task):
    """One parameter."""

    def __init__(self, settings):
        super().__init__(settings, total_steps=2)
        self.weight = nn.Parameter(torch.zeros(1))


@pytest.mark.parametrize(("precision", "fused"), [("auto", True), ("bf16-mixed", True), ("16-mixed", False)])
def test_adam_is_fused_on_a_gpu_unless_gradients_are_scaled(monkeypatch, precision, fused):
    task = Falling(TrainSettings(precision=precision))
    monkeypatch.setattr(Falling, "device", torch.device("cuda"))
    assert task.make_optimizer().defaults["fused"] == (fused or None)


def test_only_by_the_clock_time_decides_how_much_of_the_schedule_is_done(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("regard.training.task.time.perf_counter", lambda: now[0])
    by_steps, by_time = Falling(TrainSettings(minutes=2.0)), Falling(TrainSettings(minutes=2.0, schedule_by="clock"))
    now[0] += 90.0
    assert by_steps.fraction_done(1) == 0.5
    assert by_time.fraction_done(1) == 0.75, "90 of 120 seconds"
    now[0] += 90.0
    assert by_time.fraction_done(1) == 1.0
    assert by_steps.fraction_done(5) == 1.0


def test_fillers_are_left_out_of_what_is_learned_from_and_of_nothing_else():
    task = Falling(TrainSettings())
    task.is_filler = task.sums_parts = True
    task.log("loss", torch.tensor(3.0), batch_size=4)
    task.is_filler = False
    task.log("loss", torch.tensor(2.0), batch_size=4)
    task.take_parts()
    assert task.metrics == {"loss": 2.0}
    task.is_filler = True
    task.eval()
    task.log("valid_loss", torch.tensor(1.0), batch_size=3)
    assert task.take_means() == {"valid_loss": 1.0}


def test_metrics_of_a_validation_are_means_over_its_items():
    task = Falling(TrainSettings())
    task.log("loss", torch.tensor(3.0), batch_size=4)
    task.log("loss", torch.tensor(2.0), batch_size=1)
    task.eval()
    for value, size in ((1.0, 3), (5.0, 1)):
        task.log("valid_loss", torch.tensor(value), batch_size=size)
    task.log("valid_bleu", 7.5)
    assert task.take_means() == {"valid_loss": 2.0, "valid_bleu": 7.5}
    assert {name: float(value) for name, value in task.metrics.items()} == {
        "loss": 2.0, "valid_loss": 2.0, "valid_bleu": 7.5
    }  # fmt: skip
    assert list(task.unwritten) == ["loss"]
    task.log("valid_bleu", 1.0)
    assert task.take_means() == {"valid_bleu": 1.0}, "the next validation begins anew"
