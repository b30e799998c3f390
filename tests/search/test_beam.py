"""What beam search is made of."""

import pytest
import torch

from regard.search.beam import largest


@pytest.mark.parametrize(("rows", "width", "count"), [(3, 1000, 2), (1, 5121, 10), (4, 700, 2), (2, 40, 40), (2, 6, 1)])
def test_the_largest_are_those_of_a_full_sort(rows, width, count):
    table = torch.randn(rows, width)
    table[0, ::3] = -torch.inf
    values, places = largest(table, count)
    torch.testing.assert_close(values, table.sort(descending=True).values[:, :count])
    torch.testing.assert_close(table.gather(1, places), values)
    assert all(len(set(row)) == count for row in places.tolist())
    nothing = torch.full((1, 5000), -torch.inf)
    assert largest(nothing, 3)[1].max() < 5000
