"""Lines between words, and maps too wide for numbers."""

import numpy as np
import pytest
from helpers.printing import printed
from matplotlib.backends.backend_agg import FigureCanvasAgg

from regard import Trace, viewing
from regard.viewing.figures import add_note

SOURCE = ["the", "dog", "sees", "the", "cat"]
TARGET = ["le", "chien", "voit"]
WEIGHTS = [[0.6, 0.3, 0.004, 0.096, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0], [0.02, 0.02, 0.03, 0.02, 0.02]]
TRACE = Trace.from_weights(SOURCE, TARGET, WEIGHTS, log_probs=np.log([0.5, 0.25, 1.0]))


def test_lines_are_as_strong_as_their_weights():
    (links,) = viewing.lines.figure(TRACE).axes[0].collections
    drawn = sorted(weight for row in WEIGHTS for weight in row if weight >= 0.01)
    assert len(links.get_linewidths()) == len(drawn) == 9
    assert np.all(np.diff(links.get_linewidths()) >= 0), "the heaviest on top"
    assert np.all(np.diff(links.get_colors()[:, 3]) >= 0)
    np.testing.assert_allclose(links.get_linewidths(), [0.4 + 3.1 * weight for weight in drawn])


def test_lines_join_the_places_of_their_words():
    axes = viewing.lines.figure(Trace.from_weights(SOURCE, TARGET, WEIGHTS)).axes[0]
    place = {(text.get_text(), text.get_position()[0] > 0.5): text.get_position()[1] for text in axes.texts}
    heaviest = axes.collections[0].get_segments()[-1]
    assert heaviest[0].tolist() == [0, place["dog", False]]
    assert heaviest[-1].tolist() == [1, place["chien", True]]
    assert len(axes.texts) == len(SOURCE) + len(TARGET)


def test_a_long_title_and_a_long_note_fit_into_the_figure():
    """They take as many lines as they need, and what is drawn keeps its size."""
    words = "a title of more words than the two columns of this small figure are wide"
    short, long = (add_note(viewing.lines.figure(TRACE, title=text), text) for text in ("title", words))
    inches = [figure.axes[0].get_window_extent().height / figure.dpi for figure in (short, long)]
    assert inches[0] == pytest.approx(inches[1])
    tops = []
    for text in (long._suptitle, long._supxlabel):
        extent = text.get_window_extent(FigureCanvasAgg(long).get_renderer())
        assert text.get_text().split() == words.split()
        assert 0 <= extent.x0 < extent.x1 <= long.bbox.width
        assert 0 <= extent.y0 < extent.y1 <= long.bbox.height
        tops.append(extent)
    drawn = long.axes[0].get_window_extent()
    assert tops[1].y1 <= drawn.y0 < drawn.y1 <= tops[0].y0


@pytest.mark.parametrize("words", [1, 2, 61])
def test_few_and_many_words_can_be_drawn(tmp_path, words):
    trace = Trace.from_weights([f"w{i}" for i in range(words)], ["x"], np.full((1, words), 1 / words))
    for view in (viewing.lines.figure, viewing.matrix.figure):
        viewing.save(view(trace, title="t"), tmp_path / "a.png")


def test_heads_are_drawn_side_by_side():
    trace = Trace.from_weights(SOURCE, TARGET, np.random.default_rng(0).dirichlet(np.ones(5), size=(7, 3)))
    figure = viewing.heads.figure(trace)
    assert [axes.get_title() for axes in figure.axes if axes.get_title()] == [f"head {n}" for n in range(1, 8)]
    for axes, each in zip(figure.axes, trace.maps[1:], strict=False):
        assert np.array_equal(axes.images[0].get_array(), each.weights)


def test_the_terminal_shows_the_strongest_sources_of_each_word():
    assert [row.split() for row in printed(viewing.lines.terminal(TRACE, title="a title")).splitlines()] == [
        ["a", "title"],
        ["0.50", "le", "←", "the(1)", "60", "dog", "30", "the(4)", "10"],
        ["0.25", "chien", "←", "dog", "100"],
        ["1.00", "voit"],
    ]
    assert printed(viewing.lines.terminal(TRACE, max_links=1, min_weight=0.7)).split()[:2] == ["0.50", "le"]


def test_a_map_of_sixty_words_is_shaded_under_a_ruler():
    words = [f"word{i}" for i in range(1, 62)]
    weights = np.eye(61)[[0, 4, 60]]
    rows = printed(viewing.matrix.terminal(Trace.from_weights(words, ["a", "bb", "c"], weights))).splitlines()
    ruler, *cells = rows[:4]
    start = ruler.index("1")
    assert ruler.index("60") == start + 59
    assert [row.index("█") - start for row in cells] == [0, 4, 60]
    assert "61:word61" in " ".join(rows)
    assert max(map(len, rows)) <= 80


def test_a_heavy_cell_is_dark_and_an_empty_one_light():
    trace = Trace.from_weights([f"word{i}" for i in range(31)], ["a"], np.eye(31)[:1])
    text = printed(viewing.matrix.terminal(trace), colour=True)
    assert "\x1b[38;2;8;69;148;48;2;8;69;148m█" in text
    assert "\x1b[38;2;247;251;255;48;2;247;251;255m " in text


def test_a_map_wider_than_the_terminal_goes_on_below():
    words = [f"w{i}" for i in range(1, 98)]
    trace = Trace.from_weights(words, ["a", "b"], np.eye(97)[[3, 96]])
    rows = printed(viewing.matrix.terminal(trace, width=41), 41).splitlines()
    assert max(map(len, rows)) <= 41
    blocks = [row for row in rows if row.startswith(("a ", "b "))]
    assert len(blocks) == 6, "38 + 38 + 21 columns of two rows"
    assert [row.count("█") for row in blocks] == [1, 0, 0, 0, 0, 1]
    assert rows[3].split()[:2] == ["39", "45"], "40 would touch 39"
