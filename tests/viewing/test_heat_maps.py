"""Heat maps show the numbers they were given."""

import re

import numpy as np
import pytest
from helpers.printing import printed
from matplotlib.colors import to_rgb

from regard import Trace, viewing
from regard.errors import OptionError
from regard.trace import Axis, Map
from regard.viewing.scale import luminance, reduced

TRACE = Trace.from_weights(
    ["the", "dog", "runs"], ["le", "chien", "court"], [[0.9, 0.1, 0], [0.05, 0.95, 0], [0, 0.25, 0.75]]
)


def shown(trace: Trace, width: int = 80) -> str:
    return printed(viewing.matrix.terminal(trace, title="a title", width=width), width)


def test_the_terminal_shows_words_and_weights():
    lines = [line.split() for line in shown(TRACE).splitlines()]
    assert lines == [
        ["a", "title"],
        ["the", "dog", "runs"],
        ["le", "90", "10", "·"],
        ["chien", "5", "95", "·"],
        ["court", "·", "25", "75"],
    ]


def test_the_weights_of_a_column_are_right_aligned():
    trace = Trace.from_weights(["the", "sleeping"], "abcd", [[1.0, 0.0], [0.05, 0.95], [0.9, 0.1], [0.0, 1.0]])
    ends = [[found.end() for found in re.finditer(r"\d+|·", line)] for line in shown(trace).splitlines()[2:]]
    assert len({tuple(each) for each in ends}) == 1, ends


def test_long_sources_are_numbered_and_the_numbers_explained():
    words = [f"word{i}" for i in range(20)]
    text = shown(Trace.from_weights(words, ["x"], [[0.05] * 20]), width=150)
    assert "word0" in text.splitlines()[1]
    text = shown(Trace.from_weights(words, ["x"], [[0.05] * 20]), width=110)
    assert text.splitlines()[1].split() == [str(i) for i in range(1, 21)]
    assert "20:word19" in " ".join(text.split())


def test_words_are_never_read_as_markup():
    assert "[bold]" in shown(Trace.from_weights(["[bold]", "x"], ["[/red]"], [[0.5, 0.5]]))


def test_weights_above_one_and_below_zero_can_be_shown():
    assert shown(Trace.from_weights("ab", "c", [[2.5, -0.5]])).split()[-2:] == ["250", "-50"]


def test_the_figure_holds_the_words_and_the_weights():
    axes = viewing.matrix.figure(TRACE).axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == list(TRACE.source)
    assert [label.get_text() for label in axes.get_yticklabels()] == list(TRACE.target)
    assert axes.images[0].get_array().tolist() == [list(row) for row in TRACE.weights]
    assert {text.get_text() for text in axes.texts} == {"0.90", "0.10", "0.05", "0.95", "0.25", "0.75"}


def test_several_maps_share_a_figure():
    figure = viewing.heads.figure([(f"map {i}", TRACE) for i in range(5)], columns=3)
    assert [axes.get_title() for axes in figure.axes if axes.get_title()] == [f"map {i}" for i in range(5)]


def test_what_cannot_be_drawn_is_explained(tmp_path):
    with pytest.raises(OptionError, match=r"\.png, \.svg, \.pdf; got 'map.bmp'"):
        viewing.save(viewing.matrix.figure(TRACE), tmp_path / "map.bmp")
    with pytest.raises(OptionError, match="at least one"):
        viewing.heads.figure([])


def contrast(one, other) -> float:
    """Contrast ratio of two colours, from 1 to 21, as WCAG 2 defines it; text needs 4.5."""
    low, high = sorted(luminance(colour) + 0.05 for colour in (one, other))
    return high / low


def test_numbers_are_readable_on_every_cell():
    weights = np.linspace(0.01, 1, 100).reshape(10, 10)
    for table in (weights, weights - 0.5):
        axes = viewing.matrix.figure(Trace.from_weights("abcdefghij", "abcdefghij", table)).axes[0]
        image = axes.images[0]
        assert len(axes.texts) >= 98
        for text in axes.texts:
            x, y = text.get_position()
            cell = image.to_rgba(table)[int(y), int(x), :3] * 255
            ink = [255 * part for part in to_rgb(text.get_color())]
            assert contrast(tuple(cell.round().astype(int).tolist()), tuple(map(round, ink))) >= 4.5


@pytest.mark.parametrize("shade", np.linspace(0, 1, 11))
def test_numbers_are_readable_in_the_terminal(shade):
    trace = Trace.from_weights("ab", "c", [[shade, 1.0]])
    style = next(cell for cell in viewing.matrix.terminal(trace).columns[1].cells).style
    ink, background = (tuple(map(int, re.findall(r"\d+", part))) for part in str(style).split(" on "))
    assert contrast(ink, background) >= 4.5


def test_a_map_of_3000_words_is_reduced_and_says_so(tmp_path):
    weights = np.full((3000, 3000), 1e-4, np.float32)
    weights[1234, 567] = 0.9
    trace = Trace.from_weights([f"s{i}" for i in range(3000)], [f"t{i}" for i in range(3000)], weights)
    figure = viewing.matrix.figure(trace)
    viewing.save(figure, tmp_path / "map.png")
    text = shown(trace)
    axes = figure.axes[0]
    assert axes.get_xlabel() == "3,000 x 3,000 weights; each cell shows the largest of 3 x 3"
    drawn = axes.images[0].get_array()
    assert drawn.shape == (1000, 1000)
    assert drawn[1234 // 3, 567 // 3] == np.float32(0.9), "a sharp peak is kept"
    assert len(axes.get_xticklabels()) <= 50
    assert max(figure.get_size_inches()) < 16
    assert "3,000 x 3,000 weights; each cell shows the largest of 30 x 58" in " ".join(text.split())
    assert len(text.splitlines()) < 120
    with pytest.raises(OptionError, match=r"up to 150 words per side; got 3000. Draw a heat map"):
        viewing.lines.figure(trace)
    assert viewing.heads.figure([("a", trace)]).axes[0].images[0].get_array().shape == (200, 200)


def test_reducing_keeps_the_largest_of_each_block():
    table = np.arange(-15.0, 15).reshape(5, 6)
    small, steps = reduced(table, 3, 2)
    assert steps == (2, 3)
    assert small.shape == (3, 2)
    for i in range(3):
        for j in range(2):
            block = table[2 * i : 2 * i + 2, 3 * j : 3 * j + 3]
            assert abs(small[i, j]) == np.abs(block).max()
    assert reduced(table, 5, 6)[0] is table


def test_a_grid_of_heads_has_a_row_per_layer_and_one_scale():
    rng = np.random.default_rng(0)
    words = ("a", "b", "c")
    maps = [Map("cross", "target", "source", rng.dirichlet(np.ones(3), 2))]
    maps += [
        Map(f"{name} {layer}.{head}", rows, "source", rng.dirichlet(np.ones(3), count), layer, head)
        for name, rows, count in (("cross", "target", 2), ("encoder", "source", 3))
        for layer in (1, 2)
        for head in (1, 2, 3)
    ]
    axes = Axis("source", "tokens", words), Axis("target", "tokens", ("x", "y"))
    trace = Trace("translation", axes, tuple(maps))
    figure = viewing.heads.figure(trace)
    panels = [panel for panel in figure.axes if panel.get_title()]
    assert [panel.get_title() for panel in panels] == [
        f"cross {layer}.{head}" for layer in (1, 2) for head in (1, 2, 3)
    ]
    assert panels[0].get_subplotspec().get_gridspec().get_geometry() == (2, 3)
    assert len({panel.images[0].get_clim() for panel in panels}) == 1
    encoder = viewing.heads.figure(trace.select(name="encoder"))
    assert [panel.get_title() for panel in encoder.axes][:2] == ["encoder 1.1", "encoder 1.2"]
    with pytest.raises(OptionError, match="columns=0"):
        viewing.heads.figure(trace, columns=0)


def test_text_in_svg_is_text(tmp_path):
    written = viewing.save(viewing.matrix.figure(TRACE), tmp_path / "map.svg").read_text()
    for word in (*TRACE.source, *TRACE.target, "0.95"):
        assert re.search(rf"<text[^>]*>{word}</text>", written)


def test_figures_are_displayed_by_notebooks():
    for figure in (viewing.matrix.figure(TRACE), viewing.lines.figure(TRACE), viewing.heads.figure([("a", TRACE)])):
        assert figure._repr_png_().startswith(b"\x89PNG")
