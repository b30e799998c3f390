"""The view of glimpses: path, patches and belief, as a figure and in the terminal."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.printing import printed

from regard.errors import OptionError
from regard.trace import Axis, Box, Map, Series, Trace
from regard.trace.data_uri import to_data_uri
from regard.viewing.view import view


def trace_of(count=3, classes=4, scales=2) -> Trace:
    steps, labels = tuple(map(str, range(1, count + 1))), tuple("abcdefghijklmnop"[:classes])
    axes = Axis("glimpses", "steps", steps), Axis("classes", "classes", labels)
    beliefs = np.random.default_rng(1).dirichlet(np.ones(classes), count)
    boxes = [
        Box("glimpses", step, 0.25 - 0.1 * scale, 0.25 - 0.1 * scale, 0.5 + 0.1 * scale, 0.5 + 0.1 * scale)
        for step in range(count)
        for scale in range(scales)
    ]
    points = np.linspace(0, 1, count)
    series = Series("x", "glimpses", points), Series("y", "glimpses", points)
    pixels = np.arange(40 * 40, dtype=np.uint16).reshape(40, 40) % 255
    uri = to_data_uri(pixels.astype(np.uint8))
    maps = (Map("belief", "glimpses", "classes", beliefs),)
    return Trace("glimpses", axes, maps, series, tuple(boxes), uri, {"glimpse_size": 10})


def test_a_figure_has_the_path_a_patch_per_scale_and_a_belief_for_each_glimpse():
    trace = trace_of(count=3, scales=2)
    shown = view(trace)
    path, *panels = shown.figure(title="Two $x$").axes
    assert [text.get_text() for text in path.texts] == ["1", "2", "3"]
    assert path.lines[0].get_xdata().tolist() == [0, 20, 40]
    assert len(path.patches) == 3
    patches = [axes.images[0].get_array().shape for axes in panels if axes.images]
    assert len(patches) == 3 * 2
    assert set(patches) == {(10, 10, 3)}, "patches are as coarse as the retina"
    bars = [[bar.get_width() for bar in axes.patches] for axes in panels if not axes.images]
    np.testing.assert_allclose(bars, trace.weights, rtol=1e-6)


def test_a_patch_is_the_mean_of_its_pixels():
    trace = trace_of(count=1, scales=1)
    (_, patch, _) = view(trace).figure().axes
    pixels = (np.arange(1600).reshape(40, 40) % 255).astype(np.uint8)
    assert np.array_equal(patch.images[0].get_array()[:, :, 0], pixels[10:20, 10:20])


def test_a_window_over_the_edge_is_drawn_black_outside_of_the_image():
    """A window of 10 pixels around the upper left corner, of 20 pixels at the right edge, and one around everything."""
    trace = trace_of(count=1, scales=3)
    cut = ((0, 0, 0.125, 0.125), (0.75, 0.25, 1, 0.75), (0, 0, 1, 1))
    boxes = tuple(Box("glimpses", 0, *edges) for edges in cut)
    trace = replace(trace, boxes=boxes, extras={"glimpse_size": 10})
    _, corner, side, _ = (axes.images[0].get_array()[:, :, 0] for axes in view(trace).figure().axes if axes.images)
    pixels = (np.arange(1600).reshape(40, 40) % 255).astype(np.uint8)
    assert np.array_equal(corner[5:, 5:], pixels[:5, :5])
    assert not corner[:5].any()
    assert not corner[:, :5].any()
    assert side.shape == (10, 10)
    assert not side[:, 5:].any(), "10 of its 20 columns are outside"
    assert side[:, :5].any(1).all()


def test_glimpses_of_one_place_share_a_label():
    trace = trace_of(count=5)
    x, y = (0.5, 0.1, 0.11, 0.1, 0.9), (0.5, 0.1, 0.1, 0.11, 0.1)
    trace = replace(trace, series=(Series("x", "glimpses", x), Series("y", "glimpses", y)))
    assert [text.get_text() for text in view(trace).figure().axes[0].texts] == ["1", "2-4", "5"]
    trace = replace(trace, series=(Series("x", "glimpses", (0.5, 0.1, 0.9, 0.1, 0.9)), Series("y", "glimpses", y)))
    assert [text.get_text() for text in view(trace).figure().axes[0].texts] == ["1", "2,4", "3,5"]


def test_only_the_most_probable_of_many_classes_are_drawn():
    figure = view(trace_of(count=1, classes=16)).figure()
    assert len(figure.axes[-1].patches) == 10


def test_the_terminal_shows_path_and_belief():
    trace = trace_of()
    shown = printed(view(trace))
    assert " 2 at  50%, 50%" in shown
    best = trace.source[int(trace.weights[1].argmax())]
    assert f"{best} {trace.weights[1].max():.2f}" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert all(len(line) <= 30 for line in printed(view(trace).terminal(width=30, colour=False), 30).splitlines())
    colour = view(trace).terminal(width=80, colour=True)
    assert "▀" in colour.plain
    assert "3" in colour.plain


def test_a_trace_without_glimpses_is_explained():
    for broken in (replace(trace_of(), series=()), replace(trace_of(), boxes=()), trace_of(count=41)):
        with pytest.raises(OptionError, match="glimpses"):
            view(broken).figure()
        with pytest.raises(OptionError, match="glimpses"):
            view(broken).terminal()
