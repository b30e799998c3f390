"""Memory does not grow with the number of calls; `make soak` makes 2,000 of each shipped model."""

import pytest
import torch
from helpers.memory import growth
from helpers.systems import KINDS, fresh_text, small_case

from regard.systems.translate.alignment import align_pairs

pytestmark = pytest.mark.usefixtures("unchecked")
FIRST, LAST = 15, 65
MAX_OBJECTS = (LAST - FIRST) // 2
"""An object that stays behind in every second call is found."""
MAX_RESIDENT = 5.0
"""In MiB: 100 KiB that stay behind in each call are found."""


def check(ask):
    more = growth(ask, FIRST, LAST)
    assert more.objects < MAX_OBJECTS
    assert more.resident < MAX_RESIDENT


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_keeps_nothing_of_what_it_was_asked(kind):
    case = small_case(kind)
    check(lambda number: case.ask(case.fresh(number), **case.option))


def test_aligning_keeps_nothing():
    model = small_case("translate").model
    check(lambda number: align_pairs(model, [(fresh_text(number).split(), fresh_text(number + 1).split())]))


def test_what_stays_behind_is_found():
    objects, numbers = [], torch.zeros(0)

    def enlarge(number):
        nonlocal numbers
        numbers = torch.cat([numbers, torch.ones(40_000)])

    for leak, what in ((lambda number: number % 3 and objects.append([number]), "objects"), (enlarge, "resident")):
        with pytest.raises(AssertionError, match=what):
            check(leak)
