"""Stopping a training whose loss is no longer a number, before its parameters replace good ones."""

from typing import Any

import lightning.pytorch as lightning
import torch
from lightning.pytorch.callbacks import Callback
from torch import Tensor

from regard.data.batches import CostBatches
from regard.errors import TrainingError

READ_STEPS = 50
"""Updates between two readings of the losses of a GPU: each reading waits for it."""
MANY_EXAMPLES = 8
"""Examples of a batch that are listed."""


class StopWhenDiverged(Callback):
    """Raises a TrainingError that names the update and the batch in which the loss became NaN or infinite.

    `patience` such losses in a row are tolerated, for trainings that leave out an update whose gradients overflow.
    """

    def __init__(self, patience: int = 0) -> None:
        self.patience = patience
        self._streak: Tensor | None = None
        self._trainer: lightning.Trainer | None = None

    def on_train_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Begin to count on the device of the losses."""
        self._trainer = trainer
        self._streak = torch.zeros((), dtype=torch.long, device=pl_module.device)

    def on_train_batch_end(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Look at the loss, on a GPU only now and then."""
        loss = outputs["loss"]
        if self._streak is None or loss is None:
            return
        self._streak = torch.where(loss.isfinite(), 0, self._streak + 1)
        if not loss.is_cuda or trainer.global_step % READ_STEPS == 0:
            self._read(trainer)

    def check(self) -> None:
        """Raise the error if the last loss or a parameter is not finite; called before a checkpoint is written."""
        trainer = self._trainer
        if trainer is None:
            return
        self._read(trainer)
        # One number for all parameters, so that a GPU is waited for once.
        finite = torch.stack([part.detach().isfinite().all() for part in trainer.lightning_module.parameters()]).all()
        if not bool(finite):
            raise TrainingError(_message("Parameters became NaN or infinite", trainer, trainer.global_step - 1))

    def _read(self, trainer: lightning.Trainer) -> None:
        streak = 0 if self._streak is None else int(self._streak)
        if streak > self.patience:
            raise TrainingError(_message("The loss became NaN or infinite", trainer, trainer.global_step - streak))


def _message(what: str, trainer: lightning.Trainer, step: int) -> str:
    """What happened in which update, counted from 0 here and from 1 in the message."""
    total = int(trainer.num_training_batches)
    epoch, number = divmod(max(0, step), total)
    examples = ""
    loader = trainer.train_dataloader
    if loader is not None and isinstance(loader.batch_sampler, CostBatches):
        places = loader.batch_sampler.batch(epoch, number)
        more = ", ..." if len(places) > MANY_EXAMPLES else ""
        examples = f", the examples {', '.join(map(str, places[:MANY_EXAMPLES]))}{more}, counted from 0"
    return (
        f"{what} in update {step + 1} (epoch {epoch + 1}, batch {number + 1} of {total}{examples}). Look at these "
        "examples, or lower --train.learning_rate."
    )
