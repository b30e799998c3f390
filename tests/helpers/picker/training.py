"""How a picker learns: the squared error of the number that it picks."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from helpers.picker.config import PickerData, PickerTrain
from helpers.picker.model import Picker
from regard.data.batches import BatchLoader, CostBatches
from regard.data.splits import Splits
from regard.training.experiment import Experiment
from regard.training.task import Task


class PickerTask(Task):
    """The loss of a batch, and what a validation measures."""

    def __init__(self, model: Picker, settings: PickerTrain, total_steps: int) -> None:
        super().__init__(settings, total_steps)
        self.model = model

    def loss(self, batch: Tensor) -> Tensor:
        loss = self._error(batch)
        self.log("loss", loss, batch_size=len(batch))
        return loss

    def validate(self, batch: Tensor) -> None:
        self.log("valid_closeness", -self._error(batch), batch_size=len(batch))

    def _error(self, batch: Tensor) -> Tensor:
        return (self.model(batch).context.flatten() - batch.amax(1)).square().mean()


class PickerExperiment(Experiment[Picker]):
    """Numbers in, a trained picker out."""

    Data = PickerData
    Train = PickerTrain
    score = "valid_closeness"

    def read_data(self) -> Splits[Tensor, Tensor]:
        numbers = torch.randn(self.recipe.data.examples, 5)
        return Splits(numbers[32:], numbers[:16], numbers[16:32])

    def build(self, splits: Any) -> Picker:
        return Picker(self.recipe.model, [self.recipe.data.unit])

    def task(self, model: Picker, splits: Any) -> tuple[Task, BatchLoader, BatchLoader]:
        def loader(rows: Tensor, shuffle: bool) -> BatchLoader:
            sizes = np.ones((len(rows), 1), dtype=np.int64)
            batches = CostBatches(sizes, max_cost=self.recipe.train.batch_size, shuffle=shuffle, seed=1)
            return BatchLoader(range(len(rows)), batches, collate_fn=lambda indices: rows[torch.tensor(indices)])

        train = loader(splits.train, True)
        task = PickerTask(model, self.recipe.train, self.recipe.train.epochs * len(train))
        return task, train, loader(splits.valid, False)

    def test(self, model: Picker, splits: Any) -> dict[str, Any]:
        return {"test_error": float((model(splits.test).context.flatten() - splits.test.amax(1)).abs().mean())}
