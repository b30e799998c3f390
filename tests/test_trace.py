"""Traces: built from any weights, checked, written and read back."""

import base64
import copy
import csv
import io
import json
import pickle
import re
import sys

import numpy as np
import pytest
import torch
from helpers import traces
from helpers.junk import with_value, wrong_values
from PIL import Image

from regard import RegardError, Trace
from regard.errors import DataError, DtypeError, OptionError, ShapeError
from regard.trace import Axis, Box, Map, Series
from regard.trace.trace import COLUMNS

RNG = np.random.default_rng(20150519)


def softmax_rows(*size: int) -> np.ndarray:
    return RNG.dirichlet(np.ones(size[-1]), size=size[:-1])


# --- building ---------------------------------------------------------------------------------------------------------


def test_a_trace_survives_json(tmp_path):
    trace = Trace.from_weights(["ein", "کتاب"], ["a", "book", "."], torch.rand(3, 2), model="babel", step=3)
    assert Trace.from_json(trace.to_json()) == trace
    path = trace.save(tmp_path / "new" / "trace.json")
    assert Trace.load(path) == trace
    assert [file.name for file in path.parent.iterdir()] == ["trace.json"], "no temporary file is left"
    assert json.loads(trace.to_json())["version"] == 3
    assert trace.extras == {"model": "babel", "step": 3}


def test_a_trace_takes_lists_arrays_and_tensors():
    rows = [[0.25, 0.75], [1.0, 0.0]]
    tensor = torch.tensor(rows, requires_grad=True)
    trace = Trace.from_weights("ab", "cd", rows)
    assert trace == Trace.from_weights("ab", "cd", tensor)
    assert trace == Trace.from_weights("ab", "cd", tensor.detach().numpy())
    assert trace == Trace.from_weights("ab", "cd", tensor.bfloat16())
    assert trace == Trace.from_weights("ab", "cd", [tensor[0], tensor[1]])
    assert trace == Trace.from_weights("ab", "cd", [[tensor[0, 0], 0.75], [1, 0]])
    assert trace.weights.dtype == np.float32
    assert trace.weights.tolist() == rows


def test_heads_are_kept_and_their_mean_is_the_main_map():
    weights = torch.rand(5, 3, 2, dtype=torch.float64)
    trace = Trace.from_weights("ab", "cde", weights, layer=2)
    np.testing.assert_allclose(trace.weights, weights.mean(0), rtol=1e-6)
    assert [each.name for each in trace.maps] == ["mean", "head 1", "head 2", "head 3", "head 4", "head 5"]
    assert [each.head for each in trace.maps] == [None, 1, 2, 3, 4, 5]
    np.testing.assert_array_equal(trace.map("head 3").weights, weights[2].float())
    assert trace.select(head=3).maps == (trace.map("head 3"),)
    assert Trace.from_json(trace.to_json()) == trace
    names = [f"layer 1 head {n}" for n in range(5)]
    named = Trace.from_weights("ab", "cde", weights.tolist(), names=names)
    assert [each.name for each in named.maps] == ["mean", *names]
    assert Trace.from_weights("ab", "cde", weights[0], names=["cross"]).main.name == "cross"


def test_log_probabilities_and_texts_travel_with_the_trace():
    trace = Trace.from_weights(
        ["un", "believ", "able"],
        ["in", "croyable"],
        [[0.1, 0.4, 0.5], [0.2, 0.3, 0.5]],
        log_probs=torch.tensor([-0.25, -1.5]),
        source_text="unbelievable",
        target_text="incroyable",
    )
    assert trace.values("log_prob") == (-0.25, -1.5)
    assert trace.values("gate") is None
    assert trace.axis("source").text == "unbelievable"
    assert trace.axis("target").text == "incroyable"
    assert trace.extras == {}
    assert Trace.from_json(trace.to_json()) == trace


def test_a_trace_of_an_image_carries_it_and_survives_json():
    image = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
    trace = Trace.from_image(
        image,
        ["a", "dog"],
        torch.rand(2, 15),
        grid=(3, 5),
        gates=torch.tensor([0.25, 0.5]),
        choices=torch.tensor([3, 14]),
        log_probs=[-1.0, -2.0],
        text="a dog",
    )
    assert trace.kind == "caption"
    assert trace.source[:6] == ("1,1", "1,2", "1,3", "1,4", "1,5", "2,1")
    assert trace.axis("cells").grid == (3, 5)
    assert trace.axis("target").text == "a dog"
    assert trace.values("gate") == (0.25, 0.5)
    assert trace.values("choice") == (3, 14)
    assert all(type(choice) is int for choice in trace.values("choice"))
    assert Trace.from_json(trace.to_json()) == trace
    assert Trace.from_json(trace.to_json()).values("choice") == (3, 14)
    kept = base64.b64decode(trace.image.removeprefix("data:image/png;base64,"))
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(kept))), image), "a small image is kept exactly"
    photograph = Trace.from_image(Image.new("RGBA", (300, 200)), ["a"], [[1.0]])
    assert photograph.image.startswith("data:image/jpeg;base64,")
    assert photograph.axis("cells").grid == (1, 1)


def test_a_caption_without_words_keeps_its_grid():
    trace = Trace.from_image(None, [], np.zeros((0, 6)), grid=(2, 3))
    assert trace.weights.shape == (0, 6)
    assert Trace.from_json(trace.to_json()) == trace
    assert Trace.from_json(trace.to_json()).weights.shape == (0, 6)
    assert Trace.from_weights(["a"], [], []).weights.shape == (0, 1)
    assert Trace.from_weights([], ["a"], [[]]).weights.shape == (1, 0)


# --- one of each kind of model ----------------------------------------------------------------------------------------


def transformer() -> Trace:
    axes = Axis("source", "tokens", ("the", "dog", "</s>")), Axis("target", "tokens", ("le", "chien"))
    sizes = {"cross": ("target", "source"), "encoder": ("source", "source"), "decoder": ("target", "target")}
    lengths = {"source": 3, "target": 2}
    maps = [Map("cross", "target", "source", softmax_rows(2, 3))]
    for name, (rows, columns) in sizes.items():
        for layer in (1, 2):
            for head in (1, 2, 3, 4):
                weights = softmax_rows(lengths[rows], lengths[columns])
                maps.append(Map(f"{name} {layer}.{head}", rows, columns, weights, layer, head))
    return Trace("translation", axes, tuple(maps), (Series("log_prob", "target", [-0.1, -0.2]),))


def glimpses_without_maps() -> Trace:
    trace = traces.glimpses()
    return Trace(trace.kind, trace.axes, (), trace.series, trace.boxes, trace.image, {"digit": 7})


@pytest.mark.parametrize(
    "build", [*traces.KINDS.values(), transformer, glimpses_without_maps], ids=lambda build: build.__name__
)
def test_every_kind_of_model_fits(build, tmp_path):
    trace = build()
    again = Trace.load(trace.save(tmp_path / "trace.json"))
    assert again == trace
    assert again.to_json() == trace.to_json(), "writing again gives the same text"
    assert set(json.loads(trace.to_json())) <= {
        "version", "kind", "axes", "maps", "series", "boxes", "image", "extras", "used_slots",
    }  # fmt: skip
    assert len(repr(trace)) < 160
    for copied in (pickle.loads(pickle.dumps(trace)), copy.deepcopy(trace)):  # noqa: S301
        assert copied == trace
        assert not any(each.weights.flags.writeable for each in copied.maps)


def test_layers_and_heads_are_selected():
    trace = transformer()
    assert len(trace.maps) == 25
    assert [each.name for each in trace.select(layer=2, head=1).maps] == ["cross 2.1", "encoder 2.1", "decoder 2.1"]
    assert [each.name for each in trace.select(name="encoder", layer=1).maps] == [
        f"encoder 1.{head}" for head in (1, 2, 3, 4)
    ]
    assert trace.select(name="encoder 2.3").maps == (trace.map("encoder 2.3"),)
    encoder = trace.select(name="encoder 2.3")
    assert encoder.source == encoder.target == ("the", "dog", "</s>")
    assert trace.select() == trace
    with pytest.raises(OptionError, match=r"no map with layer=3, name='cross'. It has 25 maps: cross, cross 1.1"):
        trace.select(layer=3, name="cross")
    with pytest.raises(OptionError, match=r"no map 'crss'; it has 'cross'"):
        trace.map("crss")
    with pytest.raises(OptionError, match="has no main map"):
        _ = glimpses_without_maps().weights


# --- values -----------------------------------------------------------------------------------------------------------


def test_traces_are_immutable_and_compare_by_value():
    rows = np.array([[0.25, 0.75]])
    extras = {"beam": [1, 2]}
    trace = Trace.from_weights("ab", "c", rows, **extras)
    rows[0, 0] = 9
    extras["beam"].append(3)
    assert trace == Trace.from_weights("ab", "c", [[0.25, 0.75]], beam=[1, 2])
    with pytest.raises(ValueError, match="read-only"):
        trace.weights[0, 0] = 1
    with pytest.raises(AttributeError):
        trace.kind = "caption"
    with pytest.raises(TypeError, match="does not support item assignment"):
        trace.extras["beam"] = 1
    assert trace != Trace.from_weights("ab", "c", [[0.2501, 0.7499]], beam=[1, 2])
    assert trace != Trace.from_weights("ab", "d", [[0.25, 0.75]], beam=[1, 2])
    assert trace != "a trace"


def test_json_keeps_six_significant_digits_and_stays_small():
    weights = np.float32([[1 / 3, 1e-9 / 7, 0, 1, 123456.789]])
    text = Trace.from_weights("abcde", "f", weights, log_probs=[-1 / 3]).to_json()
    assert "[0.333333,1.42857e-10,0,1.0,123457.0]" in text
    assert '"values":[-0.333333]' in text
    large = Trace.from_weights([""] * 100, [""] * 100, softmax_rows(100, 100))
    assert len(large.to_json()) < 12 * 100 * 100
    np.testing.assert_allclose(Trace.from_json(large.to_json()).weights, large.weights, rtol=5e-6)


def test_rounding_again_changes_nothing():
    numbers = np.concatenate([10.0 ** RNG.uniform(-30, 27, 5000), 10.0 ** np.arange(-30, 28), [9.999995, 999999.5]])
    numbers = np.float32(numbers * RNG.choice([-1, 1], len(numbers)))
    once = Trace.from_weights(["x"] * len(numbers), ["y"], [numbers])
    again = Trace.from_json(once.to_json())
    assert again == once
    assert again.to_json() == once.to_json()
    large = np.abs(numbers) > 1e-16
    np.testing.assert_allclose(again.weights[0][large], numbers[large], rtol=5.1e-6)
    np.testing.assert_allclose(again.weights[0][~large], numbers[~large], atol=6e-23, rtol=5.1e-6)
    written = [len(number.lstrip("-").replace(".", "").split("e")[0].strip("0")) for number in
               once.to_json().partition('"weights":[[')[2].partition("]")[0].split(",")]  # fmt: skip
    assert max(written) <= 6


def test_every_weight_is_written_to_a_table(tmp_path):
    trace = Trace.from_weights(["a, b", 'say "c"'], ["x"], [[[0.25, 0.75]], [[1 / 3, 2 / 3]]])
    frame = trace.to_dataframe()
    assert list(frame.columns) == list(COLUMNS)
    assert list(frame["map"]) == ["mean", "mean", "head 1", "head 1", "head 2", "head 2"]
    assert list(frame["weight"][2:]) == [0.25, 0.75, 0.333333, 0.666667]
    assert list(frame["column_label"][:2]) == ["a, b", 'say "c"']
    path = trace.to_csv(tmp_path / "weights.csv")
    with path.open(encoding="utf-8", newline="") as stream:
        lines = list(csv.reader(stream))
    assert lines[0] == list(COLUMNS)
    values = [["" if value is None else str(value) for value in row] for row in trace._rows()]
    assert lines[1:] == values
    assert lines[4] == ["head 1", "", "1", "0", "x", "1", 'say "c"', "0.75"]


def test_without_pandas_a_data_frame_is_explained(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    message = r"needs the package pandas: pip install 'regard\[pandas\]'. Trace.to_csv writes"
    with pytest.raises(OptionError, match=message):
        Trace.from_weights(["a"], ["x"], [[1.0]]).to_dataframe()


def test_a_plain_trace_is_written_without_empty_fields():
    written = json.loads(Trace.from_weights("ab", "c", [[0.5, 0.5]]).to_json())
    assert set(written) == {"version", "kind", "axes", "maps"}
    assert written["axes"][0] == {"name": "source", "kind": "tokens", "labels": ["a", "b"]}
    assert written["maps"] == [{"name": "attention", "rows": "target", "columns": "source", "weights": [[0.5, 0.5]]}]
    cells = json.loads(Trace.from_image(None, ["a"], np.ones((1, 4))).to_json())["axes"][0]
    assert cells == {"name": "cells", "kind": "cells", "grid": [2, 2]}, "the usual labels of a grid are left out"


def test_the_repr_is_short():
    trace = Trace.from_weights(["word"] * 1000, ["x"] * 500, np.zeros((500, 1000)))
    assert repr(trace) == "Trace('text': 1000 source, 500 target; 1 map: attention)"
    assert repr(trace.main) == "Map('attention', target x source: 500 x 1000)"
    assert len(repr(trace.axis("source"))) < 100


# --- what is refused --------------------------------------------------------------------------------------------------


AXIS, TABLE = Axis("words", "words", ("a", "b")), np.eye(2)
EVEN = np.full((3, 2), 0.5)
from_weights, from_image = Trace.from_weights, Trace.from_image
REFUSED = [
    # Weights of another shape.
    (lambda: from_weights("ab", "cde", EVEN.T), r"Shape: .* 3 x 2 weights, one row per 'target' .* got 2 x 3"),
    (
        lambda: from_weights("ab", "cde", np.ones((5, 4, 3, 2))),
        r"Shape: .*\(5, 4, 3, 2\)\. Pick one example and one",
    ),
    (lambda: from_weights("ab", "cde", np.ones((5, 2, 3))), r"Shape: .*needs 3 x 2 weights.* got 2 x 3"),
    (lambda: from_weights("ab", "cd", [[[0.5, 0.5], [1, 0]], [[0.5, 0.5]]]), r"Shape: .*here 2 x 2, .* got list"),
    (
        lambda: from_image(None, "ab", np.ones((2, 15))),
        r"Shape: 15 cells do not make a square grid: give grid=\(rows",
    ),
    (lambda: from_image(None, "ab", np.ones((2, 15)), grid=(3, 3)), r"Shape: .*needs 2 x 9 weights.* got 2 x 15"),
    # Names and series of another number, or of other numbers.
    (lambda: from_weights("ab", "cde", np.ones((5, 3, 2)), names=["one"]), r"Shape: .*5 maps .* names=\['one'\]"),
    (
        lambda: from_weights("ab", "cde", EVEN, log_probs=[-1, -2]),
        "Shape: .*'log_prob' .*'target', 3 here; got 2",
    ),
    (lambda: from_image(None, "ab", np.ones((2, 9)), gates=[0.5]), "Shape: .*'gate' .*'target', 2 here; got 1"),
    (lambda: from_image(None, "ab", np.ones((2, 9)), choices=[9, 0]), "Shape: .*integers from 0 to 8; got 9"),
    (lambda: from_image(None, "ab", np.ones((2, 9)), choices=[-1, 0]), "Shape: .*integers from 0 to 8; got -1"),
    (
        lambda: from_image(None, "ab", np.ones((2, 9)), choices=[0.5, 0]),
        r"Shape: .*integers from 0 to 8; got 0\.5",
    ),
    # Numbers that JSON cannot hold.
    (
        lambda: from_weights("ab", "cd", [[1, 1], [np.nan, 1]]),
        "NonFinite: .*'attention' .*float32 .*row 2 has nan",
    ),
    (lambda: from_weights("ab", "c", [[0.5, 1e300]]), "NonFinite: .*row 1 has inf"),
    (
        lambda: from_weights("ab", "c", [[1, 1]], log_probs=[-np.inf]),
        "NonFinite: .*series 'log_prob' must be finite",
    ),
    (lambda: from_image(None, "a", np.ones((1, 9)), gates=[np.nan]), "NonFinite: .*series 'gate' must be finite"),
    (lambda: from_weights("ab", "c", [[1, 1]], model=object()), "Option: .*hold what JSON can"),
    (lambda: from_weights("ab", "c", [[1, 1]], loss=np.nan), "Option: .*hold what JSON can"),
    # Wrong elements.
    (lambda: Axis("words", "wrods", ("a",)), "Option: .*has kind 'wrods'; choose from tokens, words"),
    (lambda: Axis("cells", "cells", ("a",)), r"Shape: .*an axis of cells needs grid=\(rows, columns\)"),
    (lambda: Axis("words", "words", ("a",), grid=(1, 1)), "Shape: .*no other kind has a grid"),
    (lambda: Axis("cells", "cells", ("a", "b"), grid=(2, 2)), "Shape: .*2 labels, but a grid of 2 x 2 cells"),
    (
        lambda: Axis.from_grid("cells", (10**5, 10**5)),
        r"Shape: .*at most 1,048,576 cells together; got \(100000, 100000\)",
    ),
    (lambda: Axis("words", "words", ("a", 3)), "Dtype: .*label of axis 'words' must be text; got 3"),
    (lambda: Axis("words", "words", ("\ud800",)), "Dtype: .*not valid Unicode"),
    (lambda: Trace("text", (AXIS,), (Map("m", "words", "words", TABLE),) * 2), "Option: The maps .*; 'm' comes twice"),
    (lambda: Trace("text", (AXIS, AXIS), ()), "Option: The axes .* need different names; 'words' comes twice"),
    (lambda: Trace("text", (AXIS,), (Map("m", "words", "x", TABLE),)), "Option: .*no axis 'x'; it has 'words'"),
    (lambda: Map("m", "words", "words", TABLE, layer=0), "Option: .*layer of map 'm' is counted from 1; got 0"),
    (lambda: Trace("text", (AXIS,), (), boxes=(Box("words", 2, 0, 0, 1, 1),)), "Shape: .*position 2"),
    (lambda: Box("words", 0, 0.5, 0, 0.5, 1), "Option: A box needs 0 <="),
    (lambda: Box("words", 0, -0.1, 0, 1, 1), "Option: A box needs 0 <="),
    (lambda: Box("words", 0, 0, 0, 1, 1.5), "Option: A box needs 0 <="),
    (lambda: Box("words", 0, 0, np.nan, 1, 1), "Option: A box needs 0 <="),
    (lambda: Trace("text", (AXIS,), (), image="javascript:alert(1)"), "Data: .*data URI"),
    (lambda: Trace("text", (AXIS,), (), image="data:text/html;base64,AAAA"), "Data: .*data URI"),
    (lambda: Trace("text", (AXIS,), (), image="data:image/png;base64,*"), "Data: .*data URI"),
    (lambda: Trace("text", (AXIS,), (), image=3), "Data: .*data URI"),
]


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize(("build", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_wrong_values_are_refused(build, message):
    """The message begins with the kind of the error."""
    with pytest.raises(RegardError) as caught:
        build()
    assert re.match(message, f"{type(caught.value).__name__.removesuffix('Error')}: {caught.value}")


# --- reading ----------------------------------------------------------------------------------------------------------


def test_the_trace_of_a_printed_result_is_read():
    trace = Trace.from_weights("ab", "c", [[0.5, 0.5]])
    assert Trace.from_dict({"text": "c", "trace": trace.to_dict()}) == trace
    with pytest.raises(DataError, match="This result has no trace"):
        Trace.from_dict({"text": "c", "trace": None})
    line = json.dumps({"text": "c", "trace": trace.to_dict()})
    with pytest.raises(DataError, match=r"several JSON values. Take one of its lines"):
        Trace.from_json(f"{line}\n{line}\n")


@pytest.mark.parametrize("text", ["", "[]", "{}", "3", "not json", '{"version": 2}', '{"version": 2, "kind": 3}'])
def test_text_that_is_not_a_trace_is_refused(text):
    with pytest.raises(RegardError, match="Not a trace"):
        Trace.from_json(text)


GOOD = Trace.from_image(None, ["a", "b"], np.full((2, 6), 1 / 6), grid=(2, 3), gates=[0.5, 1]).to_dict()
GOOD["boxes"] = [{"axis": "target", "position": 0, "left": 0, "top": 0, "right": 1, "bottom": 1}]


@pytest.mark.usefixtures("as_a_user")
def test_any_wrong_value_in_json_is_a_regard_error():
    """Every value is replaced by junk of every type, and every field is left out: a trace or a RegardError results."""
    refused = 0
    for wrong in wrong_values(GOOD):
        try:
            Trace.from_json(json.dumps(wrong))
        except RegardError:
            refused += 1
    assert refused > 180


@pytest.mark.usefixtures("as_a_user")
def test_text_for_numbers_a_bad_grid_and_deep_nesting_are_explained():
    with pytest.raises(DtypeError, match="weights of map 'attention' must be real numbers"):
        Trace.from_dict(with_value(GOOD, ("maps", 0, "weights", 0, 0), "0.5"))
    with pytest.raises(ShapeError, match=r"two positive integers, \(rows, columns\).* got \[2, 'x'\]"):
        Trace.from_dict(with_value(GOOD, ("axes", 0, "grid"), [2, "x"]))
    with pytest.raises(DataError, match=r"axes\[0\] must be an object; got 3"):
        Trace.from_dict(with_value(GOOD, ("axes", 0), 3))
    with pytest.raises(DataError, match=r"axes\[1\] has no 'labels'"):
        Trace.from_dict(GOOD | {"axes": [GOOD["axes"][0], {"name": "target", "kind": "words"}]})
    with pytest.raises(DataError, match="unknown field 'gates'"):
        Trace.from_dict(GOOD | {"gates": [1]})
    with pytest.raises(DataError, match="Not a trace"):
        Trace.from_json("[" * 100_000)
    with pytest.raises(RegardError):
        Trace.from_json('{"version":2,"kind":"text","extras":{"a":' + "[" * 100_000 + "]" * 100_000 + "}}")


def test_layout_facts_are_written_for_viewers_and_found_anew_when_read():
    source = Axis("source", "tokens", ("▁un", "believ", "able", "▁news", "</s>"))
    target = Axis("target", "tokens", ("خبر", "باور", "نکردنی"), text="خبر باورنکردنی")
    written = json.loads(Trace("translation", (source, target), ()).to_json())
    assert written["axes"][0]["words"] == [["unbelievable", 3], ["news", 1], ["</s>", 1]]
    assert written["axes"][0]["special"] == [4]
    assert "direction" not in written["axes"][0]
    assert written["axes"][1]["direction"] == "rtl"
    assert written["axes"][1]["words"] == [["خبر", 1], ["باورنکردنی", 2]]
    again = Trace.from_dict(written | {"axes": [axis | {"words": [], "special": 3} for axis in written["axes"]]})
    assert json.loads(again.to_json()) == written
    plain = [
        {name: axis[name] for name in axis if name in ("name", "kind", "labels", "text")} for axis in written["axes"]
    ]
    assert json.loads(Trace.from_dict({**written, "version": 2, "axes": plain}).to_json()) == written


@pytest.mark.parametrize(
    ("used", "arc"), [([2, 4], (2, 3)), ([0, 6], (6, 2)), ([3], (3, 1)), ([], None), (range(7), (0, 7))]
)
def test_the_used_slots_are_the_shortest_arc_of_the_circle_with_all_that_heads_used(used, arc):
    weights = np.zeros((2, 7))
    weights[1, list(used)] = 0.06
    axes = Axis("steps", "steps", ("1", "2")), Axis("slots", "slots", tuple("1234567"))
    maps = Map("write 1", "steps", "slots", weights), Map("read 1", "steps", "slots", np.full((2, 7), 0.04))
    trace = Trace("tape", axes, maps)
    assert trace.used_slots == arc
    assert json.loads(trace.to_json()).get("used_slots") == (arc and list(arc))
    assert Trace.from_json(trace.to_json()) == trace


@pytest.mark.parametrize("version", [1, 99, True, "2", 2.5])
def test_another_version_is_refused(version):
    with pytest.raises(DataError, match=f"version {version!r}; this regard reads versions 2 and 3"):
        Trace.from_dict(GOOD | {"version": version})


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(DataError, match=r"nope\.json: No such file or directory. Give a file that Trace.save wrote"):
        Trace.load(tmp_path / "nope.json")
    with pytest.raises(DataError, match="Is a directory"):
        Trace.load(tmp_path)
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match=r"bytes\.json: Not a trace: it is not UTF-8"):
        Trace.load(tmp_path / "bytes.json")
    (tmp_path / "not.json").write_text("{}")
    with pytest.raises(DataError, match=r"not\.json: Not a trace"):
        Trace.load(tmp_path / "not.json")


# --- words ------------------------------------------------------------------------------------------------------------


def test_subwords_are_joined_to_words_by_the_text():
    source = Axis("source", "tokens", ("Are", "a", "was", "sign", "ed", ".", "</s>"), text="Area was signed.")
    target = Axis("target", "tokens", ("l'", "espace", "a", "sign", "é", "</s>"), text="l'espace a signé")
    weights = softmax_rows(6, 7).astype(np.float32)
    series = (
        Series("log_prob", "target", [-1.0, -2.0, -3.0, -4.0, -5.0, -6.0]),
        Series("gate", "target", [1.0, 0.5, 0.0, 0.2, 0.4, 1.0]),
        Series("choice", "target", [0, 1, 2, 4, 3, 6]),
    )
    words = Trace("translation", (source, target), (Map("cross", "target", "source", weights),), series).by_words()
    assert words.source == ("Area", "was", "signed.", "</s>")
    assert words.target == ("l'espace", "a", "signé", "</s>")
    assert {axis.kind for axis in words.axes} == {"words"}
    columns = np.stack([weights[:, [0, 1]].sum(1), weights[:, 2], weights[:, 3:6].sum(1), weights[:, 6]], 1)
    rows = np.stack([columns[[0, 1]].mean(0), columns[2], columns[[3, 4]].mean(0), columns[5]])
    np.testing.assert_allclose(words.weights, rows, rtol=1e-6)
    np.testing.assert_allclose(words.weights.sum(1), 1, rtol=1e-5)
    assert words.values("log_prob") == (-3.0, -3.0, -9.0, -6.0)
    assert words.values("gate") == pytest.approx((0.75, 0.0, 0.3, 1.0))
    assert words.values("choice") == (0, 1, 2, 3)
    assert words.by_words() == words


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (("▁un", "believ", "able", "▁news"), ("unbelievable", "news")),
        (("[CLS]", "un", "##believ", "##able", "news", "[SEP]"), ("[CLS]", "unbelievable", "news", "[SEP]")),
        (("un@@", "believ@@", "able", "news"), ("unbelievable", "news")),
        (("un", "believable</w>", "news</w>"), ("unbelievable", "news")),
        (("plain", "words"), ("plain", "words")),
    ],
)
def test_subwords_are_joined_to_words_by_their_marks(labels, words):
    trace = Trace.from_weights(labels, labels, softmax_rows(len(labels), len(labels))).by_words()
    assert (trace.source, trace.target) == (words, words)


@pytest.mark.parametrize("labels", [("İİİİst", "anbul", "güz", "el"), ("i̇i̇i̇i̇st", "anbul", "güz", "el")])
def test_words_are_found_in_a_text_whose_length_changes_in_lower_case(labels):
    source = Axis("source", "tokens", labels, text="İİİİstanbul güzel")
    assert Trace("text", (source,), ()).by_words().axes[0].labels == (labels[0] + "anbul", "güzel")


def test_an_unknown_token_stands_for_one_word_of_the_text():
    source = Axis("source", "tokens", ("the", "<unk>", "si", "ts"), text="the 猫猫 sits")
    trace = Trace("text", (source,), (Map("self", "source", "source", np.eye(4)),)).by_words()
    assert trace.source == ("the", "<unk>", "sits")
    np.testing.assert_array_equal(trace.weights[2], [0, 0, 1])
