"""Padding: rows of ids of different lengths in one rectangular tensor."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from regard.data.tokenizer import PAD
from regard.errors import DataError


def pad(
    rows: Sequence[Any], *, before: Sequence[int] = (), after: Sequence[int] = (), value: int = PAD
) -> tuple[Int[Tensor, "b n"], Int[Tensor, "b"]]:
    """Pad rows of ids (lists, arrays or tensors) on the right, and return them with their lengths.

    `before` and `after` are ids placed in front of and behind every row, such as START and END; the lengths count
    them. Both tensors are int64 and on the CPU.
    """
    if not len(rows):
        raise DataError("There are no rows to pad: a batch needs at least one.")
    lengths = [len(before) + len(row) + len(after) for row in rows]
    padded = np.full((len(rows), max(lengths)), value, dtype=np.int64)
    for line, row, length in zip(padded, rows, lengths, strict=True):
        line[: len(before)] = before
        line[len(before) : length - len(after)] = row
        line[length - len(after) : length] = after
    return torch.from_numpy(padded), torch.tensor(lengths)
