"""Fitting with Lightning: callbacks, checkpoints, logs, and what they leave to tell."""

import logging
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import lightning.pytorch as lightning
import torch
from lightning.pytorch.callbacks import (
    Callback,
    EarlyStopping,
    LearningRateMonitor,
    ModelCheckpoint,
)
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger

from regard.data.batches import BatchLoader, CostBatches
from regard.training.averaging import RunningAverage
from regard.training.bar import TrainingBar
from regard.training.checkpoints import KeepLast
from regard.training.task import Settings, Task


def begin(settings: Settings) -> None:
    """Before anything is random: the seed, and no messages but our own."""
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    lightning.seed_everything(settings.seed, verbose=False)


def fit(
    task: Task,
    loaders: tuple[BatchLoader, BatchLoader],
    folder: Path,
    *,
    score: str,
    half_on_gpu: bool,
    resume: bool,
    progress: bool,
) -> dict[str, Any]:
    """Train the task on the first loader, validate on the second, and leave it with the weights of the best `score`.

    Gives the metrics: the last losses, the best score, epochs and steps. `half_on_gpu` says what precision "auto" is.
    """
    best = ModelCheckpoint(folder / "checkpoints", "best", monitor=score, mode="max", enable_version_counter=False)
    trainer = _trainer(task.settings, folder, best, half_on_gpu=half_on_gpu, progress=progress)
    last = folder / "checkpoints" / "last.ckpt"
    _keep_earlier_log(folder / "logs")
    with _without_needless_warnings():
        trainer.fit(task, *loaders, ckpt_path=last if resume and last.is_file() else None, weights_only=True)
    if best.best_model_path:
        state = torch.load(best.best_model_path, map_location="cpu", weights_only=True)["state_dict"]
        task.load_state_dict(state)
    metrics: dict[str, Any] = {name: float(value) for name, value in trainer.callback_metrics.items()}
    if best.best_model_score is not None:
        metrics[score] = float(best.best_model_score)
    return metrics | {"epochs": trainer.current_epoch, "steps": trainer.global_step, "seed": task.settings.seed}


@contextmanager
def _without_needless_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        # Small data needs no workers, and a validation of a few batches no more logging.
        warnings.filterwarnings("ignore", message=".*does not have many workers.*")
        warnings.filterwarnings("ignore", message=".*isinstance.treespec, LeafSpec.*")
        warnings.filterwarnings("ignore", message=".*log_every_n_steps.*")
        # The log of an earlier run is kept under another name, and its checkpoints are to be written over.
        warnings.filterwarnings("ignore", message=".*Previous log files in this directory will be deleted.*")
        warnings.filterwarnings("ignore", message=".*Checkpoint directory .* exists and is not empty.*")
        yield


def _keep_earlier_log(logs: Path) -> None:
    """Give the log of an earlier run a number: a new run, and one that goes on, would write over it."""
    if (logs / "metrics.csv").is_file():
        taken = len(list(logs.glob("metrics-*.csv")))
        (logs / "metrics.csv").replace(logs / f"metrics-{taken + 1}.csv")


class _NewOrderEachEpoch(Callback):
    """Tells the batches which epoch it is, so that each has an order of its own."""

    def on_train_epoch_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        loader = trainer.train_dataloader
        if loader is not None and isinstance(loader.batch_sampler, CostBatches):
            loader.batch_sampler.set_epoch(trainer.current_epoch)


class _StopWhenInterrupted(Callback):
    """Ctrl-C ends the training after this batch, so that the model is saved; a second Ctrl-C ends it at once."""

    def __init__(self) -> None:
        self._interrupted = False
        self._before: Any = None

    def on_fit_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Take over Ctrl-C, where this is allowed: in the main thread."""
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, lambda *_: self._stop(trainer))

    def teardown(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, stage: str) -> None:
        """Give Ctrl-C back."""
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None

    def _stop(self, trainer: lightning.Trainer) -> None:
        if self._interrupted:
            raise KeyboardInterrupt
        self._interrupted = trainer.should_stop = True
        sys.stderr.write("\nStopping after this batch; the model will be saved. Once more to stop at once.\n")


def _trainer(
    config: Settings, folder: Path, best: ModelCheckpoint, *, half_on_gpu: bool, progress: bool
) -> lightning.Trainer:
    on_gpu = torch.cuda.is_available()
    if on_gpu:
        # Products of float32 matrices round their factors to TF32, which no recipe has been seen to notice.
        torch.set_float32_matmul_precision("high")
    precision: Any = config.precision
    if precision == "auto":
        precision = "bf16-mixed" if on_gpu and half_on_gpu else "32-true"
    # Of its own: the `save_last` of a checkpoint that monitors a score keeps the last of the best, not the last.
    last = KeepLast(folder / "checkpoints" / "last.ckpt", minutes=config.checkpoint_minutes)
    stop = _StopWhenInterrupted()
    callbacks: list[Callback] = [best, last, stop, _NewOrderEachEpoch(), LearningRateMonitor("step")]
    if progress:
        callbacks.append(TrainingBar())
    if config.average:
        callbacks.append(RunningAverage(config.average))
    if config.patience:
        callbacks.append(EarlyStopping(str(best.monitor), mode="max", patience=config.patience))
    return lightning.Trainer(
        accelerator="gpu" if on_gpu else "cpu",
        devices=1,
        precision=precision,
        max_epochs=config.epochs,
        max_time=timedelta(minutes=config.minutes) if config.minutes else None,
        gradient_clip_val=config.clip,
        check_val_every_n_epoch=config.validate_every,
        callbacks=callbacks,
        logger=[CSVLogger(folder, "logs", ""), TensorBoardLogger(folder, "logs", "")],
        enable_progress_bar=progress,
        enable_model_summary=False,
        use_distributed_sampler=False,
        num_sanity_val_steps=0,
        log_every_n_steps=20,
    )
