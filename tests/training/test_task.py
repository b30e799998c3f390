"""What every task shares: clipping in each precision, the schedule of the learning rate, the throughput."""

import lightning.pytorch as lightning
import pytest
import torch
from torch import nn

from regard.training.settings import TrainSettings
from regard.training.task import Plateau, Task, learning_rate_factor

pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning", "ignore:.*isinstance.treespec.*")


class Falling(Task):
    """One parameter whose gradient is 100."""

    def __init__(self, settings):
        super().__init__(settings, total_steps=2)
        self.weight = nn.Parameter(torch.zeros(1))

    def make_optimizer(self):
        return torch.optim.SGD(self.parameters(), lr=1.0, fused=True)

    def training_step(self, batch, index):
        return 100 * self.weight.sum()


@pytest.mark.filterwarnings("ignore:.*does not have many workers")
@pytest.mark.parametrize("clip", [0.0, 2.0])
@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_a_fused_optimizer_gets_clipped_gradients(tmp_path, precision, clip):
    task = Falling(TrainSettings())
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = lightning.Trainer(
        accelerator="cpu", precision=precision, gradient_clip_val=clip, max_steps=2, default_root_dir=tmp_path, **quiet
    )
    trainer.fit(task, torch.utils.data.DataLoader(torch.zeros(2, 1)))
    # The learning rate is 1 % of the highest in the last step.
    assert task.weight.item() == pytest.approx(-1.01 * (clip or 100.0), rel=1e-4)


@pytest.mark.parametrize(("precision", "fused"), [("auto", True), ("bf16-mixed", True), ("16-mixed", False)])
def test_adam_is_fused_on_a_gpu_unless_gradients_are_scaled(monkeypatch, precision, fused):
    task = Falling(TrainSettings(precision=precision))
    monkeypatch.setattr(Falling, "device", torch.device("cuda"))
    assert Task.make_optimizer(task).defaults["fused"] is fused


@pytest.mark.parametrize("schedule", ["one_cycle", "inverse_sqrt", "constant", "plateau"])
def test_the_learning_rate_rises_and_then_does_not(schedule):
    rates = [learning_rate_factor(schedule, done / 100, 0.1) for done in range(1, 101)]
    assert rates[:10] == sorted(rates[:10])
    assert max(rates) == pytest.approx(1)
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert all(0 < rate <= 1 for rate in rates)


def test_a_plateau_halves_the_learning_rate_after_the_warm_up_and_down_to_one_percent():
    plateau = Plateau()
    rising = [(5.0, False, 1), (4.0, False, 1)]
    for bleu, warm, factor in [*rising, (6.0, True, 1), (6.0, True, 0.5), (7.0, True, 0.5), (1.0, True, 0.25)]:
        plateau.update(bleu, warm=warm)
        assert plateau.factor == factor
    for _ in range(10):
        plateau.update(0.0, warm=True)
    assert plateau == Plateau(0.01, 7.0)


def test_with_a_time_limit_the_clock_decides_how_much_is_done(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("regard.training.task.time.perf_counter", lambda: now[0])
    by_steps, by_time = Falling(TrainSettings()), Falling(TrainSettings(minutes=2.0))
    now[0] += 90.0
    assert by_steps.fraction_done(1) == 0.5
    assert by_time.fraction_done(1) == 0.75, "90 of 120 seconds"
    now[0] += 90.0
    assert by_time.fraction_done(1) == 1.0
    assert by_steps.fraction_done(5) == 1.0


def test_the_throughput_is_what_was_counted_since_the_last_measurement(monkeypatch):
    now, logged = [0.0], []
    monkeypatch.setattr("regard.training.task.time.perf_counter", lambda: now[0])
    task = Falling(TrainSettings())
    monkeypatch.setattr(task, "log", lambda name, value, **_: logged.append((name, value)))
    for index in range(45):
        now[0] += 0.5 if index < 20 else 0.25
        task.count(7, index)
    assert logged == [("examples/s", 14.0), ("examples/s", 28.0)]
