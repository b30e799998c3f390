"""Bars: how many of how many, on stderr, or nothing at all."""

import pytest

from regard.data.progress import progress_bar


@pytest.mark.parametrize(("total", "says"), [(5000, "1,234 of 5,000 things"), (None, "1,234 things")])
def test_a_bar_counts_on_stderr_alone(total, says, capfd):
    with progress_bar("counting", total, "things", done=234, shown=True) as advance:
        advance(1000)
    out, err = capfd.readouterr()
    assert out == ""
    assert says in err
    assert "counting" in err


def test_a_bar_that_is_not_shown_says_nothing(capfd):
    with progress_bar("counting", 2, "things", shown=False) as advance:
        advance(2)
    assert capfd.readouterr() == ("", "")
