"""How large the batches of a training are: smaller where an epoch would have few updates."""

from collections.abc import Callable

from regard.data.batches import BatchLoader
from regard.errors import counted
from regard.training.task import Task

FEW_UPDATES = 20
"""Updates in an epoch below which a short training learns little."""
ENOUGH_UPDATES = 1000
"""Updates in a training that suffice even where its epochs have few."""
FEW_EXAMPLES = 4
"""Examples in an automatic batch, on average, that are not divided further: the gradients of fewer are mostly noise."""


def load_batches(load: Callable[[int], BatchLoader], size: int, *, usual: int) -> BatchLoader:
    """The batches `load(size)`; for size 0 those of the `usual` size, halved until an epoch has 20 of them."""
    batches = load(size or usual)
    while not size and len(batches) < FEW_UPDATES and batches.num_examples > FEW_EXAMPLES * len(batches):
        usual //= 2
        batches = load(usual)
    return batches


def few_updates(task: Task, batches: int) -> str:
    """Advice where a short training with batches of a given size has few updates in an epoch, or nothing."""
    if batches >= FEW_UPDATES or task.total_steps >= ENOUGH_UPDATES:
        return ""
    advice = ""
    for name in ("batch_size", "max_tokens"):
        size = getattr(task.settings, name, None)
        if size == 0:
            return ""
        if size:
            advice = f", such as --train.{name} {max(1, size * batches // FEW_UPDATES)}"
            break
    return (
        f"An epoch has only {counted(batches, 'update')}, the training {task.total_steps}, and may learn little: "
        f"choose smaller batches{advice}, or more --train.epochs.\n"
    )
