"""Tapes as figures and in the terminal: every panel, wrong bits marked, unused slots left out."""

import numpy as np
import pytest
from helpers.printing import printed

import regard
from regard.errors import OptionError
from regard.trace import Axis, Map, Series, Trace
from regard.viewing.tape import TapeView

WRITE, READ = "where write head 1 is", "where read head 1 is"
FULL = "how full each slot is (root mean square)"


def axis(name: str, kind: str, size: int) -> Axis:
    return Axis(name, kind, tuple(str(number + 1) for number in range(size)))


def a_tape(steps: int = 5, slots: int = 11, *, wrong: bool = True, memory: bool = True) -> Trace:
    """Steps 4 and later are scored; the heads move from slot 3 on; bit 2 of the last step is wrong."""
    heads = np.eye(slots)[np.minimum(2 + np.arange(steps), slots - 1)]
    output = np.tile([0.9, 0.1], (steps, 1))
    target = (output > 0.5).astype(float)
    if wrong and steps:
        target[-1, 1] = 1
    axes = [axis("steps", "steps", steps), axis("channels", "features", 3), axis("bits", "features", 2)]
    maps = [Map("input", "steps", "channels", np.eye(steps, 3)), Map("output", "steps", "bits", output)]
    maps.append(Map("target", "steps", "bits", target))
    if memory:
        axes += [axis("slots", "slots", slots), axis("features", "features", 4)]
        maps = [Map("read 1", "steps", "slots", heads), Map("write 1", "steps", "slots", heads), *maps]
        maps += [Map(name, "steps", "features", np.full((steps, 4), -0.5)) for name in ("reads 1", "adds 1")]
        maps.append(Map("memory", "slots", "features", np.linspace(-1, 1, 4 * slots).reshape(slots, 4)))
        maps.append(Map("slot sizes", "steps", "slots", np.maximum.accumulate(heads) if steps else heads))
    else:
        maps = [Map("attention", "steps", "steps", np.tril(np.ones((steps, steps)))), *maps]
    scored = (np.arange(steps) >= 3).astype(int)
    return Trace("tape", tuple(axes), tuple(maps), (Series("scored", "steps", scored),))


def panels(trace: Trace) -> dict[str, object]:
    drawn = {axes.get_title(loc="left"): axes for axes in regard.view(trace).figure().axes}
    return {title: axes for title, axes in drawn.items() if title}  # without the scales of colours


def lines_of(trace: Trace, **options) -> list[str]:
    text = printed(regard.view(trace).terminal(**options), options.get("width", 80))
    return [line.rstrip() for line in text.splitlines()]


def test_a_figure_has_every_panel_with_time_from_left_to_right():
    drawn = panels(a_tape())
    assert list(drawn) == [
        "input", "output", "what write head 1 adds", WRITE, "what read head 1 reads", READ, FULL, "memory at the end",
    ]  # fmt: skip
    assert drawn["input"].images[0].get_array().shape == (3, 5)
    used = drawn[WRITE].images[0]
    assert used.get_array().tolist() == np.eye(5).tolist(), "slots 3 to 7, the others are not used"
    assert used.get_extent() == [0.5, 5.5, 7.5, 2.5]
    assert drawn[FULL].images[0].get_array().tolist() == np.triu(np.ones((5, 5))).tolist()
    assert drawn["memory at the end"].images[0].get_array().shape == (5, 4)


def test_what_a_write_head_adds_is_drawn_as_it_reaches_the_memory():
    trace = a_tape(steps=4)
    heads = np.eye(11)[:4] * np.array([[1], [0.5], [0.1], [1]])
    maps = [Map(each.name, each.rows, each.columns, heads) if each.name == "write 1" else each for each in trace.maps]
    drawn = panels(Trace("tape", trace.axes, tuple(maps), trace.series))
    added, read = (drawn[f"what {head}"].images[0].get_array() for head in ("write head 1 adds", "read head 1 reads"))
    np.testing.assert_allclose(added, np.tile([-0.5, -0.25, -0.05, -0.5], (4, 1)), rtol=1e-6)
    np.testing.assert_allclose(read, -0.5)


def test_every_panel_says_what_its_rows_and_its_colours_are():
    figure = regard.view(a_tape()).figure()
    scales = [axes for axes in figure.axes if not axes.get_title(loc="left")]
    drawn = panels(a_tape())
    assert len(scales) == len(drawn)
    rows = [axes.get_ylabel() for axes in drawn.values()]
    assert rows == ["bit", "bit", "feature", "slot", "feature", "slot", "slot", "slot"]
    figure.draw_without_rendering()
    ticks = [[label.get_text() for label in axes.get_yticklabels()] for axes in scales]
    assert ticks[:3] == [["0", "1"], ["0", "1"], ["-0.5", "0", "0.5"]]


def test_heads_that_cross_the_end_of_the_circle_are_drawn_in_one_piece():
    """Slots 10, 11, 1, 2: the heads of this tape start at slot 10."""
    trace = a_tape(steps=4)
    heads = np.roll(np.eye(11)[2:6], 7, axis=1)
    maps = [Map(each.name, each.rows, each.columns, heads) if each.columns == "slots" else each for each in trace.maps]
    axes = panels(Trace("tape", trace.axes, tuple(maps), trace.series))[READ]
    assert axes.images[0].get_array().tolist() == np.eye(4).tolist()
    label = axes.yaxis.get_major_formatter()
    assert [label(row, 0) for row in (10, 11, 12, 13)] == ["10", "11", "1", "2"]


def test_wrong_bits_are_crossed_out():
    (crosses,) = panels(a_tape())["output"].lines
    assert crosses.get_xydata().tolist() == [[5, 2]]
    (crosses,) = panels(a_tape(wrong=False))["output"].lines
    assert crosses.get_xydata().size == 0
    assert sum("✗" in line for line in lines_of(a_tape())) == 1
    assert not any("✗" in line for line in lines_of(a_tape(wrong=False)))


def test_the_output_is_blank_where_it_does_not_count():
    output = panels(a_tape())["output"].images[0].get_array()
    assert output[:, :3].max() == 0
    assert output[0, 3:].tolist() == pytest.approx([0.9, 0.9])


def test_attention_over_the_inputs_is_a_tape_too():
    assert list(panels(a_tape(memory=False))) == ["input", "output", "attention"]
    assert "attention" in lines_of(a_tape(memory=False))


def test_the_terminal_has_every_panel_and_fits():
    lines = lines_of(a_tape(), colour=False)
    assert [line for line in lines if line[:1].isalpha()] == ["input", "output", WRITE, READ, FULL, "memory at the end"]
    start = lines.index(WRITE) + 1
    assert lines[start : start + 5] == ["   3 █", "      █", "       █", "        █", "         █"]
    long = lines_of(a_tape(steps=300, slots=400), width=60)
    assert max(map(len, long)) <= 60
    assert "each character shows" in "".join(long)


def test_what_holds_no_tape_is_explained():
    text = Trace.from_weights(["a"], ["b"], [[1.0]])
    with pytest.raises(OptionError, match=r"There is no tape to draw.*no map 'input'"):
        TapeView(text).figure()
    with pytest.raises(OptionError, match="no tape to draw: the trace has 0 steps"):
        regard.view(a_tape(steps=0)).terminal()
