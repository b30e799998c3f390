"""regard tape: answers in the terminal, as JSON, and as figures."""

import json

import pytest
import torch

from regard.cli import main
from regard.systems.tape.config import TapeConfig
from regard.systems.tape.model import TuringMachine
from regard.worlds.tapes import Copy, PrioritySort


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> str:
    torch.manual_seed(1)
    folder = tmp_path_factory.mktemp("machine") / "model"
    TuringMachine(TapeConfig(hidden=7, slots=9, width=4), Copy(bits=3, max_length=5)).save(folder)
    return str(folder)


def run(*tokens: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(tokens))
    return int(ended.value.code or 0)


def test_a_tape_is_answered(model, capsys):
    assert run("tape", "-m", model, "101", "001") == 0
    before, answer, *rest = capsys.readouterr().out.splitlines()
    assert before == "in    101 001"
    assert answer.startswith("out   ")
    assert "of 6 bits right" in rest[-1]
    assert run("tape", "-m", model, "--length", "7") == 0
    assert len(capsys.readouterr().out.splitlines()[0].split()) == 8
    assert run("tape", "-m", model) == 0
    assert len(capsys.readouterr().out.splitlines()[0].split()) == 6, "as long as the longest of the training"


def test_a_seed_repeats_the_tape(model, capsys):
    outputs = []
    for seed in ("3", "3", "4"):
        assert run("tape", "-m", model, "--seed", seed) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1] != outputs[2]


def test_json_has_the_trace(model, capsys):
    assert run("tape", "-m", model, "--length", "2", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["trace"]["kind"] == "tape"
    assert len(found["output"]) == 2
    assert run("tape", "-m", model, "--length", "2", "--json", "--traces", "none") == 0
    assert json.loads(capsys.readouterr().out)["trace"] is None


def test_heads_are_shown_in_the_terminal_and_as_a_figure(model, capsys, tmp_path):
    assert run("tape", "-m", model, "--length", "4", "--show", "-") == 0
    out = capsys.readouterr().out
    for panel in ("input", "output", "where write head 1 is", "where read head 1 is", "memory at the end"):
        assert panel in out.splitlines()
    assert run("tape", "-m", model, "--length", "4", "--show", str(tmp_path / "tape.svg")) == 0
    assert "where write head 1 is" in (tmp_path / "tape.svg").read_text()


def test_mistakes_end_with_one_line(model, capsys, tmp_path):
    TuringMachine(TapeConfig(hidden=7), PrioritySort()).save(tmp_path / "sort")
    for tokens, message in [
        (("-m", model, "--length", "10"), "copy of 10 vectors needs a memory of 10 slots or more; this one has 9"),
        (("-m", model, "101", "--length", "3"), "Give rows, or --length for random ones, not both"),
        (("-m", model, "10"), "rows of 3 numbers, bits; got 1 x 2"),
        (("-m", str(tmp_path / "sort"), "10"), "Rows of priority-sort have priorities"),
        (("-m", model, "--length", "-1"), "0"),
        (("tape-copy", "101"), "Rows are bits, such as 01101001; got 'tape-copy'. A model is named with -m."),
    ]:
        assert run("tape", *tokens) == 2
        assert message in capsys.readouterr().err
    assert run("tape", "-m", model, "--length", "12", "--slots", "15") == 0
