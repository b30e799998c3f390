"""Checkpoints to resume from: after each epoch, at intervals within one, and where training is stopped."""

import time
from pathlib import Path
from typing import Any

import lightning.pytorch as lightning
from lightning.pytorch.callbacks import Checkpoint


class KeepLast(Checkpoint):
    """Keeps last.ckpt, from which a training continues exactly as it would have without the interruption.

    As a subclass of Checkpoint it runs after all other callbacks, so that their effects are in the checkpoint. A stop
    within an epoch is written before the validation that follows it, because a resumed epoch is validated at its end.
    """

    def __init__(self, path: Path, *, minutes: float) -> None:
        self.path, self.minutes = path, minutes
        self._written = time.monotonic()

    def on_train_batch_end(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Write within an epoch when the interval has passed, and when training is about to stop."""
        is_due = 0 < self.minutes <= (time.monotonic() - self._written) / 60
        if not _is_whole(trainer) and (is_due or trainer.should_stop):
            self._write(trainer)

    def on_train_epoch_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Write after a complete epoch; one that was stopped has been written already."""
        if _is_whole(trainer):
            self._write(trainer)

    def _write(self, trainer: lightning.Trainer) -> None:
        trainer.save_checkpoint(self.path)
        self._written = time.monotonic()


def _is_whole(trainer: lightning.Trainer) -> bool:
    return trainer.fit_loop.epoch_loop.batch_progress.is_last_batch
