"""What ends a training whose loss or parameters are no numbers any more."""

import torch
from torch import Tensor

from regard.data.batches import BatchLoader
from regard.errors import TrainingError
from regard.training.task import Task

READ_STEPS = 50
"""Updates between two readings of the losses of a GPU: each reading waits for it."""
MANY_EXAMPLES = 8
"""Examples of a batch that are listed."""


class Divergence:
    """Raises a TrainingError that names the update and the batch in which the loss became NaN or infinite.

    `tolerated` such losses in a row are not an error, for trainings that leave out an update whose gradients overflow.
    """

    def __init__(self, task: Task, batches: BatchLoader, tolerated: int = 0) -> None:
        self.task, self.tolerated, self._batches = task, tolerated, batches
        self._streak = torch.zeros((), dtype=torch.long, device=task.device)

    def update(self, loss: Tensor, step: int) -> None:
        """Take the loss of an update into account; on a GPU it is read only now and then."""
        self._streak = torch.where(loss.isfinite(), 0, self._streak + 1)
        if not loss.is_cuda or step % READ_STEPS == 0:
            self._check_streak()

    def check(self) -> None:
        """Raise the error if the last loss or a parameter is not finite; called before a checkpoint is written."""
        self._check_streak()
        # One number for all parameters, so that a GPU is waited for once.
        finite = torch.stack([part.detach().isfinite().all() for part in self.task.parameters()]).all()
        if not bool(finite):
            raise TrainingError(self._message("Parameters became NaN or infinite", self.task.step - 1))

    def _check_streak(self) -> None:
        streak = int(self._streak)
        if streak > self.tolerated:
            raise TrainingError(self._message("The loss became NaN or infinite", self.task.step - streak))

    def _message(self, what: str, step: int) -> str:
        """What happened in which update, counted from 0 here and from 1 in the message."""
        total = len(self._batches)
        epoch, number = divmod(max(0, step), total)
        indices = self._batches.examples(epoch, number)
        more = ", ..." if len(indices) > MANY_EXAMPLES else ""
        return (
            f"{what} in update {step + 1} (epoch {epoch + 1}, batch {number + 1} of {total}, the examples "
            f"{', '.join(map(str, indices[:MANY_EXAMPLES]))}{more}, counted from 0). Look at these examples, or lower "
            "--train.learning_rate."
        )
