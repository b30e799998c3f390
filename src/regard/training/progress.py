"""The progress of a training: one line on a terminal, a line per epoch in a log file."""

import time
from typing import Any

import lightning.pytorch as lightning
from lightning.pytorch.callbacks import Callback
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column

REFRESH_SECONDS = 0.5
"""Time between two readings of the metrics: each reading waits for the GPU."""
SMOOTHING = 0.8
"""How much of the shown loss is kept when the next one is read."""


class TrainingBar(Callback):
    """Shows the epoch, the steps, the smoothed loss, the throughput and the best validation score so far.

    A training step logs these without `prog_bar`, with which Lightning would wait for the GPU in every step.
    """

    def __init__(self, score: str, unit: str, console: Console | None = None) -> None:
        self.score, self.unit = score, unit
        self.console = console or Console(stderr=True)
        self._progress: Progress | None = None
        self._bar: TaskID | None = None
        self._read_at = -REFRESH_SECONDS
        self._loss: float | None = None
        self._best: float | None = None
        self._shown: dict[str, str] = {}
        self._speed = ""

    def state_dict(self) -> dict[str, Any]:
        """The best score so far, for a resumed training."""
        return {"best": self._best}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on with the best score so far."""
        self._best = state_dict["best"]

    def on_train_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Open the bar, where there is a terminal to draw it on."""
        if self.console.is_terminal:
            whole = Column(no_wrap=True)  # where there is little room, the bar becomes shorter, not a number
            self._progress = Progress(
                TextColumn("{task.description}", table_column=whole),
                BarColumn(None),
                MofNCompleteColumn(table_column=whole),
                TimeElapsedColumn(table_column=whole),
                TextColumn("{task.fields[metrics]}", table_column=whole),
                console=self.console,
            )
            self._progress.start()

    def on_train_epoch_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Begin the bar of an epoch."""
        if self._progress is None:
            return
        if self._bar is not None:
            self._progress.remove_task(self._bar)
        steps = int(trainer.num_training_batches)
        self._bar = self._progress.add_task(self._epoch(trainer), total=steps, metrics=self._fitting(trainer))

    def on_train_batch_end(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Advance the bar; the metrics are read now and then."""
        if self._bar is None:
            # Resumed within an epoch, whose start is not reported again.
            self.on_train_epoch_start(trainer, pl_module)
        if self._progress is None or self._bar is None:
            return
        now = time.perf_counter()
        if now - self._read_at >= REFRESH_SECONDS:
            self._read_at = now
            self._read(trainer)
        self._progress.update(self._bar, completed=batch_idx + 1, metrics=self._fitting(trainer))

    def on_validation_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Say that the model is being validated."""
        if self._progress is not None and self._bar is not None:
            self._progress.update(self._bar, metrics=self._line("validating"))

    def on_validation_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Show the score of the validation."""
        value = trainer.callback_metrics.get(self.score)
        if value is not None:
            self._best = max(float(value), float(value) if self._best is None else self._best)
        if self._progress is not None and self._bar is not None:
            self._progress.update(self._bar, metrics=self._fitting(trainer))

    def on_train_epoch_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Without a terminal, write a line for each epoch."""
        self._read(trainer)
        if self._progress is None:
            self.console.print(f"{self._epoch(trainer)}: {self._metrics()}", soft_wrap=True, highlight=False)

    def on_train_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Close the bar."""
        self._close()

    def on_exception(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, exception: BaseException
    ) -> None:
        """Close the bar, so that the message of the exception can be read."""
        self._close()

    def _close(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress, self._bar = None, None

    def _epoch(self, trainer: lightning.Trainer) -> str:
        return f"Epoch {trainer.current_epoch + 1}/{trainer.max_epochs}"

    def _read(self, trainer: lightning.Trainer) -> None:
        known = trainer.callback_metrics
        if "loss" in known:
            loss = float(known["loss"])
            self._loss = loss if self._loss is None else SMOOTHING * self._loss + (1 - SMOOTHING) * loss
            self._shown["loss"] = f"loss {self._loss:.3f}"
        if "reward" in known:
            self._shown["reward"] = f"reward {float(known['reward']):.3f}"
        if (speed := f"{self.unit}/s") in known:
            self._speed = f"{speed} {float(known[speed]):,.0f}"

    def _metrics(self) -> str:
        return self._line(*self._shown.values(), self._speed)

    def _line(self, *parts: str) -> str:
        """Parts of a line before the best score so far."""
        best = "" if self._best is None else f"best {self.score.removeprefix('valid_')} {self._best:.2f}"
        return "  ".join(filter(None, (*parts, best)))

    def _fitting(self, trainer: lightning.Trainer) -> str:
        """The metrics, without the throughput where the line would be too long for the terminal."""
        metrics, steps = self._metrics(), trainer.num_training_batches
        is_short = len(f"{self._epoch(trainer)}  {steps}/{steps} 0:00:00 {metrics}") <= self.console.width
        return metrics if is_short else self._line(*self._shown.values())
