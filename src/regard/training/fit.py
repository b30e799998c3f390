"""The training loop: updates, validations, checkpoints, and what ends it."""

import math
import random
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.data.batches import BatchLoader
from regard.errors import OptionError, RegardWarning, TrainingError, counted
from regard.kernels.dot_product import disable_cudnn_attention
from regard.training import processes
from regard.training.average import RunningAverage
from regard.training.batch_sizes import few_updates
from regard.training.checkpoints import (
    BEST,
    FORMAT,
    KeepNewest,
    newest_checkpoint,
    read_checkpoint,
    step_files,
    write_checkpoint,
)
from regard.training.divergence import Divergence
from regard.training.interruption import Interruption
from regard.training.learning_rates import scale_rates
from regard.training.processes import agreed, connected, is_first_process
from regard.training.progress import Logs, TrainingBar
from regard.training.recording import RecordedUpdates
from regard.training.run_folder import RunFolder
from regard.training.schedules import Plateau
from regard.training.settings import Devices
from regard.training.task import Task

LOG_STEPS = 20
"""Updates between two lines of the logs, and between two measurements of the throughput."""
MUCH_WAITING = 0.2
"""The fraction of a training on a GPU that may be spent waiting for data before a warning."""
HALF = {"bf16-mixed": torch.bfloat16, "16-mixed": torch.float16}
"""The number formats of the precisions that mix two."""
TOLERATED_IN_HALF_PRECISION = 100
"""Losses in a row that may overflow in float16: the scale of the gradients is then lowered, and the update left out."""
OF_DEVICE = ("lr", "capturable", "fused", "foreach")
"""Settings of an optimizer that follow from the device; a learning rate may be a tensor there."""


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
    settings, batches = task.settings, loaders[0]
    training = Training(task, loaders, score, devices, half_precision_on_gpu=half_precision_on_gpu)
    training.resume(folder.checkpoints, progress=progress)
    if progress and (advice := few_updates(task, len(batches))):
        sys.stderr.write(advice)
    newest = KeepNewest(folder.checkpoints, training.content, settings, writes=is_first_process())
    with ExitStack() as stack:
        stack.enter_context(matmul_precision())
        stack.enter_context(interruption.deferred())
        logs = stack.enter_context(Logs(folder.logs, settings.logger, hyperparameters, writes=is_first_process()))
        bar = stack.enter_context(TrainingBar(score, task, settings.epochs, len(batches), shown=progress))
        bar.best = training.best
        stack.callback(training.close)
        training.begin()
        if not task.step:
            # The beginning, so that a folder that cannot be written to is noticed at once.
            newest.write()
        stopped_by = training.limit() if task.step else ""
        while training.epoch < settings.epochs and not stopped_by:
            batches.set_epoch(training.epoch)
            bar.begin(training.epoch)
            for batch in training.waiting.through(batches):
                loss = training.update(batch)
                training.divergence.update(loss, task.step)
                bar.advance(batches.done)
                if task.step % LOG_STEPS == 0:
                    training.log(logs)
                stopped_by = training.limit()
                if not batches.is_at_end:
                    # Written before the validation that follows a stop: a resumed run ends the epoch, then validates.
                    is_interrupted = agreed(bool(interruption.signum))
                    if is_interrupted or agreed(bool(stopped_by) or newest.is_due()):
                        newest.write()
                    if is_interrupted:
                        interruption.leave()
                if stopped_by:
                    break
            is_last = stopped_by or training.epoch + 1 == settings.epochs
            if is_last or (training.epoch + 1) % settings.validate_every == 0:
                bar.validating()
                training.validate(logs, folder.checkpoints / BEST)
                bar.validated(training.best)
            bar.end()
            if batches.is_at_end:
                training.epoch += 1
                stopped_by = stopped_by or training.limit()
                newest.write()
                if agreed(bool(interruption.signum)):
                    interruption.leave()
        logs.compare({score: training.best})
    metrics: dict[str, Any] = {name: float(value) for name, value in task.metrics.items()}
    metrics |= _take_best(task, folder.checkpoints, score)
    epochs = math.ceil(task.step / len(batches))
    metrics |= {"epochs": epochs, "steps": task.step, "seed": settings.seed}
    if advice := training.waiting.advice():
        warnings.warn(advice, RegardWarning, stacklevel=2)
    if stopped_by and not interruption.signum and task.step < task.total_steps:
        metrics["stopped"] = f"by {stopped_by} in epoch {epochs} of {settings.epochs}"
    return metrics


class Training:
    """The training of a task: its device and optimizer, the average of its parameters, the epoch and the best score.

    The task itself has the model, the number of updates, the metrics, and what the learning rate depends on.
    """

    def __init__(
        self,
        task: Task,
        loaders: tuple[BatchLoader, BatchLoader],
        score: str,
        devices: Devices,
        *,
        half_precision_on_gpu: bool,
    ) -> None:
        self.task, (self.batches, self.valid_batches), self.score = task, loaders, score
        settings, on_gpu = task.settings, torch.cuda.is_available()
        precision = settings.precision
        if precision == "auto":
            precision = "bf16-mixed" if on_gpu and half_precision_on_gpu else "32-true"
        disable_cudnn_attention()
        self.fabric = connected(devices, precision, find_unused_parameters=task.has_unused_parameters)
        self.precision = self.fabric.strategy.precision
        self._is_joint = devices.count > 1
        if self._is_joint:
            self.batches.divide(processes.rank(), devices.count)
            self.valid_batches.deal(processes.rank(), devices.count)
            if on_gpu:
                nn.SyncBatchNorm.convert_sync_batchnorm(task)
        task.to(self.fabric.device)
        if settings.accumulate > 1:
            self.batches.split(settings.accumulate)
            task.sums_parts = True
        # Fabric's own wrapper of a model would also round the numbers in a batch to the precision of its products.
        self.wrapped_task = self.fabric.strategy.setup_module(task)
        self.optimizer = task.make_optimizer()
        scale_rates(self.optimizer, task)
        for group in self.optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
        self._recorded = RecordedUpdates(task, self._learn) if self._is_recordable() else None
        self.average = RunningAverage(task, settings.average_decay) if settings.average_decay else None
        half = settings.precision == "16-mixed"
        tolerated = max(task.tolerated_losses, TOLERATED_IN_HALF_PRECISION if half else 0)
        self.divergence = Divergence(task, self.batches, tolerated)
        self.waiting = Waiting(self.fabric.device)
        self.epoch = 0
        """How many epochs are complete."""
        self.best: float | None = None
        """The best score of a validation so far."""
        self.failures = 0
        """How many validations in a row have not been better than the best one."""
        self._random: dict[str, Any] | None = None
        self._seconds = self._measured = 0.0
        self._set_rates(self._next_rates())

    def update(self, batch: Any) -> Tensor:
        """One update: the loss of a batch and its gradients, clipped, and a step of the optimizer."""
        task = self.task
        if self._is_joint:
            task.is_filler = self.batches.is_filler
        if task.settings.accumulate > 1:
            loss = self._learn_parts([(task.prepared(part), fills) for part, fills in batch])
        else:
            batch = task.prepared(batch)
            task.mean_over = task.amount(batch)
            task.processed += task.mean_over
            loss = self._learn(self._on_device(batch)) if self._recorded is None else self._recorded(batch)
        task.step += 1
        if task.step % LOG_STEPS == 0:
            self._log_rates()
        # Before a validation, of which a plateau takes notice one update later.
        self._set_rates(self._next_rates())
        if self.average is not None:
            self.average.update(task.step)
        return loss

    def _learn(self, batch: Any) -> Tensor:
        """Learn from a batch whose tensors are where the task computes, and return its loss."""
        self.optimizer.zero_grad()
        with self._autocast():
            loss: Tensor = self.wrapped_task(batch)
        self.fabric.backward(self._shared(loss) if self._is_joint else loss)
        self._step()
        return loss.detach()

    def _step(self) -> None:
        self.precision.unscale_gradients(self.optimizer)
        self.task.clip()
        self.precision.optimizer_step(self.optimizer)

    def close(self) -> None:
        """Free what the updates have recorded."""
        if self._recorded is not None:
            self._recorded.close()

    def validate(self, logs: Logs, best: Path) -> None:
        """Validate, and keep the parameters if they are the best so far."""
        task = self.task
        with self._average_in_place(), _evaluating(task), torch.inference_mode():
            for batch in self.valid_batches:
                batch = self._on_device(batch)
                with self._autocast():
                    task.validate(batch)
            task.validated()
        means = task.take_means()
        if self.score not in means:
            raise TrainingError(f"The validation of {type(task).__name__} logs {sorted(means)}, but no {self.score!r}.")
        score = -math.inf if math.isnan(means[self.score]) else means[self.score]
        task.plateau.update(score, warm=task.fraction_done(task.step) > task.settings.warmup)
        logs.write(means, task.step, self.epoch)
        is_better = self.best is None or score > self.best
        self.failures = 0 if is_better else self.failures + 1
        if is_better:
            self.best = score
            self.divergence.check()
            if is_first_process():
                write_checkpoint({"format": FORMAT, **self._parameters(), "metrics": self._metrics()}, best)
        self._measured, task.processed = time.perf_counter(), 0

    def limit(self) -> str:
        """The setting that ends the training now, or nothing."""
        settings = self.task.settings
        self.task.follow_clock()
        if settings.minutes and self.task.seconds() >= 60 * settings.minutes:
            return f"train.minutes = {settings.minutes:g}"
        return f"train.patience = {settings.patience}" if 0 < settings.patience <= self.failures else ""

    def log(self, logs: Logs) -> None:
        """Measure the throughput, and write what was logged since the last time."""
        task, now = self.task, time.perf_counter()
        task.log("waiting", 100 * self.waiting.fraction)
        speed = torch.tensor(task.processed / (now - self._measured), device=task.device)
        task.log(f"{task.unit}/s", processes.summed(speed))
        self._measured, task.processed = now, 0
        logs.write(task.unwritten, task.step, self.epoch)
        task.unwritten = {}

    def content(self) -> dict[str, Any]:
        """A checkpoint of this moment; every process takes part in it."""
        self.divergence.check()
        task = self.task
        first, *others = processes.gathered(_random_states(task.device))
        return {
            "format": FORMAT,
            **self._parameters(),
            "current": None if self.average is None else task.state_dict(),
            "optimizer": self._optimizer_state(),
            "precision": self.precision.state_dict(),
            "batches": self.batches.state_dict(),
            "epoch": self.epoch,
            "global_step": task.step,
            "best": self.best,
            "failures": self.failures,
            "plateau": asdict(task.plateau),
            "seconds": task.seconds(),
            "random": first,
            "random_of_others": others,
            "learning_rate": task.settings.learning_rate,
            "metrics": self._metrics(),
        }

    def resume(self, checkpoints: Path, *, progress: bool) -> None:
        """Go on from the newest checkpoint, if any, with the learning rate of the settings if it has been changed."""
        task, settings = self.task, self.task.settings
        found = newest_checkpoint(checkpoints)
        if found is None:
            return
        _, content = found
        begun = math.ceil(content["global_step"] / len(self.batches))
        if begun > settings.epochs:
            raise OptionError(
                f"This run is in epoch {begun} already, and train.epochs = {settings.epochs}: give --train.epochs "
                f"{begun} or more to continue it."
            )
        if progress:
            sys.stderr.write(f"Resuming after {counted(content['global_step'], 'update')}.\n")
        task.load_state_dict(content["current"] or content["state_dict"])
        if self.average is not None:
            self.average.restore(content["state_dict"])
        self._restore_optimizer(content["optimizer"], settings.learning_rate / content["learning_rate"])
        self.precision.load_state_dict(content["precision"])
        self.batches.load_state_dict(content["batches"])
        self.epoch, task.step = content["epoch"], content["global_step"]
        self.best, self.failures = content["best"], content["failures"]
        task.plateau, task.metrics = Plateau(**content["plateau"]), content["metrics"]
        self._seconds = content["seconds"]
        kept = [content["random"], *content["random_of_others"]][processes.rank() :]
        self._random = kept[0] if kept else None

    def begin(self) -> None:
        """Start the clock and, before anything is drawn or fetched, restore the random states of a resumed training.

        Processes that train together have random numbers of their own, those that join a resumed training new ones.
        """
        task = self.task
        if processes.rank() and (self._random is None or not task.step):
            own = random.Random(f"{task.settings.seed} {processes.rank()} {task.step}")  # noqa: S311
            seed_everything(own.getrandbits(32))
        elif self._random is not None:
            _restore_random_states(self._random, task.device)
        self._random = None
        self._measured = time.perf_counter()
        task.began = self._measured - self._seconds

    def _autocast(self) -> AbstractContextManager[Any]:
        """Half precision, if it was chosen; gradients of a weight that is used again are added in float32.

        Fabric's own would keep the weight in half precision for the next use, and add its gradients there.
        """
        kind = HALF.get(self.precision.precision)
        return torch.autocast(self.fabric.device.type, kind, cache_enabled=False) if kind else nullcontext()

    def _on_device(self, batch: Any) -> Any:
        device = self.fabric.device
        return batch if device.type == "cpu" else self.fabric.to_device(batch)

    def _shared(self, loss: Tensor) -> Tensor:
        """Weight the loss of a process by its part of the batch: the mean over processes is then that of the batch."""
        weight = torch.as_tensor(self.task.mean_over, dtype=loss.dtype, device=loss.device)
        weight = weight * (not self.task.is_filler)
        return loss * (weight * processes.count() / processes.summed(weight))

    def _learn_parts(self, parts: list[tuple[Any, bool]]) -> Tensor:
        """Learn from a batch in parts, whose gradients are weighted by what the loss of each is a mean over."""
        task, is_filler = self.task, self.task.is_filler
        self.optimizer.zero_grad()
        loss = weights = torch.zeros((), device=task.device)
        for number, (part, fills) in enumerate(parts, 1):
            task.is_filler = is_filler or fills
            task.mean_over = task.amount(part)
            task.processed += task.mean_over
            # Processes add up their gradients once.
            is_apart = self._is_joint and number < len(parts)
            with self.wrapped_task.no_sync() if is_apart else nullcontext():
                with self._autocast():
                    mean: Tensor = self.wrapped_task(self._on_device(part))
                weight = torch.as_tensor(task.mean_over, dtype=mean.dtype, device=mean.device) * (not task.is_filler)
                self.fabric.backward(mean * weight)
            loss, weights = loss + mean.detach() * weight, weights + weight
        task.is_filler = is_filler
        # Over processes, the gradients are a mean, and the weights a sum.
        grads = [each.grad for each in task.parameters() if each.grad is not None]
        torch._foreach_mul_(grads, processes.count() / processes.summed(weights))
        self._step()
        task.take_parts()
        # A process whose parts are all fillers has weight 0, and no loss of its own.
        return torch.where(weights > 0, loss / weights, 0.0)

    def _is_recordable(self) -> bool:
        """Whether updates run as CUDA graphs; the optimizer then keeps its learning rates on the GPU."""
        task, settings, groups = self.task, self.task.settings, self.optimizer.param_groups
        if not (task.is_recordable and task.device.type == "cuda" and all("capturable" in group for group in groups)):
            return False
        if self._is_joint or settings.accumulate > 1 or settings.precision == "16-mixed":
            return False
        for group in groups:
            group["capturable"], group["lr"] = True, torch.tensor(group["lr"], device=task.device)
        return True

    def _log_rates(self) -> None:
        name = f"lr-{type(self.optimizer).__name__}"
        for number, rate in enumerate(self._rates, 1):
            self.task.log(name if len(self._rates) == 1 else f"{name}/pg{number}", rate)

    def _set_rates(self, rates: list[float]) -> None:
        """Set the learning rates of the next update."""
        self._rates = rates
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            if self._recorded is None:
                group["lr"] = rate
            else:
                group["lr"].fill_(rate)

    def _next_rates(self) -> list[float]:
        rate = self.task.rate()
        return [group["initial_lr"] * rate for group in self.optimizer.param_groups]

    def _optimizer_state(self) -> dict[str, Any]:
        """The state of the optimizer, with learning rates as numbers."""
        state = self.optimizer.state_dict()
        groups = [group | {"lr": rate} for group, rate in zip(state["param_groups"], self._rates, strict=True)]
        return state | {"param_groups": groups}

    def _restore_optimizer(self, state: dict[str, Any], factor: float) -> None:
        """Continue with a state and its learning rates times a factor; what follows from the device is kept."""
        groups, rates = [], []
        for group, own in zip(state["param_groups"], self.optimizer.param_groups, strict=True):
            rates.append(group["lr"] * factor)
            kept = {name: own[name] for name in OF_DEVICE if name in own}
            groups.append(group | kept | {"initial_lr": group["initial_lr"] * factor})
        self.optimizer.load_state_dict(state | {"param_groups": groups})
        self._set_rates(rates)

    def _metrics(self) -> dict[str, float]:
        return {name: float(value) for name, value in self.task.metrics.items()}

    def _parameters(self) -> dict[str, Any]:
        """The parameters that are validated and saved."""
        return {"state_dict": self.task.state_dict() if self.average is None else self.average.state_dict()}

    @contextmanager
    def _average_in_place(self) -> Iterator[None]:
        """While the block runs, the task has the average of its parameters."""
        if self.average is not None:
            self.average.swap()
        try:
            yield
        finally:
            if self.average is not None:
                self.average.swap()


class Waiting:
    """Measures the part of a training that was spent waiting for data.

    A GPU computes while the next batch is prepared: only batches that come when it has nothing left to do count.
    """

    def __init__(self, device: torch.device) -> None:
        self._done = torch.cuda.Event() if device.type == "cuda" else None
        self._waited = self._trained = 0.0

    def through(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Measure what it takes to get each batch, and to train with it."""
        remaining, asked = iter(batches), time.perf_counter()
        for batch in remaining:
            came = time.perf_counter()
            if self._done is None or self._done.query():
                self._waited += came - asked
            yield batch
            if self._done is not None:
                self._done.record()
            self._trained += time.perf_counter() - asked
            asked = time.perf_counter()

    @property
    def fraction(self) -> float:
        """The waiting as a fraction of the training so far, validations and checkpoints left out."""
        return self._waited / self._trained if self._trained else 0.0

    def advice(self) -> str:
        """What to do about a GPU that waits too much."""
        if self._done is None or self.fraction <= MUCH_WAITING:
            return ""
        return (
            f"The GPU waited for data during {self.fraction:.0%} of the training. Prepare batches in more processes "
            "(--train.workers, where the system has it), make them larger, or leave out data.bpe_dropout."
        )


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
def _evaluating(task: nn.Module) -> Iterator[None]:
    """Evaluation mode while the block runs; parts that are in it anyway, such as frozen ones, stay so afterwards."""
    training = [module for module in task.modules() if module.training]
    task.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


@contextmanager
def matmul_precision() -> Iterator[None]:
    """On a GPU, let float32 matrix products round their factors to TF32 while training, which is much faster."""
    before = torch.get_float32_matmul_precision()
    if torch.cuda.is_available():
        torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def seed_everything(seed: int) -> None:
    """Seed all generators that a model, a loss or a part of the user's own may draw from."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def _random_states(device: torch.device) -> dict[str, Any]:
    """The states of all generators that a model, a loss or a part of the user's own may draw from."""
    _, keys, *numbers = np.random.get_state(legacy=True)
    return {
        "cpu": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state(device) if device.type == "cuda" else None,
        "python": random.getstate(),
        # Checkpoints hold tensors and plain values only, and torch has no uint32 on every path.
        "numpy": (torch.from_numpy(np.asarray(keys).astype(np.int64)), *(float(number) for number in numbers)),
    }


def _restore_random_states(states: dict[str, Any], device: torch.device) -> None:
    torch.set_rng_state(states["cpu"].cpu())
    if device.type == "cuda" and states["cuda"] is not None:
        torch.cuda.set_rng_state(states["cuda"].cpu(), device)
    version, inner, gauss = states["python"]
    random.setstate((version, tuple(inner), gauss))
    keys, position, has_gauss, cached = states["numpy"]
    np.random.set_state(("MT19937", keys.cpu().numpy().astype(np.uint32), int(position), int(has_gauss), cached))
