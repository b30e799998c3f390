"""Traces: made of any weights, written and read back."""

import json

import pytest
import torch

from regard import RegardError, Trace
from regard.errors import ShapeError


def test_a_trace_survives_the_way_to_json_and_back(tmp_path):
    trace = Trace.of(["ein", "کتاب"], ["a", "book", "."], torch.rand(3, 2), model="babel", step=3)
    assert Trace.from_json(trace.to_json()) == trace
    path = trace.save(tmp_path / "trace.json")
    assert Trace.from_json(path.read_text(encoding="utf-8")) == trace
    assert [file.name for file in tmp_path.iterdir()] == ["trace.json"], "no temporary file is left"
    assert json.loads(trace.to_json())["version"] == 1


def test_a_trace_takes_lists_arrays_and_tensors():
    rows = [[0.25, 0.75], [1.0, 0.0]]
    assert Trace.of("ab", "cd", rows) == Trace.of("ab", "cd", torch.tensor(rows))
    assert Trace.of("ab", "cd", rows) == Trace.of("ab", "cd", torch.tensor(rows).numpy())


def test_weights_of_another_shape_are_refused():
    with pytest.raises(ShapeError, match=r"3 x 2 here, but the weights are 2 x \[3\]"):
        Trace.of("ab", "cde", torch.rand(2, 3))
    with pytest.raises(ShapeError, match=r"got torch.Size\(\[4, 3, 2\]\)"):
        Trace.of("ab", "cde", torch.rand(4, 3, 2))


@pytest.mark.parametrize("text", ["", "[]", "{}", "not json"])
def test_what_is_not_a_trace_is_refused(text):
    with pytest.raises(RegardError, match="Not a trace"):
        Trace.from_json(text)


def test_a_later_version_is_refused():
    text = Trace.of("a", "b", [[1.0]]).to_json().replace('"version": 1', '"version": 99')
    with pytest.raises(RegardError, match="version 99; this regard reads version 1"):
        Trace.from_json(text)
