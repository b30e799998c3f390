"""What `make soak` runs is there, is bounded in time, and says what failed."""

import runpy
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).parent / "soak"


@pytest.fixture
def soak():
    return runpy.run_path(str(SOAK / "__main__.py"))


def test_a_part_that_fails_or_hangs_is_reported(soak, monkeypatch, capsys):
    def part(code, minutes=1.0):
        return soak["Part"]("test", (sys.executable, "-c", code), minutes)

    parts = {
        "good": part("pass"),
        "bad": part("import sys; sys.exit(3)"),
        "hangs": part("import os, time; os.fork(); time.sleep(600)", 0.01),
    }
    monkeypatch.setitem(soak["main"].__globals__, "PARTS", parts)
    monkeypatch.setattr(sys, "argv", ["soak"])
    with pytest.raises(SystemExit) as ended:
        soak["main"]()
    assert ended.value.code == 1
    good, bad, hangs = capsys.readouterr().out.splitlines()[-3:]
    assert good.startswith("good: held (")
    assert bad.startswith("bad: ended with status 3 (")
    assert hangs.startswith("hangs: did not end within 0.01 minutes (")
    monkeypatch.setattr(sys, "argv", ["soak", "good"])
    with pytest.raises(SystemExit) as ended:
        soak["main"]()
    assert ended.value.code == 0


def test_every_script_is_a_part(soak):
    scripts = {f"tests/soak/{path.name}" for path in SOAK.glob("*.py")} - {"tests/soak/__main__.py"}
    named = {word for part in soak["PARTS"].values() for word in part.command if word.endswith(".py")}
    assert scripts <= named
    assert all((SOAK.parent.parent / name).is_file() for name in named)
