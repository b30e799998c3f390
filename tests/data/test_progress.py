"""Progress bars count on stderr, and only on a terminal."""

import pytest

from regard.data.progress import progress_bar, track


@pytest.fixture
def terminal(monkeypatch):
    """Make rich treat the captured stderr as a terminal."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize(("total", "text"), [(5000, "1,234 of 5,000 things"), (None, "1,234 things")])
def test_a_bar_counts_on_stderr_alone(total, text, capfd):
    with progress_bar("counting", total, "things", completed=234) as advance:
        advance(1000)
    out, err = capfd.readouterr()
    assert out == ""
    assert text in err
    assert "counting" in err


@pytest.mark.usefixtures("terminal")
def test_a_disabled_bar_writes_nothing(capfd):
    with progress_bar("counting", 2, "things", enabled=False) as advance:
        advance(2)
    assert capfd.readouterr() == ("", "")


def test_a_bar_writes_nothing_where_stderr_is_not_a_terminal(capfd, monkeypatch):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    with progress_bar("counting", 2, "things") as advance:
        advance(2)
    assert list(track("abc", "counting", "letters")) == ["a", "b", "c"]
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("terminal")
def test_tracked_items_are_counted_as_they_are_taken(capfd):
    assert list(track([5, 6, 7], "counting [x]", "things")) == [5, 6, 7]
    assert list(track(iter([5, 6]), "streaming", "things", total=2)) == [5, 6]
    _, err = capfd.readouterr()
    assert "3 of 3 things" in err
    assert "2 of 2 things" in err
    assert "counting [x]" in err
