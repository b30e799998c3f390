"""Traces: made of any weights, written and read back."""

import base64
import io
import json

import numpy as np
import pytest
import torch
from PIL import Image

from regard import RegardError, Trace
from regard.errors import NonFiniteError, ShapeError


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
    assert Trace.of("ab", "cd", rows) == Trace.of("ab", "cd", [torch.tensor(row) for row in rows])
    assert Trace.of("ab", "cd", [rows]).weights == Trace.of("ab", "cd", [torch.tensor(rows)]).weights


def test_weights_of_another_shape_are_refused():
    with pytest.raises(ShapeError, match=r"3 x 2 here, but the weights are 2 x \[3\]"):
        Trace.of("ab", "cde", torch.rand(2, 3))
    with pytest.raises(ShapeError, match=r"got torch.Size\(\[5, 4, 3, 2\]\). Pick one example and one layer"):
        Trace.of("ab", "cde", torch.rand(5, 4, 3, 2))
    with pytest.raises(ShapeError, match=r"3 x 2 here, but the weights are 2 x \[3\]"):
        Trace.of("ab", "cde", torch.rand(5, 2, 3))
    with pytest.raises(ShapeError, match=r"got list"):
        Trace.of("ab", "cd", [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5]]])


def test_heads_are_kept_and_their_mean_is_the_map():
    weights = torch.rand(5, 3, 2, dtype=torch.float64)
    trace = Trace.of("ab", "cde", weights, layer=2)
    torch.testing.assert_close(torch.tensor(trace.weights, dtype=torch.float64), weights.mean(0))
    assert torch.equal(torch.tensor(trace.heads, dtype=torch.float64), weights)
    assert trace.head_names == ("head 1", "head 2", "head 3", "head 4", "head 5")
    assert Trace.from_json(trace.to_json()) == trace
    third = dict(trace.by_head())["head 3"]
    assert third == Trace.of("ab", "cde", weights[2], layer=2)
    assert Trace.of("ab", "cde", weights[0]).by_head() == []
    names = [f"layer 1 head {n}" for n in range(5)]
    assert Trace.of("ab", "cde", weights.tolist(), head_names=names).head_names == tuple(names)


def test_scores_and_texts_travel_with_the_trace():
    trace = Trace.of(
        ["un", "believ", "able"],
        ["in", "croyable"],
        [[0.1, 0.4, 0.5], [0.2, 0.3, 0.5]],
        scores=torch.tensor([-0.25, -1.5]),
        source_text="unbelievable",
        target_text="incroyable",
    )
    assert trace.scores == (-0.25, -1.5)
    assert trace.extras == {}
    assert Trace.from_json(trace.to_json()) == trace


def test_a_plain_trace_is_written_without_what_it_has_not():
    written = json.loads(Trace.of("ab", "c", [[0.5, 0.5]], step=3).to_json())
    assert set(written) == {"version", "kind", "source", "target", "weights", "extras"}


def test_a_file_of_the_first_release_is_read():
    text = (
        '{"version": 1, "kind": "text", "source": ["a", "b"], "target": ["c"], "weights": [[0.25, 0.75]], '
        '"extras": {"scores": "an extra of that name", "kind": 3}}'
    )
    trace = Trace.from_json(text)
    assert trace.weights == ((0.25, 0.75),)
    assert trace.extras == {"scores": "an extra of that name", "kind": 3}
    assert trace.heads == ()
    assert trace.scores is None


def test_heads_without_names_and_scores_without_targets_are_refused():
    with pytest.raises(ShapeError, match=r"5 heads here, but head_names are \['first'\]"):
        Trace.of("ab", "cde", torch.rand(5, 3, 2), head_names=["first"])
    with pytest.raises(ShapeError, match=r"but the weights of head 1 are 1 x \[1\]"):
        Trace(("a", "b"), ("c",), ((0.5, 0.5),), heads=(((1.0,),),), head_names=("one",))
    with pytest.raises(ShapeError, match="3 targets here, but 2 scores"):
        Trace.of("ab", "cde", torch.rand(3, 2), scores=[-1.0, -2.0])


def test_what_json_cannot_hold_is_refused():
    with pytest.raises(NonFiniteError, match=r"for 'd' the weights are \(nan, 1.0\)"):
        Trace.of("ab", "cd", [[0.5, 0.5], [float("nan"), 1.0]])
    with pytest.raises(NonFiniteError, match="scores of a trace must be finite"):
        Trace.of("ab", "c", [[0.5, 0.5]], scores=[float("-inf")])


@pytest.mark.parametrize("text", ["", "[]", "{}", "not json", '{"version": 1}', '{"version": 1, "source": 3}'])
def test_what_is_not_a_trace_is_refused(text):
    with pytest.raises(RegardError, match="Not a trace"):
        Trace.from_json(text)


def test_a_later_version_is_refused():
    text = Trace.of("a", "b", [[1.0]]).to_json().replace('"version": 1', '"version": 99')
    with pytest.raises(RegardError, match="version 99; this regard reads version 1"):
        Trace.from_json(text)


def test_a_trace_of_a_picture_carries_it_and_survives_the_way_to_json_and_back():
    image = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
    weights = torch.rand(2, 15)
    trace = Trace.of_picture(
        image, ["a", "dog"], weights, grid=(3, 5), gates=torch.tensor([0.25, 0.5]), choices=[3, 14], scores=[-1.0, -2.0]
    )
    assert trace.kind == "picture"
    assert trace.source[:6] == ("1,1", "1,2", "1,3", "1,4", "1,5", "2,1")
    assert trace.gates == (0.25, 0.5)
    assert trace.choices == (3, 14)
    assert Trace.from_json(trace.to_json()) == trace
    assert json.loads(trace.to_json())["version"] == 1
    kept = base64.b64decode(trace.picture.removeprefix("data:image/png;base64,"))
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(kept))), image), "a small picture is kept exactly"
    photograph = Trace.of_picture(Image.new("RGBA", (300, 200)), ["a"], [[1.0]])
    assert photograph.picture.startswith("data:image/jpeg;base64,")
    assert photograph.grid == (1, 1)


def test_what_does_not_fit_a_picture_is_refused():
    with pytest.raises(ShapeError, match=r"15 cells do not make a grid of 3 x 3: give grid=\(rows, columns\)"):
        Trace.of_picture(None, "ab", torch.rand(2, 15))
    with pytest.raises(ShapeError, match="2 targets here, but 1 gates"):
        Trace.of_picture(None, "ab", torch.rand(2, 9), gates=[0.5])
    with pytest.raises(ShapeError, match="numbers from 0 to 8; got 9"):
        Trace.of_picture(None, "ab", torch.rand(2, 9), choices=[0, 9])
    with pytest.raises(NonFiniteError, match="gates of a trace must be finite"):
        Trace.of_picture(None, "a", torch.rand(1, 9), gates=[float("nan")])
    with pytest.raises(ShapeError, match=r"a cell per source: 2 here, but it is \(2, 2\)"):
        Trace(("a", "b"), ("c",), ((0.5, 0.5),), grid=(2, 2))
