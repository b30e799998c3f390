"""The parts of beam search."""

import pytest
import torch
from small_models import small_translator

from regard.decoders.protocol import Decoder
from regard.errors import OptionError
from regard.search.beam import beam, largest
from regard.search.hypothesis import Rules

SIZES = [(3, 1, 14_000, 2), (1, 5, 12_100, 10), (40, 2, 1100, 4), (4, 1, 700, 2), (2, 1, 40, 40), (2, 3, 6, 1)]


@pytest.mark.parametrize(("inputs", "size", "width", "count"), SIZES)
def test_the_largest_are_those_of_a_full_sort(inputs, size, width, count):
    table, offsets = torch.randn(inputs, size, width), torch.randn(inputs, size)
    table[0, 0, ::3] = -torch.inf
    values, places = largest(table, offsets, count)
    totals = (table + offsets.unsqueeze(-1)).flatten(1)
    torch.testing.assert_close(values, totals.sort(descending=True).values[:, :count])
    torch.testing.assert_close(totals.gather(1, places), values)
    assert all(len(set(row)) == count for row in places.tolist())


def test_where_nothing_is_possible_the_largest_are_still_places():
    nothing = torch.full((1, 8, 5000), -torch.inf)
    values, places = largest(nothing, torch.zeros(1, 8), 3)
    assert values.isinf().all()
    assert places.min() >= 0
    assert places.max() < 8 * 5000


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_at_the_length_limit_all_hypotheses_become_outputs(limit):
    model = small_translator()
    found = model.translate(["a dog is running", "two dogs"], beam=5, nbest=5, max_length=limit)
    for one in found:
        every = [one, *one.alternatives]
        assert len(every) == 5
        assert [each.score for each in every] == sorted((each.score for each in every), reverse=True)


def test_the_search_of_several_inputs_is_not_recorded():
    rules = Rules(start=1, end=2)
    with pytest.raises(OptionError, match="one input can be recorded; got rows=2"):
        beam(Decoder(), None, rules, rows=2, device="cpu", record=[])
