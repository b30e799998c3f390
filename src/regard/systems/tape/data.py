"""Sequences as users give them, as rows, and the names of the steps of a tape."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import OptionError
from regard.worlds.tapes import PrioritySort, Recall, Tapes, Task


def read_rows(sequence: Any, task: Task) -> Float[Tensor, "n r"]:
    """The rows of a sequence, checked: as many numbers in each as the task has, bits of 0 and 1."""
    size = task.row_size
    if isinstance(sequence, str):
        sequence = [[_digit(digit, sequence) for digit in row] for row in sequence.split()]
    try:
        array = np.asarray(sequence.tolist() if hasattr(sequence, "tolist") else sequence, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise OptionError(f"A sequence of {task.name} has rows of {size} numbers each; got {sequence!r:.80}.") from None
    if not array.size:
        array = array.reshape(0, size)
    if array.ndim == 1 and size == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] != size:
        what = "bits followed by a priority" if isinstance(task, PrioritySort) else "bits"
        raise OptionError(
            f"A sequence of {task.name} has rows of {size} numbers, {what}; got {_shape(array) or 'no'} numbers."
        )
    bits = array[:, : task.bits]
    if not ((bits == 0) | (bits == 1)).all():
        wrong = bits[(bits != 0) & (bits != 1)][0]
        raise OptionError(f"Bits are 0 or 1; got {wrong:g}.")
    if not (np.abs(array[:, task.bits :]) <= 1).all():
        raise OptionError("Priorities are from -1 to 1.")
    if isinstance(task, Recall) and len(array) % task.item_length:
        raise OptionError(f"Items of recall have {task.item_length} rows each; got {len(array)} rows.")
    return torch.from_numpy(array).float()


def length_of(rows: Float[Tensor, "n r"], task: Task) -> int:
    """The length of a sequence as its task counts it."""
    return len(rows) // task.item_length if isinstance(task, Recall) else len(rows)


def step_labels(tapes: Tapes) -> tuple[str, ...]:
    """A name for each step: x1, x2, ... while the machine reads, y1, y2, ... while its answer counts."""
    labels, counts = [], {True: 0, False: 0}
    for scored in tapes.scored.tolist():
        counts[scored] += 1
        labels.append(f"{'y' if scored else 'x'}{counts[scored]}")
    return tuple(labels)


def _digit(digit: str, text: str) -> int:
    if digit not in "01":
        raise OptionError(f"A sequence as text has rows of 0 and 1, separated by spaces; got {text!r:.80}.")
    return int(digit)


def _shape(array: np.ndarray) -> str:
    return " x ".join(map(str, array.shape))
