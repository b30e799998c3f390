"""The progress bar of a training."""

import time
from typing import Any

import lightning.pytorch as lightning
from lightning.pytorch.callbacks import RichProgressBar

OFTEN = 0.5
"""Seconds between two looks."""


class TrainingBar(RichProgressBar):
    """Shows how training goes: its loss, its speed, its rewards.

    Now and then: to see a loss, a GPU has to be waited for. That is why a step logs what is shown here without
    `prog_bar`, with which Lightning would wait in every step, bar or no bar.
    """

    SHOWN = ("loss", "reward", "tokens/s", "captions/s", "pictures/s")

    def __init__(self) -> None:
        super().__init__()
        self._looked = -OFTEN
        self._seen: dict[str, float] = {}

    def get_metrics(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> dict[str, Any]:
        """What stands behind the bar."""
        now = time.perf_counter()
        if now - self._looked >= OFTEN:
            self._looked, known = now, trainer.callback_metrics
            self._seen = {name: float(known[name]) for name in self.SHOWN if name in known}
        return self._seen | super().get_metrics(trainer, pl_module)
