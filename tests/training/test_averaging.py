"""The running average of the parameters."""

import lightning.pytorch as lightning
import pytest
import torch
from torch import nn

from regard.training.averaging import RunningAverage
from regard.training.settings import TrainSettings
from regard.training.task import Task

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*LeafSpec.*:FutureWarning", "ignore:.*isinstance.treespec.*", "ignore:.*does not have many workers"
)


class Counting(Task):
    """A parameter that is 1, 2, 3, ... after each step, and a buffer that counts them."""

    def __init__(self):
        super().__init__(TrainSettings(), total_steps=9)
        self.weight = nn.Parameter(torch.zeros(1))
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1.0)

    def training_step(self, batch, index):
        self.steps += 1
        return -self.weight.sum()


@pytest.mark.parametrize("decay", [0.9, 0.3])
def test_the_average_forgets_where_it_began(tmp_path, decay):
    task = Counting()
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = lightning.Trainer(
        max_epochs=1, devices=1, callbacks=[RunningAverage(decay)], default_root_dir=tmp_path, **quiet
    )
    trainer.fit(task, torch.utils.data.DataLoader(torch.zeros(6, 1)))
    expected = 1.0
    for done in range(1, 6):
        keep = min(decay, (1 + done) / (10 + done))
        expected = keep * expected + (1 - keep) * (done + 1)
    assert task.weight.item() == pytest.approx(expected)
    assert task.steps.item() == 6
