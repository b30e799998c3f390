"""The task of a training, a model and its loss, with what every system needs: metrics, optimizer, rate, time limit."""

import time
from collections.abc import Hashable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from regard.training import processes
from regard.training.schedules import Plateau, learning_rate_factor
from regard.training.settings import TrainSettings


class Task(nn.Module):
    """A model in training; subclasses define `loss` and `validate`, and `validated` where they need it."""

    unit: ClassVar[str] = "examples"
    """What the throughput counts: it is logged as "{unit}/s"."""
    has_unused_parameters: ClassVar[bool] = False
    """Whether some steps compute no gradient of some parameters, for which processes that train together have to look
    in every step."""
    is_recordable: bool = False
    """Whether a GPU may replay updates without running `loss` again, where a batch has the shapes of an earlier one.

    Then `loss` gets all tensors on the GPU and reads none of their values, and whatever else it uses changes only with
    `variant`."""
    tolerated_losses: ClassVar[int] = 0
    """How many losses in a row may be NaN or infinite, for a task that leaves out updates whose gradients overflow."""

    def __init__(self, settings: TrainSettings, total_steps: int) -> None:
        super().__init__()
        self.settings, self.total_steps = settings, total_steps
        self.step = 0
        """The number of updates so far."""
        self.metrics: dict[str, Any] = {}
        """The last value of everything that was logged, also before the training was resumed."""
        self.unwritten: dict[str, Any] = {}
        """What has been logged since the logs were written."""
        self.plateau = Plateau()
        self.began = time.perf_counter()
        """When the training would have begun without interruption."""
        self.processed = 0
        """What was counted since the throughput was measured."""
        self.mean_over: int | float | Tensor = 1.0
        """What the loss of the last batch is a mean over: its `amount`, unless `loss` sets something else."""
        self.is_filler = False
        """Whether this process only follows the others, because there is no part of the batch for it."""
        self.sums_parts = False
        """Whether batches come in parts, whose logged values are averaged."""
        self._means: dict[str, tuple[Tensor, float | Tensor]] = {}
        self._first_clock: float | None = None

    def prepared(self, batch: Any) -> Any:
        """What `loss` takes of a batch: here is drawn what depends on the number of the update."""
        return batch

    def amount(self, batch: Any) -> int:
        """How many examples a prepared batch has, or what else the throughput counts (`unit`)."""
        return len(batch)

    def variant(self) -> Hashable:
        """By what updates differ apart from their batch, such as a stage of the training; see `is_recordable`."""
        return None

    def loss(self, batch: Any) -> Tensor:
        """The loss of a prepared batch to learn from."""
        raise TypeError(f"{type(self).__name__} does not define loss(batch).")

    def validate(self, batch: Any) -> None:
        """Log metrics of a batch to validate with, with their `batch_size`, or collect what `validated` needs."""
        raise TypeError(f"{type(self).__name__} does not define validate(batch).")

    def validated(self) -> None:
        """Log metrics of a whole validation, once all of its batches have been seen."""

    def forward(self, batch: Any) -> Tensor:
        """The loss, for the wrapper that averages gradients over processes."""
        return self.loss(batch)

    @property
    def device(self) -> torch.device:
        """The device of the parameters."""
        return next(self.parameters()).device

    def make_optimizer(self) -> torch.optim.Optimizer:
        """AdamW with the betas and epsilon of Vaswani et al. 2017, section 5.3."""
        settings = self.settings
        return torch.optim.AdamW(
            self.parameters(),
            lr=settings.learning_rate,
            betas=(0.9, 0.98),
            eps=1e-9,
            weight_decay=settings.weight_decay,
            fused=self.may_fuse or None,
        )

    @property
    def may_fuse(self) -> bool:
        """Whether one kernel may update all parameters; with scaled gradients it would remove the scale too late."""
        return self.device.type == "cuda" and self.settings.precision != "16-mixed"

    def clip(self) -> None:
        """Clip the norm of the gradients."""
        if self.settings.gradient_clip:
            nn.utils.clip_grad_norm_(self.parameters(), self.settings.gradient_clip)

    def log(self, name: str, value: float | Tensor, *, batch_size: int | float | Tensor | None = None) -> None:
        """Log a metric of a batch, or of a validation: the mean over its batches, weighted by their `batch_size`.

        Of processes that train together, each logs the mean over its own part of a batch to learn from, and the mean
        over the whole batch is recorded. A metric without `batch_size` is the same in all processes.
        """
        found = value.detach() if isinstance(value, Tensor) else torch.tensor(value, dtype=torch.float32)
        weight: float | Tensor = 1 if batch_size is None else batch_size * (not (self.training and self.is_filler))
        if batch_size is not None and processes.count() > 1:
            found = found.to(self.device, torch.float32) * weight
            total, sizes = processes.summed(torch.stack([found, torch.full_like(found, int(weight))]))
            found, weight = total / sizes.clamp_min(1), sizes if self.training else int(sizes)
        if self.training and not self.sums_parts:
            self.metrics[name] = self.unwritten[name] = found
            return
        total, count = self._means.get(name, (torch.zeros_like(found), 0))
        self._means[name] = total + found * weight, count + weight

    def take_parts(self) -> None:
        """Log the means over the parts of a batch."""
        means = {name: total / count for name, (total, count) in self._means.items()}
        self._means = {}
        self.metrics |= means
        self.unwritten |= means

    def take_means(self) -> dict[str, float]:
        """The metrics of the validation that has just ended."""
        means = {name: float(total / count) for name, (total, count) in self._means.items()}
        self._means = {}
        self.metrics |= means
        return means

    def rate(self) -> float:
        """The learning rate of the next update, as a fraction of the highest."""
        settings = self.settings
        warmup = max(settings.warmup, 1 / self.total_steps)
        rate = learning_rate_factor(settings.schedule, self.fraction_done(self.step + 1), warmup)
        return rate * self.plateau.factor if settings.schedule == "plateau" else rate

    def fraction_done(self, step: int) -> float:
        """The fraction of the schedule that is done: of the steps or, by the clock, of the minutes if it is more."""
        done = step / self.total_steps
        if self.settings.schedule_by == "clock":
            done = max(done, self.seconds() / (60 * self.settings.minutes))
        return min(1.0, done)

    def seconds(self) -> float:
        """How long the training has taken so far, before it was resumed too."""
        return time.perf_counter() - self.began if self._first_clock is None else self._first_clock

    def follow_clock(self) -> None:
        """With a time limit, follow the clock of the first process: all must stop, and learn, alike."""
        if self.settings.minutes and processes.count() > 1:
            self._first_clock = processes.from_first(lambda: time.perf_counter() - self.began)
