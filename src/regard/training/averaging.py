"""A running average of the parameters, which is what is validated and saved."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import lightning.pytorch as lightning
import torch
from lightning.pytorch.callbacks import WeightAveraging
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel


class RunningAverage(WeightAveraging):
    """An exponential moving average that soon forgets its beginning: after n steps it reaches back about n / 10 steps.

    It is kept on the device of the parameters. Lightning by itself would keep it on the CPU, where the parameters are
    when it is created, and copy all of them there in every step; and torch would wait for the GPU to count the steps.
    """

    def __init__(self, decay: float) -> None:
        super().__init__()
        self._decay = decay
        self._count = 0
        self._moving: tuple[list[Tensor], list[Tensor]] = [], []
        self._copied: list[tuple[Tensor, Tensor]] = []

    @property
    def state_key(self) -> str:
        """The key of Lightning's own callback."""
        return WeightAveraging.__qualname__

    def on_fit_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Move the average to the device of the parameters."""
        self._average().to(pl_module.device)

    def on_train_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Continue the count of a resumed training, and pair each tensor with its average."""
        average = self._average()
        self._count = int(average.n_averaged)
        pairs = list(zip(_all_of(average.module), _all_of(pl_module), strict=True))
        moving = [pair for pair in pairs if pair[0].is_floating_point()]
        self._moving = [averaged for averaged, _ in moving], [current for _, current in moving]
        # Integer buffers, such as the batch counters of batch normalisation, are copied.
        self._copied = [pair for pair in pairs if not pair[0].is_floating_point()]

    @torch.no_grad()
    def on_train_batch_end(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Move the average towards the parameters."""
        if trainer.global_step == self._latest_update_step:
            return
        keep = min(self._decay, (1 + self._count) / (10 + self._count)) if self._count else 0.0
        torch._foreach_lerp_(*self._moving, 1 - keep)
        for averaged, current in self._copied:
            averaged.copy_(current)
        self._count += 1
        self._average().n_averaged += 1
        self._latest_update_step = trainer.global_step

    def on_train_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Replace the parameters by their average."""
        super().on_train_end(trainer, pl_module)
        self._moving, self._copied = ([], []), []

    def _average(self) -> AveragedModel:
        assert self._average_model is not None  # noqa: S101 - Lightning creates it when a fit begins
        return self._average_model


def _all_of(module: nn.Module) -> Iterator[Tensor]:
    return chain((weight.data for weight in module.parameters()), module.buffers())
