"""What all training shares: clipping, whatever the precision and the optimizer."""

import lightning.pytorch as lightning
import pytest
import torch
from torch import nn

from regard.training.recipe import TrainConfig
from regard.training.task import Task

pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning", "ignore:.*isinstance.treespec.*")


class Falling(Task):
    """One weight whose gradient is 100."""

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
    task = Falling(TrainConfig())
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = lightning.Trainer(
        accelerator="cpu", precision=precision, gradient_clip_val=clip, max_steps=2, default_root_dir=tmp_path, **quiet
    )
    trainer.fit(task, torch.utils.data.DataLoader(torch.zeros(2, 1)))
    # The step size is 1 % of the highest in the last step.
    assert task.weight.item() == pytest.approx(-1.01 * (clip or 100.0), rel=1e-4)


@pytest.mark.parametrize(("precision", "fused"), [("auto", True), ("bf16-mixed", True), ("16-mixed", False)])
def test_adam_is_fused_on_a_gpu_but_where_gradients_are_scaled(monkeypatch, precision, fused):
    task = Falling(TrainConfig(precision=precision))
    monkeypatch.setattr(Falling, "device", torch.device("cuda"))
    assert Task.make_optimizer(task).defaults["fused"] is fused
