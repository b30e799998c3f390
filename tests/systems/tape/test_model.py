"""TuringMachine: sequences in, answers out, with the movements of the heads; what cannot be answered is explained."""

import numpy as np
import pytest
import torch

import regard
from regard.errors import OptionError
from regard.systems.tape.config import TapeConfig
from regard.systems.tape.model import TuringMachine
from regard.worlds.tapes import TASKS, Copy, NGrams, PrioritySort, Recall, RepeatCopy, Task


def machine(task: Task | None = None, **config) -> TuringMachine:
    torch.manual_seed(3)
    small = {"hidden": 12, "slots": 9, "width": 4} if config.get("architecture", "ntm") == "ntm" else {"hidden": 12}
    return TuringMachine(TapeConfig(**{**small, **config}), task or Copy(bits=3)).eval()


def test_a_sequence_is_rows_an_array_a_tensor_or_text():
    model, rows = machine(), [[1, 0, 1], [0, 0, 1]]
    expected = model.tape(rows)
    for same in (
        "101 001",
        np.array(rows),
        torch.tensor(rows),
        tuple(map(tuple, rows)),
        [[True, False, True], [0, 0, 1.0]],
    ):
        assert model.tape(same) == expected
    assert expected.sequence == ((1, 0, 1), (0, 0, 1)) == expected.target
    assert expected.text == " ".join("".join(map(str, row)) for row in expected.output)
    several = model.tape([rows, "111", torch.zeros(4, 3)])
    assert [len(each.output) for each in several] == [2, 1, 4]
    assert several[0].output == expected.output


def test_the_empty_sequence_has_an_empty_copy():
    model = machine()
    empty = model.tape("")
    assert (empty.output, empty.wrong, empty.bits) == ((), 0, 0)
    assert model.tape([]) == []
    assert model.tape([[]]) == [empty]
    assert empty.trace.map("read 1").weights.shape == (1, 9), "the mark alone is one step"


@pytest.mark.parametrize(
    ("sequence", "message"),
    [
        ("1012", "rows of 0 and 1, separated by spaces; got '1012'"),
        ("1010", "rows of 3 numbers, bits; got 1 x 4 numbers"),
        ([[1, 0, 2]], "Bits are 0 or 1; got 2"),
        ([[1, 0, 0.5]], "Bits are 0 or 1; got 0.5"),
        ([[1, 0, 1], [1]], "rows of 3 numbers each; got"),
        (np.zeros((2, 3, 4))[0], "rows of 3 numbers, bits; got 3 x 4 numbers"),
        ([[float("nan"), 0, 1]], "Bits are 0 or 1; got nan"),
    ],
)
def test_what_is_no_sequence_is_explained(sequence, message):
    with pytest.raises(OptionError, match=message):
        machine().tape(sequence)


def test_a_memory_smaller_than_the_task_is_explained_and_can_be_enlarged():
    model = machine()
    with pytest.raises(OptionError, match=r"copy of 10 vectors needs a memory of 10 slots or more; this one has 9"):
        model.tape(torch.zeros(10, 3))
    long = model.tape(torch.zeros(10, 3), slots=20)
    assert long.trace.map("write 1").weights.shape == (21, 20)
    assert len(machine(architecture="lstm").tape(torch.zeros(99, 3)).output) == 99, "an LSTM has no slots"


def test_each_task_has_its_rows_and_options():
    repeated = machine(RepeatCopy(bits=2)).tape("10 01", repeats=3)
    assert repeated.target == ((1, 0, 0), (0, 1, 0)) * 3 + ((0, 0, 1),)
    recall = machine(Recall(bits=2, item_length=2))
    rows = "10 01 11 00 01 01"
    assert recall.tape(rows).target == ((1, 1), (0, 0))
    assert recall.tape(rows, query=2).target == ((0, 1), (0, 1))
    with pytest.raises(OptionError, match="query must be from 1 to 2, an item that another one follows; got 3"):
        recall.tape(rows, query=3)
    with pytest.raises(OptionError, match="repeats is for a machine of repeat-copy; this one is of recall"):
        recall.tape(rows, repeats=2)
    with pytest.raises(OptionError, match="query is for a machine of recall; this one is of copy"):
        machine().tape("101", query=1)
    with pytest.raises(OptionError, match="Items of recall have 2 rows each; got 5 rows"):
        recall.tape("10 01 11 00 01")
    with pytest.raises(OptionError, match="The shortest sequence of recall has 2 items; got 1"):
        recall.tape("10 01")
    by_priority = machine(PrioritySort(bits=2)).tape([[1, 0, -0.5], [0, 1, 0.9]])
    assert by_priority.target == ((0, 1), (1, 0))
    assert by_priority.sequence == ((1, 0, -0.5), (0, 1, pytest.approx(0.9)))
    with pytest.raises(OptionError, match="Priorities are from -1 to 1"):
        machine(PrioritySort(bits=2)).tape([[1, 0, 2]])
    assert machine(NGrams(context=2)).tape([1, 0, 0, 1]).target == ((0,), (1,))


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("architecture", ["ntm", "lstm", "attention"])
def test_every_architecture_answers_every_task_and_is_saved_with_it(name, architecture, tmp_path):
    task = TASKS[name]()
    model = machine(task, architecture=architecture)
    rows = task.draw(1, max(task.shortest, 4), torch.Generator().manual_seed(1)).rows[0]
    result = model.tape(rows)
    model.save(tmp_path / "model")
    again = regard.load(tmp_path / "model", device="cpu")
    assert isinstance(again, TuringMachine)
    assert again.task == task
    assert again.tape(rows).output == result.output
    assert again.tape(rows).bits == pytest.approx(result.bits, abs=1e-3)
    if architecture == "lstm":
        assert result.trace is None
    else:
        assert result.trace.kind == "tape"
        assert regard.Trace.from_json(result.trace.to_json()) == result.trace


def test_the_trace_has_the_whole_story():
    model = machine(read_heads=2, max_shift=2)
    trace = model.tape("101 001 111").trace
    assert trace.axis("steps").labels == ("x1", "x2", "x3", "x4", "y1", "y2", "y3")
    assert [each.name for each in trace.maps][:3] == ["read 1", "read 2", "write 1"]
    assert trace.map("input").weights.shape == (7, 4)
    assert trace.map("output").weights.shape == trace.map("target").weights.shape == (7, 3)
    assert trace.map("adds 1").weights.shape == trace.map("reads 2").weights.shape == (7, 4)
    assert trace.map("memory").weights.shape == (9, 4)
    at_last = np.sqrt(np.square(trace.map("memory").weights).mean(1))
    assert trace.map("slot sizes").weights.shape == (7, 9)
    np.testing.assert_allclose(trace.map("slot sizes").weights[-1], at_last, rtol=1e-5)
    np.testing.assert_allclose(trace.map("read 2").weights.sum(1), 1, rtol=1e-5)
    assert trace.values("scored") == (0, 0, 0, 0, 1, 1, 1)
    assert model.tape("101 001 111", traces="none").trace is None
    # The memory after the last step follows from what was added and erased; here, its first slot was written to.
    assert np.abs(trace.map("memory").weights[0]).max() > 0.01


def test_bits_are_the_cross_entropy_of_the_answer():
    model = machine()
    result = model.tape("101 001")
    probabilities = result.trace.map("output").weights[3:].astype(np.float64)
    target = np.array(result.target)
    expected = -np.log2(np.where(target == 1, probabilities, 1 - probabilities)).sum()
    assert result.bits == pytest.approx(expected, rel=1e-4)
    assert result.wrong == (np.array(result.output) != target).sum()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"architecture": "lstm", "slots": 9}, "The architecture lstm has no slots; got slots 9. Remove it"),
        ({"architecture": "attention", "controller": "feedforward"}, "The architecture attention has no controller"),
        ({"layers": 2}, "The architecture ntm has no layers; got layers 2. Remove it"),
        ({"slots": 2, "max_shift": 2}, "max_shift must be less than slots; got max_shift 2 and slots 2"),
        ({"read_heads": 0}, "read_heads must be a whole number, 1 or more; got 0"),
    ],
)
def test_configs_that_contradict_themselves_are_explained(config, message):
    with pytest.raises(OptionError, match=message):
        TapeConfig(**config)


def test_a_memory_that_no_machine_could_hold_is_refused():
    with pytest.raises(OptionError, match="at most 16,777,216 numbers; got 65,536 slots of 257"):
        TapeConfig(slots=65_536, width=257)
    with pytest.raises(OptionError, match="slots must be at most 65,536; got 1000000"):
        TapeConfig(slots=10**6)
