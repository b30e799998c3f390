"""The running average of the parameters, which is validated and saved in their place."""

from collections.abc import Mapping
from itertools import chain

import torch
from torch import Tensor, nn


class RunningAverage:
    """Exponential moving average of the parameters: after n updates, the decay is min(decay, n / (n + 9)).

    So it soon forgets its beginning; after the first update it equals the parameters. Integer buffers, such as the
    batch counters of batch normalisation, are not averaged: they are those of the last update.
    """

    def __init__(self, task: nn.Module, decay: float) -> None:
        self._task, self._decay = task, decay
        self._parts = [part for part in chain(task.parameters(), task.buffers()) if part.is_floating_point()]
        self._current = [part.data for part in self._parts]
        self._average = [part.clone() for part in self._current]

    def update(self, step: int) -> None:
        """Move the average towards the parameters, after this number of updates."""
        keep = min(self._decay, step / (9 + step)) if step > 1 else 0.0
        torch._foreach_lerp_(self._average, self._current, 1 - keep)

    def swap(self) -> None:
        """Exchange the parameters and their average, in place."""
        before = [part.clone() for part in self._current]
        torch._foreach_copy_(self._current, self._average)
        torch._foreach_copy_(self._average, before)

    def state_dict(self) -> dict[str, Tensor]:
        """The average under the names of the parameters."""
        averages = dict(zip(map(id, self._parts), self._average, strict=True))
        state = self._task.state_dict(keep_vars=True)
        return {name: averages.get(id(part), part.detach()) for name, part in state.items()}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Continue with an average."""
        for name, average in self.state_dict().items():
            average.copy_(state[name])
