"""What training does whatever is trained: the step size, the time limit, and going on after an interruption."""

import math
import time
from dataclasses import asdict, dataclass
from typing import Any

import lightning.pytorch as lightning
import torch

from regard.training.caption_recipe import CaptionTrainConfig
from regard.training.image_recipe import ImageTrainConfig
from regard.training.recipe import TrainConfig

Settings = TrainConfig | ImageTrainConfig | CaptionTrainConfig
"""The [train] table of any system."""


def step_size(schedule: str, done: float, warmup: float) -> float:
    """The step size, as a share of the highest, when a share of the training is done: it rises, and then falls."""
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
    """Halves the step size whenever a validation is not better than the best before it, down to 1 %.

    Luong et al. 2015 (section 4.1) halve it after each epoch from a fixed one on; here the score says when.
    """

    factor: float = 1.0
    best: float = -math.inf

    def after(self, value: float, *, warm: bool) -> None:
        """Take note of a validation; while the step size still rises, nothing is halved."""
        if warm and value <= self.best:
            self.factor = max(0.01, self.factor / 2)
        self.best = max(self.best, value)


class Task(lightning.LightningModule):
    """A model in training: subclasses say what a step and a validation do."""

    def __init__(self, settings: Settings, total_steps: int) -> None:
        super().__init__()
        self.settings, self.total_steps = settings, total_steps
        self.plateau = Plateau()
        self._random: dict[str, Any] | None = None
        self._seconds = 0.0
        self._began = time.perf_counter()

    def make_optimizer(self) -> torch.optim.Optimizer:
        """Adam, as Vaswani et al. 2017 set it."""
        config = self.settings
        return torch.optim.AdamW(
            self.parameters(),
            lr=config.learning_rate,
            betas=(0.9, 0.98),
            eps=1e-9,
            weight_decay=config.weight_decay,
            # Where gradients are scaled, the fused form takes the scale away only after they were clipped.
            fused=self.device.type == "cuda" and config.precision != "16-mixed",
        )

    def configure_gradient_clipping(
        self,
        optimizer: torch.optim.Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Clip the norm; Lightning itself refuses to for any fused optimizer in half precision, scaled or not."""
        if gradient_clip_val:
            torch.nn.utils.clip_grad_norm_(self.parameters(), gradient_clip_val)

    def note_validation(self, score: float) -> None:
        """Tell the step size how good a validation was."""
        self.plateau.after(score, warm=self.share_done(self.global_step) > self.settings.warmup)

    def configure_optimizers(self) -> Any:
        """The optimizer, with a step size that rises and falls."""
        config = self.settings
        optimizer = self.make_optimizer()
        self._began = time.perf_counter() - self._seconds

        def factor(step: int) -> float:
            size = step_size(config.schedule, self.share_done(step + 1), max(config.warmup, 1 / self.total_steps))
            return size * self.plateau.factor if config.schedule == "plateau" else size

        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keep what decides how training goes on: random numbers, the time spent, the halvings of the step size."""
        checkpoint["plateau"] = asdict(self.plateau)
        checkpoint["seconds"] = time.perf_counter() - self._began
        checkpoint["random"] = {"cpu": torch.get_rng_state(), "cuda": torch.cuda.get_rng_state_all()}

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Go on from there; a checkpoint of an earlier version may lack some of it."""
        self.plateau = Plateau(**checkpoint.get("plateau", {}))
        self._seconds = checkpoint.get("seconds", 0.0)
        self._random = checkpoint.get("random")

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        """The first batch after a resumption draws the numbers that it would have drawn without one."""
        if self._random is not None:
            torch.set_rng_state(self._random["cpu"].cpu())
            torch.cuda.set_rng_state_all([state.cpu() for state in self._random["cuda"]])
            self._random = None

    def share_done(self, step: int) -> float:
        """The share of the training that is done: with a time limit, whatever ends first, the steps or the time."""
        done = step / self.total_steps
        if self.settings.minutes:
            done = max(done, (time.perf_counter() - self._began) / (60 * self.settings.minutes))
        return min(1.0, done)
