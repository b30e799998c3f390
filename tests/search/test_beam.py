"""The parts of beam search."""

import math

import numpy as np
import pytest
import torch
from helpers.models import small_translator

from regard.decoders.protocol import Decoder, Step
from regard.errors import OptionError
from regard.search.beam import beam
from regard.search.hypothesis import Rules
from regard.search.log_probs import ArrayLogProbs
from regard.search.options import Search
from regard.search.search import DecoderSteps, TensorLogProbs

SIZES = [(3, 1, 14_000, 2), (1, 5, 12_100, 10), (40, 2, 1100, 4), (4, 1, 700, 2), (2, 1, 40, 40), (2, 3, 6, 1)]


KINDS = {"numpy": lambda values: ArrayLogProbs(values.numpy()), "torch": TensorLogProbs}
every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
@pytest.mark.parametrize(("inputs", "size", "width", "count"), SIZES)
def test_the_largest_are_those_of_a_full_sort(kind, inputs, size, width, count):
    table, offsets = torch.randn(inputs, size, width), torch.randn(inputs, size)
    table[0, 0, ::3] = -torch.inf
    totals = (table + offsets.unsqueeze(-1)).flatten(1)
    values, indices = KINDS[kind](table.flatten(0, 1)).largest(offsets.flatten().tolist(), size, count)
    torch.testing.assert_close(torch.tensor(values), totals.sort(descending=True).values[:, :count])
    torch.testing.assert_close(totals.gather(1, torch.tensor(indices)), torch.tensor(values))
    assert all(len(set(row)) == count for row in indices)


@every_kind
def test_where_nothing_is_possible_the_largest_are_still_places(kind):
    nothing = KINDS[kind](torch.full((8, 5000), -torch.inf))
    (values,), (indices,) = nothing.largest([0.0] * 8, 8, 3)
    assert values == [-math.inf] * 3
    assert min(indices) >= 0
    assert max(indices) < 8 * 5000


@every_kind
@pytest.mark.parametrize("width", [7, 5000])
def test_nan_is_found_first(kind, width):
    values = torch.randn(2, width)
    values[1, 3] = torch.nan
    (totals,), (indices,) = KINDS[kind](values).largest([0.0] * 2, 2, 3)
    assert math.isnan(totals[0])
    assert indices[0] == width + 3


def test_numpy_and_torch_restrict_and_draw_alike():
    logits = torch.randn(11, 503).mul(3)
    both = [ArrayLogProbs.of_logits(logits.numpy()), TensorLogProbs.of_logits(logits)]
    for each in both:
        each.forbid([0, 5])
        each.forbid([], 2)
        each.forbid([7, 9], 3)
        each.demand([4, 6], [8, 1], [-2.5, -1e4])
    first, second = both
    torch.testing.assert_close(torch.from_numpy(first.values), second.values)
    assert first.most_likely() == second.most_likely()
    assert first.at([0, 4], [3, 8]) == pytest.approx(second.at([0, 4], [3, 8]))
    uniform = np.random.default_rng(1).random(11)
    for options in ((1.0, 0, 1.0), (0.7, 5, 1.0), (1.3, 0, 0.6), (2.0, 40, 0.9), (1e-300, 0, 1.0)):
        drawn = first.draw(uniform, *options)
        assert drawn == second.draw(uniform, *options)
        assert all(math.isfinite(value) for value in first.at(range(11), drawn))


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
    rules = Rules(start=1, end=2, banned=(0,))
    (outputs,) = beam(DecoderSteps(model, "cpu"), (), rules, Search(beam=2, nbest=2), num_inputs=1)
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
        beam(DecoderSteps(Decoder(), "cpu"), None, rules, Search(), num_inputs=2, record=[])
