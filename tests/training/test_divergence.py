"""A loss that is no number stops the training, names the update and the batch, and spares the last good checkpoint."""

import pytest
import torch
from helpers.command_line import regard
from helpers.runs import small_recipe, watch_losses

from regard.data.batches import CostBatches
from regard.errors import TrainingError
from regard.systems.classify.training import ClassificationTask
from regard.systems.run import train
from regard.systems.tape.training import TapeTask
from regard.training.checkpoint_files import newest_checkpoint
from regard.training.divergence import StopWhenDiverged
from regard.training.recipes import recipe_toml

pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning", "ignore:.*isinstance.treespec.*")


def diverging(task, at, how, monkeypatch):
    """Spoil the loss, or a gradient, of the update with this number, counted from 0."""
    training_step = task.training_step

    def step(self, batch, index):
        loss = training_step(self, batch, index)
        if self.global_step == at:
            part = next(self.model.parameters())
            loss = loss + (part.square().sum().sqrt() * 0 / 0 if how == "loss" else (part * 0).sum().sqrt())
        return loss

    monkeypatch.setattr(task, "training_step", step)


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
    monkeypatch.setattr(StopWhenDiverged, "on_train_batch_end", watch_losses(losses))
    trained = train(small_recipe("tape", tmp_path / "data"), out=tmp_path / "run", progress=False)
    assert [step for step, loss in losses.items() if loss != loss] == [4]
    assert all(bool(part.isfinite().all()) for part in trained.model.parameters())


def test_too_many_of_them_in_a_row_end_it_and_the_first_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(TapeTask, "tolerated_losses", 2)
    training_step = TapeTask.training_step
    monkeypatch.setattr(
        TapeTask, "training_step", lambda self, *rest: training_step(self, *rest) / (0.0 if self.global_step > 1 else 1)
    )
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
