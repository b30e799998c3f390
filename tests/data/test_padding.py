"""Padding: rows of different lengths in one tensor."""

import numpy as np
import pytest
import torch

from regard.data.batches import pad
from regard.errors import DataError


def test_rows_are_padded_on_the_right_between_what_frames_them():
    padded, lengths = pad([[5, 6, 7], np.array([8], np.uint16), torch.tensor([9, 10])], before=(1,), after=(2, 3))
    assert padded.tolist() == [[1, 5, 6, 7, 2, 3], [1, 8, 2, 3, 0, 0], [1, 9, 10, 2, 3, 0]]
    assert lengths.tolist() == [6, 4, 5]
    assert padded.dtype == lengths.dtype == torch.int64


def test_the_padding_value_can_be_chosen_and_rows_may_be_empty():
    padded, lengths = pad([[], [4]], value=-1)
    assert padded.tolist() == [[-1], [4]]
    assert lengths.tolist() == [0, 1]


def test_no_rows_are_refused():
    with pytest.raises(DataError, match="no rows to pad"):
        pad([])
