"""Fitting with Lightning: callbacks, checkpoints and logs."""

import logging
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import lightning.pytorch as lightning
import torch
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.pytorch.callbacks import Callback, Checkpoint, EarlyStopping, LearningRateMonitor, Timer
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from lightning.pytorch.strategies import DDPStrategy, FSDPStrategy, Strategy
from torch.utils.tensorboard.summary import hparams

from regard.data.batches import BatchLoader, CostBatches
from regard.errors import OptionError, RegardWarning, TrainingError, counted
from regard.kernels.dot_product import disable_cudnn_attention
from regard.training import processes
from regard.training.averaging import RunningAverage
from regard.training.checkpoint_files import BEST, newest_checkpoint, read_checkpoint, step_files
from regard.training.checkpoints import KeepBest, KeepNewest, WholeCheckpoints
from regard.training.divergence import StopWhenDiverged
from regard.training.interruption import Interruption
from regard.training.processes import environment, is_first_process
from regard.training.progress import TrainingBar
from regard.training.run_folder import RunFolder
from regard.training.settings import Devices, TrainSettings
from regard.training.task import Task

TOLERATED_IN_HALF_PRECISION = 100
"""Losses in a row that may overflow in float16: the scale of the gradients is then lowered, and the update left out."""


def prepare(settings: TrainSettings) -> None:
    """Seed everything that is random, and silence Lightning's own messages; call it before any other step."""
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    lightning.seed_everything(settings.seed, verbose=False)


def fit(
    task: Task,
    loaders: tuple[BatchLoader, BatchLoader],
    folder: RunFolder,
    *,
    score: str,
    half_precision_on_gpu: bool,
    progress: bool,
    interruption: Interruption,
    devices: Devices,
    hyperparameters: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Train the task on the first loader, validate on the second, and leave it with the parameters of the best score.

    Returns its metrics: the last losses, the best score, epochs, steps, and which limit stopped it, if any. Training
    continues from the newest checkpoint of the folder, or starts where there is none. `score` is the name of a
    validation metric; higher is better. `half_precision_on_gpu` decides what precision "auto" means. `hyperparameters`
    are logged.
    """
    disable_cudnn_attention()
    resume_from = _resume(task, folder.checkpoints, progress=progress)
    callbacks = _callbacks(task, folder, score, interruption, progress=progress)
    trainer = _trainer(task, folder, callbacks, devices, half_precision_on_gpu=half_precision_on_gpu)
    if devices.count > 1:
        loaders[0].divide(processes.rank(), devices.count)
        loaders[1].deal(processes.rank(), devices.count)
    if is_first_process():
        _keep_earlier_log(folder.logs)
    with _without_needless_warnings(), _matmul_precision():
        _log_hyperparameters(trainer, dict(hyperparameters or {}), score)
        with interruption.deferred():
            trainer.fit(task, *loaders, ckpt_path=resume_from, weights_only=True)
    metrics: dict[str, Any] = task.metrics()
    metrics |= _take_best(task, folder.checkpoints, score)
    # `processed`, because `trainer.current_epoch` does not count the last epoch of a run that is resumed at its end.
    epochs = trainer.fit_loop.epoch_progress.current.processed  # type: ignore[attr-defined]
    metrics |= {"epochs": epochs, "steps": trainer.global_step, "seed": task.settings.seed}
    if not interruption.signum and (setting := _limit(trainer, task)):
        metrics["stopped"] = f"by {setting} in epoch {epochs} of {task.settings.epochs}"
    return metrics


def _limit(trainer: lightning.Trainer, task: Task) -> str:
    """The setting that ended the training before its last update, or nothing."""
    settings = task.settings
    if not trainer.should_stop or trainer.global_step >= task.total_steps:
        return ""
    timers = (each for each in trainer.callbacks if isinstance(each, Timer))  # type: ignore[attr-defined]
    if any((each.time_remaining() or 0.0) <= 0 for each in timers):
        return f"train.minutes = {settings.minutes:g}"
    return f"train.patience = {settings.patience}"


def _resume(task: Task, checkpoints: Path, *, progress: bool) -> Path | None:
    """The checkpoint for Lightning to go on from, if any.

    Its content is not kept: with the state of the optimizer, it is several times as large as the model.
    """
    newest = newest_checkpoint(checkpoints)
    if newest is None:
        return None
    path, content = newest
    begun = content["epoch"] + 1
    if begun > task.settings.epochs:
        raise OptionError(
            f"This run is in epoch {begun} already, and train.epochs = {task.settings.epochs}: give --train.epochs "
            f"{begun} or more to continue it."
        )
    if progress:
        sys.stderr.write(f"Resuming after {counted(content['global_step'], 'update')}.\n")
    if content["global_step"]:
        return path
    # Lightning would take a checkpoint of the beginning for one in the middle of an epoch.
    task.load_state_dict(content["state_dict"])
    task.on_load_checkpoint(content)
    return None


def _log_hyperparameters(trainer: lightning.Trainer, values: dict[str, Any], score: str) -> None:
    """Write the hyperparameters to hparams.yaml, and for TensorBoard, which compares runs by them and by the score."""
    for logger in trainer.loggers:
        logger.log_hyperparams(values)
        if isinstance(logger, TensorBoardLogger) and trainer.is_global_zero:
            # Lightning writes them only beside a first value of the score, and there is none yet.
            plain = {name: value if isinstance(value, int | float) else str(value) for name, value in values.items()}
            for summary in hparams(plain, {score: 0.0}):
                logger.experiment._get_file_writer().add_summary(summary)


def _take_best(task: Task, checkpoints: Path, score: str) -> dict[str, float]:
    """Load the parameters of the best score, and return it; without a validation, load the newest parameters."""
    best = checkpoints / BEST
    if best.is_file():
        try:
            content = read_checkpoint(best)
            task.load_state_dict(content["state_dict"])
            return {score: content["metrics"][score]}
        except TrainingError as error:
            message = f"{error} The newest parameters are used instead of the best."
            warnings.warn(message, RegardWarning, stacklevel=2)
    task.load_state_dict(read_checkpoint(step_files(checkpoints)[0])["state_dict"])
    return {}


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
        # Of processes that train together, a Task logs what it has already averaged over them.
        warnings.filterwarnings("ignore", message=".*sync_dist=True.*")
        # The log of an earlier run is kept under another name, and its checkpoints are meant to be there.
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


class _ValidateAtTheEnd(Checkpoint):
    """Validates where training ends, whatever `validate_every` is: what was learned last may be the best.

    As a subclass of Checkpoint it runs after all other callbacks, one of which may stop the training.
    """

    def on_train_epoch_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        if trainer.current_epoch + 1 == trainer.max_epochs:
            trainer.check_val_every_n_epoch = 1

    def on_train_batch_end(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if trainer.should_stop:
            trainer.check_val_every_n_epoch = 1


class _StopEarly(EarlyStopping):
    """Early stopping with the patience of the settings, whatever it was before, and that stays stopped when resumed."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict | {"patience": self.patience})

    def on_fit_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        if self.wait_count >= self.patience:
            trainer.should_stop = True


def _callbacks(
    task: Task, folder: RunFolder, score: str, interruption: Interruption, *, progress: bool
) -> list[Callback]:
    settings = task.settings
    half = settings.precision == "16-mixed"
    diverged = StopWhenDiverged(max(task.tolerated_losses, TOLERATED_IN_HALF_PRECISION if half else 0))
    # `save_last` of a ModelCheckpoint that monitors a score is written only when the score improves.
    newest = KeepNewest(
        folder.checkpoints,
        minutes=settings.checkpoint_minutes,
        keep=settings.keep_checkpoints,
        check=diverged.check,
        interruption=interruption,
    )
    best = KeepBest(folder.checkpoints, score)
    callbacks: list[Callback] = [
        best,
        newest,
        diverged,
        _NewOrderEachEpoch(),
        _ValidateAtTheEnd(),
        LearningRateMonitor("step"),
    ]
    if progress:
        callbacks.append(TrainingBar(score, task.unit))
    if settings.average_decay:
        callbacks.append(RunningAverage(settings.average_decay))
    if settings.patience:
        callbacks.append(_StopEarly(score, mode="max", patience=settings.patience))
    return callbacks


def _trainer(
    task: Task, folder: RunFolder, callbacks: list[Callback], devices: Devices, *, half_precision_on_gpu: bool
) -> lightning.Trainer:
    settings, on_gpu = task.settings, torch.cuda.is_available()
    precision: Any = settings.precision
    if precision == "auto":
        precision = "bf16-mixed" if on_gpu and half_precision_on_gpu else "32-true"
    logs = folder.logs
    # A process that trains alone is no task of SLURM to Lightning, whatever has started it.
    started_by = (environment(devices) if devices.count > 1 else None) or LightningEnvironment()
    return lightning.Trainer(
        accelerator="gpu" if on_gpu else "cpu",
        devices=devices.devices,
        num_nodes=devices.nodes,
        strategy=_strategy(task, devices),
        sync_batchnorm=on_gpu and devices.count > 1,
        precision=precision,
        max_epochs=settings.epochs,
        max_time=timedelta(minutes=settings.minutes) if settings.minutes else None,
        gradient_clip_val=settings.gradient_clip,
        check_val_every_n_epoch=settings.validate_every,
        callbacks=callbacks,
        plugins=[WholeCheckpoints(), started_by],
        logger=[
            CSVLogger(logs.parent, logs.name, ""),
            TensorBoardLogger(logs.parent, logs.name, "", default_hp_metric=False),
        ],
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
        num_sanity_val_steps=0,
        log_every_n_steps=20,
    )


def _strategy(task: Task, devices: Devices) -> Strategy | str:
    if devices.strategy == "fsdp":
        if task.settings.average_decay:
            raise OptionError("strategy 'fsdp' cannot average parameters: set --train.average_decay 0, or use 'ddp'.")
        return FSDPStrategy(state_dict_type="full")
    if devices.count == 1:
        return "auto"
    return DDPStrategy(find_unused_parameters=task.has_unused_parameters)
