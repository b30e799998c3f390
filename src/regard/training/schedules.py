"""Schedules of the learning rate: how it rises and falls during a training."""

import math
from dataclasses import dataclass


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
