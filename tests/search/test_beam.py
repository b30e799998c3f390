"""The parts of beam search."""

import math

import pytest
import torch
from helpers.models import small_translator

from regard.decoders.protocol import Decoder, Step
from regard.errors import OptionError
from regard.search.beam import beam, largest
from regard.search.hypothesis import Rules
from regard.search.options import Search

SIZES = [(3, 1, 14_000, 2), (1, 5, 12_100, 10), (40, 2, 1100, 4), (4, 1, 700, 2), (2, 1, 40, 40), (2, 3, 6, 1)]


@pytest.mark.parametrize(("inputs", "size", "width", "count"), SIZES)
def test_the_largest_are_those_of_a_full_sort(inputs, size, width, count):
    table, offsets = torch.randn(inputs, size, width), torch.randn(inputs, size)
    table[0, 0, ::3] = -torch.inf
    values, indices = largest(table, offsets, count)
    totals = (table + offsets.unsqueeze(-1)).flatten(1)
    torch.testing.assert_close(values, totals.sort(descending=True).values[:, :count])
    torch.testing.assert_close(totals.gather(1, indices), values)
    assert all(len(set(row)) == count for row in indices.tolist())


def test_where_nothing_is_possible_the_largest_are_still_indices():
    nothing = torch.full((1, 8, 5000), -torch.inf)
    values, indices = largest(nothing, torch.zeros(1, 8), 3)
    assert values.isinf().all()
    assert indices.min() >= 0
    assert indices.max() < 8 * 5000


def test_on_other_devices_than_a_cpu_the_largest_are_found_there():
    values, indices = largest(torch.randn(1, 5, 12_100, device="meta"), torch.randn(1, 5, device="meta"), 10)
    assert values.device == indices.device == torch.device("meta")
    assert values.shape == indices.shape == (1, 10)


class Table(Decoder):
    """The probability of the next token depends on the last one alone."""

    def __init__(self, probabilities):
        super().__init__()
        self.log_probs = torch.full((5, 5), 1e-6)
        for (last, token), probability in probabilities.items():
            self.log_probs[last, token] = probability
        self.log_probs = self.log_probs.log()

    def step(self, token, state, *, override=None):
        return Step(self.log_probs[token], state, None)


def test_all_that_end_in_the_last_step_compete_with_what_ended_before():
    # At once with 0.26; after token 3 with 0.5 * 0.9, after token 4 with 0.24 * 0.9, which are more per token.
    model = Table({(1, 3): 0.5, (1, 2): 0.26, (1, 4): 0.24, (3, 2): 0.9, (4, 2): 0.9, (3, 4): 0.1, (4, 3): 0.1})
    (outputs,) = beam(
        model, (), Rules(start=1, end=2, banned=(0,)), Search(beam=2, nbest=2), num_inputs=1, device="cpu"
    )
    assert [one.tokens for one in outputs] == [[3], [4]]
    assert [one.score for one in outputs] == pytest.approx([math.log(0.45) / 2, math.log(0.216) / 2], abs=1e-3)


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
    with pytest.raises(OptionError, match="one input can be recorded; got num_inputs=2"):
        beam(Decoder(), None, rules, Search(), num_inputs=2, device="cpu", record=[])
