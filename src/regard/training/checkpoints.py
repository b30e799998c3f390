"""Writing checkpoints: whole or not at all, the newest ones and the best one."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightning.pytorch as lightning
import torch
from lightning.pytorch.callbacks import Checkpoint, ModelCheckpoint
from lightning.pytorch.plugins.io import TorchCheckpointIO

from regard.errors import TrainingError
from regard.files import replacing
from regard.training.checkpoint_files import BEST, step_files
from regard.training.interruption import Interruption


class WholeCheckpoints(TorchCheckpointIO):
    """Writes checkpoints under a temporary name in their own folder, flushed and then renamed."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        """Write a checkpoint, whole or not at all."""
        try:
            with replacing(path) as draft, draft.open("wb") as stream:
                torch.save(checkpoint, stream)
        except (OSError, RuntimeError) as error:
            if (cause := file_error(error)) is None:
                raise
            raise TrainingError(f"The checkpoint {path} cannot be written: {cause.strerror}.") from error


def file_error(error: BaseException | None) -> OSError | None:
    """The OSError that an error stems from; torch reports a failed write as a RuntimeError."""
    while error is not None and not isinstance(error, OSError):
        error = error.__cause__ or error.__context__
    return error


class KeepBest(ModelCheckpoint):
    """Keeps the checkpoint with the best score, also where the run folder has been moved since it was written."""

    def __init__(self, folder: Path, score: str) -> None:
        super().__init__(folder, Path(BEST).stem, monitor=score, mode="max", enable_version_counter=False)
        self._path = str(Path(self.dirpath or folder) / BEST)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue with the best score so far."""
        here: dict[str, Any] = {"dirpath": self.dirpath}
        if state_dict["best_k_models"]:
            here |= dict.fromkeys(("best_model_path", "kth_best_model_path"), self._path)
            here["best_k_models"] = {self._path: state_dict["best_model_score"]}
        super().load_state_dict(state_dict | here)


class KeepNewest(Checkpoint):
    """Keeps the newest checkpoints, from which a training continues exactly as it would have without an interruption.

    They are written before the first update, after each epoch, at intervals within one, and when training is
    interrupted. As a subclass of Checkpoint it runs after all other callbacks, so that their effects are in the
    checkpoint. A stop within an epoch is written before the validation that follows it, because a resumed epoch is
    validated at its end.
    """

    def __init__(
        self, folder: Path, *, minutes: float, keep: int, check: Callable[[], None], interruption: Interruption
    ) -> None:
        self.folder, self.minutes, self.keep = folder, minutes, keep
        self._check, self._interruption = check, interruption
        self._written = time.monotonic()

    def on_train_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Write the beginning, so that a folder that cannot be written to is noticed at once."""
        # Lightning has begun to handle SIGTERM meanwhile.
        self._interruption.install()
        if not trainer.global_step:
            self.write(trainer)

    def on_train_batch_end(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Write within an epoch when the interval has passed, and when training is about to stop."""
        if _is_whole(trainer):
            return
        is_due = 0 < self.minutes <= (time.monotonic() - self._written) / 60
        is_interrupted = _agreed(trainer, bool(self._interruption.signum))
        if is_interrupted or _agreed(trainer, is_due or trainer.should_stop):
            self.write(trainer)
        if is_interrupted:
            self._interruption.leave()

    def on_train_epoch_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Write after a complete epoch; one that was stopped has been written already."""
        if _is_whole(trainer):
            self.write(trainer)
            if _agreed(trainer, bool(self._interruption.signum)):
                self._interruption.leave()

    def write(self, trainer: lightning.Trainer) -> None:
        """Write a checkpoint of this moment, and remove those that are older than the ones to keep."""
        self._check()
        trainer.save_checkpoint(self.folder / f"step-{trainer.global_step}.ckpt")
        if trainer.is_global_zero:
            for old in step_files(self.folder)[self.keep :]:
                old.unlink()
            for logger in trainer.loggers:
                logger.save()
        self._written = time.monotonic()


def _agreed(trainer: lightning.Trainer, decision: bool) -> bool:
    """Whether any process of the training decided so: all of them have to write, and to stop, together."""
    return decision if trainer.world_size == 1 else trainer.strategy.reduce_boolean_decision(decision, all=False)


def _is_whole(trainer: lightning.Trainer) -> bool:
    return trainer.fit_loop.epoch_loop.batch_progress.is_last_batch
