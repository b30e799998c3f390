"""Schedules of the learning rate."""

import pytest

from regard.training.schedules import Plateau, learning_rate_factor


@pytest.mark.parametrize("schedule", ["one_cycle", "inverse_sqrt", "constant", "plateau"])
def test_the_learning_rate_rises_and_then_does_not(schedule):
    rates = [learning_rate_factor(schedule, done / 100, 0.1) for done in range(1, 101)]
    assert rates[:10] == sorted(rates[:10])
    assert max(rates) == pytest.approx(1)
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert all(0 < rate <= 1 for rate in rates)


def test_a_plateau_halves_the_learning_rate_after_the_warm_up_and_down_to_one_percent():
    plateau = Plateau()
    rising = [(5.0, False, 1), (4.0, False, 1)]
    for bleu, warm, factor in [*rising, (6.0, True, 1), (6.0, True, 0.5), (7.0, True, 0.5), (1.0, True, 0.25)]:
        plateau.update(bleu, warm=warm)
        assert plateau.factor == factor
    for _ in range(10):
        plateau.update(0.0, warm=True)
    assert plateau == Plateau(0.01, 7.0)
