"""The loop of a training: averages, clipping in each precision, and losses that are no numbers.

A loss that is no number stops the training, names the update and the batch, and spares the last good checkpoint.
"""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from helpers.command_line import regard
from helpers.runs import small_recipe, watch_losses
from torch import nn

from regard.data.batches import BatchLoader, CostBatches
from regard.errors import OptionError, TrainingError
from regard.systems.classify.training import ClassificationTask
from regard.systems.run import train
from regard.systems.tape.training import TapeTask
from regard.training.average import RunningAverage
from regard.training.checkpoints import newest_checkpoint
from regard.training.divergence import Divergence
from regard.training.fit import Training, Waiting
from regard.training.progress import Logs
from regard.training.recipes import recipe_toml
from regard.training.settings import Devices, TrainSettings
from regard.training.task import Task


def ones(count):
    """So many batches of one example."""
    batches = CostBatches(np.ones((count, 1), dtype=np.int64), max_cost=1, shuffle=False, seed=0)
    return BatchLoader(range(count), batches, collate_fn=torch.tensor)


class Falling(Task):
    """One parameter whose gradient is 100, and a buffer that counts."""

    def __init__(self, settings):
        super().__init__(settings, total_steps=2)
        self.weight = nn.Parameter(torch.zeros(1))
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def make_optimizer(self):
        return torch.optim.SGD(self.parameters(), lr=1.0, fused=True)

    def loss(self, batch):
        self.calls += 1
        return 100 * self.weight.sum()

    def validate(self, batch):
        self.log("valid_weight", self.weight.sum(), batch_size=1)


@pytest.mark.parametrize("clip", [0.0, 2.0])
@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_a_fused_optimizer_gets_clipped_gradients(precision, clip):
    task = Falling(TrainSettings(gradient_clip=clip, precision=precision))
    training = Training(task, (ones(2), ones(1)), "valid_weight", Devices(), half_precision_on_gpu=False)
    for batch in training.batches:
        training.update(batch)
    # The learning rate is 1 % of the highest in the last step.
    assert task.weight.item() == pytest.approx(-1.01 * (clip or 100.0), rel=1e-4)


@pytest.mark.parametrize("decay", [0.9, 0.3])
def test_the_average_forgets_where_it_began(decay):
    task = Falling(TrainSettings())
    average = RunningAverage(task, decay)
    for step in range(1, 7):
        task.weight.data.fill_(step)
        task.calls += 1
        average.update(step)
    expected = 1.0
    for done, step in pairwise(range(1, 7)):
        keep = min(decay, (1 + done) / (10 + done))
        expected = keep * expected + (1 - keep) * step
    assert average.state_dict()["weight"].item() == pytest.approx(expected)
    assert average.state_dict()["calls"].item() == 6
    average.swap()
    assert task.weight.item() == pytest.approx(expected)
    average.swap()
    assert task.weight.item() == 6


def test_the_share_of_waiting_is_measured_and_a_gpu_that_waits_is_reported(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("regard.training.fit.time.perf_counter", lambda: now[0])
    waiting = Waiting(torch.device("cpu"))

    def prepared(seconds):
        for _ in range(4):
            now[0] += seconds
            yield None

    for _ in waiting.through(prepared(1.0)):
        now[0] += 3.0
    assert waiting.fraction == pytest.approx(0.25)
    assert not waiting.advice(), "on a CPU, preparing batches and learning from them are the same work"
    waiting._done = SimpleNamespace(query=lambda: True, record=lambda: None)
    assert waiting.advice().startswith("The GPU waited for data during 25% of the training.")
    waiting._done.query = lambda: False  # the GPU has not finished when the batch comes
    for _ in waiting.through(prepared(1.0)):
        now[0] += 3.0
    assert waiting.fraction == pytest.approx(0.125)
    assert not waiting.advice()


def test_a_validation_without_the_score_is_explained(tmp_path):
    task = Falling(TrainSettings())
    training = Training(task, (ones(2), ones(1)), "valid_bleu", Devices(), half_precision_on_gpu=False)
    with pytest.raises(TrainingError, match=r"validation of Falling logs \['valid_weight'\], but no 'valid_bleu'"):
        training.validate(Logs(tmp_path, writes=False), tmp_path)


def diverging(task, at, how, monkeypatch):
    """Spoil the loss, or a gradient, of the update with this number, counted from 0."""
    loss_of = task.loss

    def spoiled(self, batch):
        loss = loss_of(self, batch)
        if self.step == at:
            part = next(self.model.parameters())
            loss = loss + (part.square().sum().sqrt() * 0 / 0 if how == "loss" else (part * 0).sum().sqrt())
        return loss

    monkeypatch.setattr(task, "loss", spoiled)


def test_the_update_the_batch_and_the_way_on_are_named(tmp_path, monkeypatch):
    recipe = small_recipe("classify", tmp_path / "data")
    diverging(ClassificationTask, 6, "loss", monkeypatch)
    says = (
        r"The loss became NaN or infinite in update 7 \(epoch 2, batch 2 of 5, the examples \d+(, \d+)*(, \.\.\.)?, "
        r"counted from 0\)\. "
        rf".*The last good checkpoint is .*step-6\.ckpt\. To continue: regard train --resume --out {tmp_path / 'run'}"
    )
    with pytest.raises(TrainingError, match=says) as error:
        train(recipe, out=tmp_path / "run", progress=False)
    assert error.value.status == 1
    path, content = newest_checkpoint(tmp_path / "run" / "checkpoints")
    assert path.name == "step-6.ckpt"
    assert all(bool(part.isfinite().all()) for part in content["state_dict"].values())


def test_gradients_that_spoil_the_parameters_are_noticed_before_a_checkpoint_is_written(tmp_path, monkeypatch):
    diverging(ClassificationTask, 2, "gradient", monkeypatch)
    with pytest.raises(TrainingError, match=r"Parameters became NaN or infinite in update 3 \(epoch 1, batch 3 of 5"):
        train(small_recipe("classify", tmp_path / "data"), out=tmp_path / "run", progress=False)
    assert newest_checkpoint(tmp_path / "run" / "checkpoints")[0].name == "step-2.ckpt"


def test_a_training_that_leaves_out_such_updates_goes_on(tmp_path, monkeypatch):
    diverging(TapeTask, 3, "loss", monkeypatch)
    losses: dict[int, float] = {}
    monkeypatch.setattr(Divergence, "update", watch_losses(losses))
    trained = train(small_recipe("tape", tmp_path / "data"), out=tmp_path / "run", progress=False)
    assert [step for step, loss in losses.items() if loss != loss] == [4]
    assert all(bool(part.isfinite().all()) for part in trained.model.parameters())


def test_too_many_of_them_in_a_row_end_it_and_the_first_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(TapeTask, "tolerated_losses", 2)
    loss = TapeTask.loss
    monkeypatch.setattr(TapeTask, "loss", lambda self, batch: loss(self, batch) / (0.0 if self.step > 1 else 1))
    with pytest.raises(TrainingError, match=r"in update 3 \(epoch 1, batch 3 of 4"):
        train(small_recipe("tape", tmp_path / "data"), out=tmp_path / "run", progress=False)


def test_the_command_ends_with_status_1_and_goes_on_with_a_lower_learning_rate(tmp_path, monkeypatch):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(recipe_toml(small_recipe("classify", tmp_path / "data")))
    with monkeypatch.context() as patch:
        diverging(ClassificationTask, 1, "loss", patch)
        ended = regard("train", recipe, "--out", tmp_path / "run")
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert ended.stderr.splitlines()[-1].startswith("regard: The loss became NaN or infinite in update 2 ")
    regard("train", "--resume", "--out", tmp_path / "run", "--train.learning_rate", 0.001, check=True)


def test_a_batch_of_any_epoch_can_be_named():
    batches = CostBatches(torch.arange(1, 12).reshape(-1, 1).numpy(), max_cost=11, shuffle=True, seed=3)
    for epoch in range(3):
        batches.set_epoch(epoch)
        assert [batches.batch(epoch, number) for number in range(len(batches))] == list(batches)


def test_a_batch_in_parts_gives_the_same_training(tmp_path):
    """With a batch of one example, which cannot be divided; dropout draws other numbers for other parts."""
    recipe = small_recipe("translate", tmp_path / "data", average_decay=0.9)
    with (tmp_path / "data" / "pairs.tsv").open("a") as pairs:
        pairs.write(f"{'one two three ' * 9}\t{'four five ' * 9}\n")
    recipe = replace(
        recipe,
        data=replace(recipe.data, bpe_dropout=0.0),
        model=replace(recipe.model, dropout=0.0, output_dropout=0.0),
    )
    trained, losses = [], []
    for parts in (1, 3):
        changed = replace(recipe, train=replace(recipe.train, accumulate=parts))
        losses.append({})
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Divergence, "update", watch_losses(losses[-1]))
            trained.append(train(changed, out=tmp_path / str(parts), progress=False))
    states = [each.model.state_dict() for each in trained]
    assert trained[0].metrics["steps"] == trained[1].metrics["steps"] == len(losses[0])
    assert trained[1].metrics["loss"] == pytest.approx(trained[0].metrics["loss"], abs=1e-4)
    assert all(torch.allclose(value, states[1][name], atol=2e-4) for name, value in states[0].items())


def test_tapes_come_in_one_part(tmp_path):
    with pytest.raises(OptionError, match=r"cannot be divided: leave out train\.accumulate; got 2"):
        train(small_recipe("tape", tmp_path / "data", accumulate=2), out=tmp_path / "run", progress=False)
