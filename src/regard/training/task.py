"""What training does for every system: the learning rate, the time limit, the throughput, and exact resuming."""

import math
import random
import time
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import lightning.pytorch as lightning
import numpy as np
import torch
from lightning.pytorch.strategies import FSDPStrategy
from torch import Tensor

from regard.data.batches import BatchLoader
from regard.training import processes
from regard.training.settings import TrainSettings

THROUGHPUT_STEPS = 20
"""Steps between two measurements of the throughput."""


def learning_rate_factor(schedule: str, done: float, warmup: float) -> float:
    """The learning rate as a fraction of the highest, after a fraction `done` of the training."""
    rising = min(1.0, done / warmup)
    match schedule:
        case "one_cycle":
            falling = max(0.0, done - warmup) / max(1e-9, 1 - warmup)
            return rising * max(0.01, 0.5 * (1 + math.cos(math.pi * falling)))
        case "inverse_sqrt":
            return min(rising, math.sqrt(warmup / done))
        case _:
            return rising


@dataclass
class Plateau:
    """Halves the learning rate after each validation that is not better than the best before it, down to 1 %.

    Luong et al. 2015 (section 4.1) halve it after each epoch from a fixed one on; here the validation score decides.
    """

    factor: float = 1.0
    best: float = -math.inf

    def update(self, score: float, *, warm: bool) -> None:
        """Take a validation into account; nothing is halved while the learning rate still rises."""
        if warm and score <= self.best:
            self.factor = max(0.01, self.factor / 2)
        self.best = max(self.best, score)


class Task(lightning.LightningModule):
    """A model in training; subclasses define the steps of training and validation."""

    unit: ClassVar[str] = "examples"
    """What the throughput counts: it is logged as "{unit}/s"."""
    has_unused_parameters: ClassVar[bool] = False
    """Whether some steps compute no gradient of some parameters, for which processes that train together have to look
    in every step."""
    tolerated_losses: ClassVar[int] = 0
    """How many losses in a row may be NaN or infinite, for a task that leaves out updates whose gradients overflow."""

    def __init__(self, settings: TrainSettings, total_steps: int) -> None:
        super().__init__()
        self.settings, self.total_steps = settings, total_steps
        self.plateau = Plateau()
        self._random: dict[str, Any] | None = None
        self._metrics_before: dict[str, float] = {}
        self._seconds = 0.0
        self._began = time.perf_counter()
        self._throughput_began = time.perf_counter()
        self._processed = 0
        self._weight: float | Tensor = 1.0
        self._first_clock: float | None = None

    def make_optimizer(self) -> torch.optim.Optimizer:
        """AdamW with the betas and epsilon of Vaswani et al. 2017, section 5.3."""
        settings = self.settings
        return torch.optim.AdamW(
            self.parameters(),
            lr=settings.learning_rate,
            betas=(0.9, 0.98),
            eps=1e-9,
            weight_decay=settings.weight_decay,
            # With scaled gradients the fused form removes the scale only after clipping.
            fused=self.device.type == "cuda" and settings.precision != "16-mixed",
        )

    def configure_gradient_clipping(
        self,
        optimizer: torch.optim.Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Clip the norm; Lightning itself refuses to for any fused optimizer in half precision, scaled or not."""
        if gradient_clip_val and isinstance(self.trainer.strategy, FSDPStrategy):
            sharded: Any = self.trainer.strategy.model
            sharded.clip_grad_norm_(gradient_clip_val)
        elif gradient_clip_val:
            torch.nn.utils.clip_grad_norm_(self.parameters(), gradient_clip_val)

    def count(self, amount: int, index: int, *, weight: float | Tensor | None = None) -> None:
        """Count what a training step processed, and log the throughput now and then.

        `weight` is the number that the loss of the step is a mean over, if it is not `amount`.
        """
        self._weight = amount if weight is None else weight
        self._processed += amount
        if index % THROUGHPUT_STEPS == THROUGHPUT_STEPS - 1:
            now = time.perf_counter()
            speed = torch.tensor(self._processed / (now - self._throughput_began), device=self.device)
            self.log(f"{self.unit}/s", processes.summed(speed))
            self._throughput_began, self._processed = now, 0

    def metrics(self) -> dict[str, float]:
        """The last value of everything that was logged, also before the training was resumed."""
        logged = {name: float(value) for name, value in self.trainer.callback_metrics.items()}
        return self._metrics_before | logged

    def log(self, name: str, value: Any, *, batch_size: int | None = None, **options: Any) -> None:  # type: ignore[override]
        """Log a metric of a step, or of an epoch.

        Of processes that train together, each logs the mean over its own part of a step's batch, which has
        `batch_size` items; the mean over the whole batch is recorded. A metric without `batch_size` is the same in all
        processes.
        """
        if batch_size is not None and processes.count() > 1:
            size = 0 if self._is_filler() else batch_size
            value = torch.as_tensor(value, dtype=torch.float32, device=self.device) * size
            total, sizes = processes.summed(torch.stack([value, torch.full_like(value, size)]))
            # Only the mean of a validation is weighted by the size of its batches.
            value, batch_size = total / sizes, 1 if self.training else int(sizes)
        super().log(name, value, batch_size=batch_size, **options)

    def backward(self, loss: Tensor, *args: Any, **options: Any) -> None:
        """Weight the loss of a process by its part of the batch: the mean over processes is then that of the batch."""
        if processes.count() > 1:
            weight = torch.as_tensor(0.0 if self._is_filler() else self._weight, dtype=loss.dtype, device=loss.device)
            loss = loss * (weight * processes.count() / processes.summed(weight))
        super().backward(loss, *args, **options)

    def _is_filler(self) -> bool:
        loader = self.trainer.train_dataloader
        return self.training and isinstance(loader, BatchLoader) and loader.is_filler

    def note_validation(self, score: float) -> None:
        """Report the score of a validation to the schedule of the learning rate."""
        self.plateau.update(score, warm=self.fraction_done(self.global_step) > self.settings.warmup)

    def configure_optimizers(self) -> Any:
        """The optimizer and its learning rate schedule."""
        settings = self.settings
        optimizer = self.make_optimizer()
        self._began = time.perf_counter() - self._seconds

        def factor(step: int) -> float:
            warmup = max(settings.warmup, 1 / self.total_steps)
            rate = learning_rate_factor(settings.schedule, self.fraction_done(step + 1), warmup)
            return rate * self.plateau.factor if settings.schedule == "plateau" else rate

        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Save what decides how training continues: random states, the time spent, the halvings of the plateau."""
        checkpoint["plateau"] = asdict(self.plateau)
        checkpoint["seconds"] = time.perf_counter() - self._began
        first, *others = processes.gathered(_random_states(self.device))
        checkpoint["random"], checkpoint["random_of_others"] = first, others
        checkpoint["learning_rate"] = self.settings.learning_rate
        checkpoint["metrics"] = self.metrics()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Continue from there, with the learning rate of the settings if it has been changed."""
        self.plateau = Plateau(**checkpoint["plateau"])
        self._seconds = checkpoint["seconds"]
        kept = [checkpoint["random"], *checkpoint["random_of_others"]][processes.rank() :]
        self._random = kept[0] if kept else None
        self._metrics_before = checkpoint["metrics"]
        before, now = checkpoint["learning_rate"], self.settings.learning_rate
        if before != now:
            for optimizer in checkpoint["optimizer_states"]:
                for group in optimizer["param_groups"]:
                    group |= {name: group[name] * now / before for name in ("lr", "initial_lr")}
            for schedule in checkpoint["lr_schedulers"]:
                schedule["base_lrs"] = [rate * now / before for rate in schedule["base_lrs"]]

    def on_train_start(self) -> None:
        """Restore the random states before anything is drawn, also before the first batch is fetched.

        Processes that train together have random numbers of their own, those that join a resumed training new ones.
        """
        if processes.rank() and (self._random is None or not self.global_step):
            own = random.Random(f"{self.settings.seed} {processes.rank()} {self.global_step}")  # noqa: S311
            lightning.seed_everything(own.getrandbits(32), verbose=False)
        elif self._random is not None:
            _restore_random_states(self._random, self.device)
        self._random = None

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        """With a time limit, follow the clock of the first process: the learning rate must be the same in all."""
        if self.settings.minutes and processes.count() > 1:
            self._first_clock = processes.from_first(lambda: time.perf_counter() - self._began)

    def fraction_done(self, step: int) -> float:
        """The fraction of the training that is done: of the steps or, with a time limit, of the time if it is more."""
        done = step / self.total_steps
        if self.settings.minutes:
            seconds = time.perf_counter() - self._began if self._first_clock is None else self._first_clock
            done = max(done, seconds / (60 * self.settings.minutes))
        return min(1.0, done)


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
