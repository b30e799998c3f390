"""Fitting with Lightning: callbacks, checkpoints and logs."""

import logging
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import lightning.pytorch as lightning
import torch
from lightning.pytorch.callbacks import Callback, EarlyStopping, LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger

from regard.data.batches import BatchLoader, CostBatches
from regard.kernels.dot_product import disable_cudnn_attention
from regard.training.averaging import RunningAverage
from regard.training.checkpoints import KeepLast
from regard.training.progress import TrainingBar
from regard.training.settings import TrainSettings
from regard.training.task import Task


@dataclass(frozen=True)
class Fitted:
    """How fitting ended: its metrics (last losses, best score, epochs, steps), and whether it was interrupted."""

    metrics: dict[str, Any]
    interrupted: bool


def prepare(settings: TrainSettings) -> None:
    """Seed everything that is random, and silence Lightning's own messages; call it before any other step."""
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    lightning.seed_everything(settings.seed, verbose=False)


def fit(
    task: Task,
    loaders: tuple[BatchLoader, BatchLoader],
    folder: Path,
    *,
    score: str,
    half_precision_on_gpu: bool,
    resume: bool,
    progress: bool,
    hyperparameters: Mapping[str, Any] | None = None,
) -> Fitted:
    """Train the task on the first loader, validate on the second, and leave it with the parameters of the best score.

    `score` is the name of a validation metric; higher is better. With `resume`, training continues from the last
    checkpoint of the folder, or starts where there is none. `half_precision_on_gpu` decides what precision "auto"
    means. `hyperparameters` are logged.
    """
    disable_cudnn_attention()
    best = ModelCheckpoint(folder / "checkpoints", "best", monitor=score, mode="max", enable_version_counter=False)
    stop = _StopWhenInterrupted()
    callbacks: list[Callback] = [best, stop]
    trainer = _trainer(
        task.settings,
        folder,
        callbacks,
        score,
        task.unit,
        half_precision_on_gpu=half_precision_on_gpu,
        progress=progress,
    )
    last = folder / "checkpoints" / "last.ckpt"
    _keep_earlier_log(folder / "logs")
    with _without_needless_warnings(), _matmul_precision():
        for logger in trainer.loggers:
            logger.log_hyperparams(dict(hyperparameters or {}))
        trainer.fit(task, *loaders, ckpt_path=last if resume and last.is_file() else None, weights_only=True)
    if best.best_model_path:
        state = torch.load(best.best_model_path, map_location="cpu", weights_only=True)["state_dict"]
        task.load_state_dict(state)
    metrics: dict[str, Any] = {name: float(value) for name, value in trainer.callback_metrics.items()}
    if best.best_model_score is not None:
        metrics[score] = float(best.best_model_score)
    metrics |= {"epochs": trainer.current_epoch, "steps": trainer.global_step, "seed": task.settings.seed}
    return Fitted(metrics, stop.interrupted)


@contextmanager
def _matmul_precision() -> Iterator[None]:
    """On a GPU, let float32 matrix products round their factors to TF32 while training, which is much faster."""
    before = torch.get_float32_matmul_precision()
    if torch.cuda.is_available():
        torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextmanager
def _without_needless_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        # Small data needs no workers, a short epoch no more logging, and torch's own deprecations are Lightning's.
        warnings.filterwarnings("ignore", message=".*does not have many workers.*")
        warnings.filterwarnings("ignore", message=".*isinstance.treespec, LeafSpec.*")
        warnings.filterwarnings("ignore", message=".*log_every_n_steps.*")
        # The log of an earlier run is kept under another name, and its checkpoints are meant to be overwritten.
        warnings.filterwarnings("ignore", message=".*Previous log files in this directory will be deleted.*")
        warnings.filterwarnings("ignore", message=".*Checkpoint directory .* exists and is not empty.*")
        yield


def _keep_earlier_log(logs: Path) -> None:
    """Rename the log of an earlier run, which a new or resumed run would overwrite."""
    if (logs / "metrics.csv").is_file():
        taken = [int(path.stem.removeprefix("metrics-")) for path in logs.glob("metrics-*[0-9].csv")]
        (logs / "metrics.csv").replace(logs / f"metrics-{max(taken, default=0) + 1}.csv")


class _NewOrderEachEpoch(Callback):
    """Sets the epoch of the batch sampler, so that each epoch has its own order."""

    def on_train_epoch_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        loader = trainer.train_dataloader
        if loader is not None and isinstance(loader.batch_sampler, CostBatches):
            loader.batch_sampler.set_epoch(trainer.current_epoch)


class _StopWhenInterrupted(Callback):
    """Ctrl-C ends the training after this batch, so that the model is saved; a second Ctrl-C ends it at once."""

    def __init__(self) -> None:
        self.interrupted = False
        self._before: Any = None

    def on_fit_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Handle Ctrl-C, where Python allows it: in the main thread."""
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, lambda *_: self._stop(trainer))

    def teardown(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, stage: str) -> None:
        """Restore the handler of Ctrl-C."""
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None

    def _stop(self, trainer: lightning.Trainer) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = trainer.should_stop = True
        sys.stderr.write("\nStopping after this batch; the model will be saved. Press Ctrl-C again to stop at once.\n")


def _trainer(
    settings: TrainSettings,
    folder: Path,
    callbacks: list[Callback],
    score: str,
    unit: str,
    *,
    half_precision_on_gpu: bool,
    progress: bool,
) -> lightning.Trainer:
    on_gpu = torch.cuda.is_available()
    precision: Any = settings.precision
    if precision == "auto":
        precision = "bf16-mixed" if on_gpu and half_precision_on_gpu else "32-true"
    # `save_last` of a ModelCheckpoint that monitors a score is written only when the score improves.
    last = KeepLast(folder / "checkpoints" / "last.ckpt", minutes=settings.checkpoint_minutes)
    callbacks = [*callbacks, last, _NewOrderEachEpoch(), LearningRateMonitor("step")]
    if progress:
        callbacks.append(TrainingBar(score, unit))
    if settings.average_decay:
        callbacks.append(RunningAverage(settings.average_decay))
    if settings.patience:
        callbacks.append(EarlyStopping(score, mode="max", patience=settings.patience))
    return lightning.Trainer(
        accelerator="gpu" if on_gpu else "cpu",
        devices=1,
        precision=precision,
        max_epochs=settings.epochs,
        max_time=timedelta(minutes=settings.minutes) if settings.minutes else None,
        gradient_clip_val=settings.gradient_clip,
        check_val_every_n_epoch=settings.validate_every,
        callbacks=callbacks,
        logger=[CSVLogger(folder, "logs", ""), TensorBoardLogger(folder, "logs", "", default_hp_metric=False)],
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
        num_sanity_val_steps=0,
        log_every_n_steps=20,
    )
