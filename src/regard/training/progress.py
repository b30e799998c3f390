"""The progress of a training: one line on a terminal, a line per epoch in a log file, and the logs of its folder."""

import csv
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column

from regard.extras import require
from regard.training.settings import Logger
from regard.training.task import Task

REFRESH_SECONDS = 0.5
"""Time between two readings of the metrics: each reading waits for the GPU."""
SMOOTHING = 0.8
"""How much of the shown loss is kept when the next one is read."""


class TrainingBar:
    """Shows the epoch, the steps, the smoothed loss, the throughput and the best validation score so far."""

    def __init__(
        self, score: str, task: Task, epochs: int, steps: int, *, shown: bool = True, console: Console | None = None
    ) -> None:
        self.score, self.task, self.epochs, self.steps = score, task, epochs, steps
        self.console = console or Console(stderr=True)
        self.best: float | None = None
        self._shown = shown
        self._progress: Progress | None = None
        self._bar: TaskID | None = None
        self._epoch = ""
        self._read_at = -REFRESH_SECONDS
        self._loss: float | None = None
        self._parts: dict[str, str] = {}
        self._speed = ""

    def __enter__(self) -> "TrainingBar":
        """Open the bar, where there is a terminal to draw it on."""
        if self._shown and self.console.is_terminal:
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
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the bar, so that a message can be read."""
        if self._progress is not None:
            self._progress.stop()
            self._progress, self._bar = None, None

    def begin(self, epoch: int) -> None:
        """Begin the bar of an epoch, counted from 0."""
        self._epoch = f"Epoch {epoch + 1}/{self.epochs}"
        if self._progress is None:
            return
        if self._bar is not None:
            self._progress.remove_task(self._bar)
        self._bar = self._progress.add_task(self._epoch, total=self.steps, metrics=self._fitting())

    def advance(self, done: int) -> None:
        """Say how many batches of the epoch are done; the metrics are read now and then."""
        if self._progress is None or self._bar is None:
            return
        now = time.perf_counter()
        if now - self._read_at >= REFRESH_SECONDS:
            self._read_at = now
            self._take_metrics()
        self._progress.update(self._bar, completed=done, metrics=self._fitting())

    def validating(self) -> None:
        """Say that the model is being validated."""
        if self._progress is not None and self._bar is not None:
            self._progress.update(self._bar, metrics=self._line("validating"))

    def validated(self, best: float | None) -> None:
        """Show the best score so far."""
        self.best = best
        if self._progress is not None and self._bar is not None:
            self._progress.update(self._bar, metrics=self._fitting())

    def end(self) -> None:
        """Without a terminal, write a line for each epoch."""
        if self._shown and self._progress is None:
            self._take_metrics()
            self.console.print(f"{self._epoch}: {self._metrics()}", soft_wrap=True, highlight=False)

    def _take_metrics(self) -> None:
        known = self.task.metrics
        if "loss" in known:
            loss = float(known["loss"])
            self._loss = loss if self._loss is None else SMOOTHING * self._loss + (1 - SMOOTHING) * loss
            self._parts["loss"] = f"loss {self._loss:.3f}"
        if "reward" in known:
            self._parts["reward"] = f"reward {float(known['reward']):.3f}"
        if (speed := f"{self.task.unit}/s") in known:
            self._speed = f"{speed} {float(known[speed]):,.0f}"
        if "waiting" in known:
            self._speed += f"  waiting {float(known['waiting']):.0f} %"

    def _metrics(self) -> str:
        return self._line(*self._parts.values(), self._speed)

    def _line(self, *parts: str) -> str:
        """Parts of a line before the best score so far."""
        best = "" if self.best is None else f"best {self.score.removeprefix('valid_')} {self.best:.2f}"
        return "  ".join(filter(None, (*parts, best)))

    def _fitting(self) -> str:
        """The metrics, without the throughput where the line would be too long for the terminal."""
        metrics, steps = self._metrics(), self.steps
        is_short = len(f"{self._epoch}  {steps}/{steps} 0:00:00 {metrics}") <= self.console.width
        return metrics if is_short else self._line(*self._parts.values())


class Logs:
    """Writes metrics.csv and what the chosen logger keeps.

    The metrics.csv of an earlier run is kept under another name, since a new or resumed run would overwrite it.
    """

    def __init__(
        self, folder: Path, logger: Logger = "csv", settings: Mapping[str, Any] | None = None, *, writes: bool = True
    ) -> None:
        self.folder, self._logger, self._settings, self._writes = folder, logger, dict(settings or {}), writes
        self._names: list[str] = []
        self._rows: list[dict[str, Any]] = []
        self._curves: Any = None

    def __enter__(self) -> "Logs":
        if self._writes:
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder / "metrics.csv"
            if path.is_file():
                taken = [int(path.stem.removeprefix("metrics-")) for path in self.folder.glob("metrics-*[0-9].csv")]
                path.replace(self.folder / f"metrics-{max(taken, default=0) + 1}.csv")
            if self._logger != "csv":
                self._curves = LOGGERS[self._logger](self.folder, self._settings)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._curves is not None:
            self._curves.close()

    def write(self, metrics: Mapping[str, Any], step: int, epoch: int) -> None:
        """Write metrics after this number of updates, in an epoch that is counted from 0."""
        if not self._writes:
            return
        values = {name: float(value) for name, value in metrics.items()}
        if self._curves is not None:
            self._curves.write(values | {"epoch": float(epoch)}, step - 1)
        row = {"epoch": epoch, "step": step - 1} | values
        self._rows.append(row)
        is_new = not row.keys() <= set(self._names)
        self._names = sorted({*self._names, *row})
        # A column more needs another first line.
        with (self.folder / "metrics.csv").open("w" if is_new else "a", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, self._names, lineterminator="\n")
            if is_new:
                table.writeheader()
            table.writerows(self._rows if is_new else [row])

    def compare(self, scores: Mapping[str, float | None]) -> None:
        """Note how well the training has done, for loggers that compare runs by it."""
        if self._curves is not None:
            self._curves.compare({name: score for name, score in scores.items() if score is not None})


class TensorBoard:
    """Events in the folder of the logs: `tensorboard --logdir my-run/logs`."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        require("train.logger 'tensorboard'", "tensorboard")
        from torch.utils.tensorboard import SummaryWriter

        self._writer, self._settings = SummaryWriter(str(folder)), settings

    def write(self, values: Mapping[str, float], step: int) -> None:
        """Write a point of each curve."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def compare(self, scores: dict[str, float]) -> None:
        """Write by what runs differ, and how well they did."""
        plain = {
            name: value if isinstance(value, int | float) else str(value) for name, value in self._settings.items()
        }
        self._writer.add_hparams(plain, scores, run_name=".")

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()


class WandB:
    """A run of Weights & Biases, in the project of WANDB_PROJECT or "regard"; WANDB_MODE=offline keeps it here."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        wandb = require("train.logger 'wandb'", "wandb")
        project = os.environ.get("WANDB_PROJECT", "regard")
        self._run = wandb.init(project=project, name=folder.parent.name, dir=str(folder), config=settings)

    def write(self, values: Mapping[str, float], step: int) -> None:
        """Log a point of each curve."""
        self._run.log(dict(values), step=step)

    def compare(self, scores: dict[str, float]) -> None:
        """Note the best scores in the summary of the run."""
        self._run.summary.update({f"best_{name}": score for name, score in scores.items()})

    def close(self) -> None:
        """Finish the run."""
        self._run.finish()


class MLflow:
    """A run of MLflow, in the experiment that MLFLOW_EXPERIMENT_NAME names, on the server of MLFLOW_TRACKING_URI."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        mlflow = require("train.logger 'mlflow'", "mlflow")
        self._mlflow = mlflow
        self._run = mlflow.start_run(run_name=folder.parent.name, nested=mlflow.active_run() is not None)
        mlflow.log_params(settings)

    def write(self, values: Mapping[str, float], step: int) -> None:
        """Log a point of each curve."""
        self._mlflow.log_metrics(dict(values), step=step, run_id=self._run.info.run_id)

    def compare(self, scores: dict[str, float]) -> None:
        """Log the best scores."""
        best = {f"best_{name}": score for name, score in scores.items()}
        self._mlflow.log_metrics(best, run_id=self._run.info.run_id)

    def close(self) -> None:
        """End the run."""
        self._mlflow.end_run()


LOGGERS: dict[str, Callable[[Path, dict[str, Any]], Any]] = {
    "tensorboard": TensorBoard,
    "wandb": WandB,
    "mlflow": MLflow,
}
"""What keeps the curves of a training beside metrics.csv."""
