"""Every packaged recipe learns as recorded: the losses of its first 50 updates, in a small version.

A normal run trains one recipe of each system for ten updates, with a tolerance that other CPUs meet. With
REGARD_GOLDEN_EXACT=1 every recipe is trained, and all losses must be equal to the last bit.
"""

import json
import math
import os
import runpy
from pathlib import Path

import pytest
from helpers.losses import UPDATES, first_losses

from regard.training.recipes import read_raw, recipe_names

ROOT = Path(__file__).parent.parent
EXACT = os.environ.get("REGARD_GOLDEN_EXACT") == "1"
RECORDED = json.loads((ROOT / "tests/golden/losses.json").read_text(encoding="utf-8"))["losses"]
QUICK = 10
"""Updates of a normal run: later ones grow apart on another CPU."""
RELATIVE, ABSOLUTE = 1e-3, 1e-3
"""What other CPUs meet after ten updates; the losses are about 1."""
ONE_OF_EACH_SYSTEM = ("babel-en-fr", "scenes-soft", "mnist-lenet", "imdb-han", "stories", "ntm-copy", "glimpse-digits")


@pytest.fixture(scope="module")
def compare_losses():
    return runpy.run_path(str(ROOT / "benchmarks" / "compare_losses.py"))


def test_the_losses_of_every_recipe_are_recorded():
    assert {read_raw(name).system for name in ONE_OF_EACH_SYSTEM} == {read_raw(name).system for name in recipe_names()}
    assert sorted(RECORDED) == recipe_names(), "record them: python tests/golden/record.py losses"
    assert all(len(losses) == UPDATES and all(map(math.isfinite, losses)) for losses in RECORDED.values())


@pytest.mark.usefixtures("unchecked")
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", recipe_names() if EXACT else ONE_OF_EACH_SYSTEM)
def test_a_recipe_learns_as_recorded(name, tmp_path):
    losses = first_losses(name, tmp_path, UPDATES if EXACT else QUICK)
    if EXACT:
        assert losses == RECORDED[name]
    else:
        assert losses == pytest.approx(RECORDED[name][:QUICK], rel=RELATIVE, abs=ABSOLUTE)


def test_the_comparison_of_two_revisions_finds_a_difference_in_the_last_bit(compare_losses, capsys):
    losses = RECORDED["ntm-copy"]
    other = [*losses[:7], math.nextafter(losses[7], 1), *losses[8:]]
    assert compare_losses["difference"](losses, list(losses)) == ""
    assert "1 of 50 differ, from update 8" in compare_losses["difference"](losses, other)
    assert "NEW: OptionError" in compare_losses["difference"](losses, "OptionError: no such field")
    assert compare_losses["compare"]({"a": losses, "b": losses}, {"a": other, "b": losses}) == 1
    assert "b: equal" in capsys.readouterr().out


def test_a_revision_that_git_does_not_know_is_explained(compare_losses, tmp_path):
    with pytest.raises(SystemExit, match="no-such-revision is no revision with a folder src"):
        compare_losses["source_of"]("no-such-revision", tmp_path / "old")
    assert compare_losses["source_of"](".", tmp_path / "new") == ROOT / "src"
