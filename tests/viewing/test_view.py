"""One entrance to all views: the kind of a trace decides, and files, terminals and notebooks are served."""

import io
import re
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from helpers.printing import printed
from helpers.traces import rows, tape, translation
from PIL import Image
from rich.console import Console

from regard import Trace, viewing
from regard.errors import OptionError
from regard.trace import Axis, Map
from regard.viewing.view import view

TEXT = Trace.from_weights(["the", "dog"], ["le", "chien"], [[[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.4, 0.6]]])
CAPTION = Trace.from_image(np.full((8, 8, 3), 200, np.uint8), ["a", "dog"], np.eye(2, 4), text="a dog")


@dataclass
class Result:
    trace: Trace | None


def test_results_without_a_trace_are_explained():
    assert view(Result(CAPTION)).trace is CAPTION
    with pytest.raises(OptionError, match="This Result has no trace: its model has no attention to show"):
        view(Result(None))
    with pytest.raises(OptionError, match=r"got str. Trace\.load reads a file"):
        view("trace.json")


def test_a_figure_shows_the_main_map_or_the_selected_one():
    def drawn(**options):
        figure = view(TEXT).figure(**options)
        return figure.axes[0].images[0].get_array().tolist(), figure.axes[0].get_title()

    assert drawn() == (TEXT.map("mean").weights.tolist(), "")
    assert drawn(head=2) == (TEXT.map("head 2").weights.tolist(), "head 2")
    assert drawn(name="head 1", title="mine") == (TEXT.map("head 1").weights.tolist(), "mine")
    heads = view(TEXT).figure(style="heat_maps")
    assert [axes.get_title() for axes in heads.axes if axes.get_title()] == ["head 1", "head 2"]
    assert view(TEXT).figure(style="lines").axes[0].collections
    for draw in (view(TEXT).figure, view(TEXT).page):
        with pytest.raises(OptionError, match="no style 'cloud'; choose from heat_map, heat_maps, lines"):
            draw(style="cloud")
        with pytest.raises(OptionError, match="no map with head=3"):
            draw(head=3)


def test_an_unknown_suffix_is_refused_before_anything_is_drawn(tmp_path):
    with pytest.raises(OptionError, match=r"saved as \.png, \.svg, \.pdf, \.html, by the suffix; got 'a\.gif'"):
        view(TEXT).save(tmp_path / "a.gif")
    with pytest.raises(OptionError, match=r"saved as \.png, \.svg, \.pdf, \.html, \.gif, by the suffix; got 'a'"):
        view(CAPTION).save(tmp_path / "a")
    assert not list(tmp_path.iterdir())


def test_options_reach_the_drawing(tmp_path):
    caption = view(CAPTION).figure()
    assert caption.get_suptitle() == "a dog", "the caption is its title"
    assert view(CAPTION).figure(title="t").get_suptitle() == "t"
    cells = view(CAPTION).figure(cells=True, overlay="colour", columns=2)
    assert not np.array_equal(cells.axes[1].images[0].get_array(), caption.axes[1].images[0].get_array())
    path = view(CAPTION).save(tmp_path / "a.gif", cells=True, seconds=0.2, side=64)
    with Image.open(path) as opened:
        assert opened.n_frames == 3


def test_a_pdf_embeds_fonts_that_publishers_take(tmp_path):
    content = view(TEXT).save(tmp_path / "a.pdf", width=3.3, font_size=7).read_bytes()
    assert b"/FontFile2" in content, "TrueType"
    assert b"/Type3" not in content
    assert re.search(rb"/MediaBox \[ 0 0 237\.6 ", content), "3.3 inches of 72 points"


def test_the_size_of_a_figure_is_chosen(tmp_path):
    def size(trace, **options):
        with Image.open(view(trace).save(tmp_path / "a.png", **options)) as opened:
            return opened.size

    wide, high = size(TEXT)
    assert size(TEXT, dpi=75) == (wide // 2, high // 2)
    assert size(TEXT, width=2, dpi=100) == (200, round(200 * high / wide))
    assert size(TEXT, width=2, height=3, font_size=6, dpi=100) == (200, 300)
    wide, high = size(CAPTION)
    assert size(CAPTION, height=1, dpi=100) == pytest.approx((100 * wide / high, 100), abs=1)
    with pytest.raises(OptionError, match="scaled as a whole: give its width, its height or its font size"):
        size(CAPTION, width=3, font_size=7)


def test_the_numbers_of_a_heat_map_fit_its_cells():
    from regard.viewing.figures import resize

    drawn = resize(view(TEXT).figure(), width=1.6, font_size=12.0)
    axes = drawn.axes[0]
    drawn.draw_without_rendering()
    cell = axes.transData.transform((1, 0))[0] - axes.transData.transform((0, 0))[0]
    assert max(number.get_window_extent().width for number in axes.texts) < cell
    assert [label.get_fontsize() for label in axes.get_xticklabels()] == pytest.approx([12, 12])


@pytest.mark.parametrize("value", [0, -1, float("nan"), 1e9, "wide", True])
def test_a_size_that_is_none_is_refused_before_anything_is_written(value, tmp_path):
    with pytest.raises(OptionError, match="The width of a figure is a number of inches above 0, up to 100"):
        view(TEXT).save(tmp_path / "a.png", width=value)
    assert not list(tmp_path.iterdir())


def test_options_of_another_view_are_explained(tmp_path):
    with pytest.raises(OptionError, match="no option 'cells'; choose from layer, head, name, pieces, style, title"):
        view(TEXT).save(tmp_path / "a.png", cells=True)
    with pytest.raises(OptionError, match=r"no option 'style'; choose from layer, head, name, pieces\."):
        view(TEXT).show(Console(), style="lines")
    with pytest.raises(OptionError, match="no option 'style'; choose from layer, head, name, cells, overlay"):
        view(CAPTION).save(tmp_path / "a.png", style="lines")
    with pytest.raises(
        OptionError, match="no option 'columns'; choose from layer, head, name, cells, overlay, seconds"
    ):
        view(CAPTION).save(tmp_path / "a.gif", columns=3)
    with pytest.raises(OptionError, match="no option 'width'"):
        view(TEXT).save(tmp_path / "a.html", width=3)
    for trace in (CAPTION, tape()):
        with pytest.raises(OptionError, match="no option 'style'"):
            view(trace).show(Console(), style="lines")


def test_subwords_are_joined_unless_their_pieces_are_asked_for():
    source, target = ["a", "c", "up", "</s>"], ["une", "t", "asse", "</s>"]
    trace = Trace.from_weights(source, target, np.eye(4), source_text="a cup", target_text="une tasse")

    def words(axes):
        return [[label.get_text() for label in labels] for labels in (axes.get_xticklabels(), axes.get_yticklabels())]

    assert words(view(trace).figure().axes[0]) == [["a", "cup", "</s>"], ["une", "tasse", "</s>"]]
    assert words(view(trace).figure(pieces=True).axes[0]) == [source, target]
    assert {text.get_text() for text in view(trace).figure(style="lines").axes[0].texts} >= {"cup", "tasse"}
    assert {text.get_text() for text in view(trace).figure(style="lines", pieces=True).axes[0].texts} >= {"asse"}
    assert "tasse" in printed(view(trace))
    assert " asse" in printed(view(trace).terminal(pieces=True))
    reading = Trace("reading", (trace.axis("target"),), (Map("reading", "target", "target", np.eye(4)),))
    assert "[tasse]" in printed(view(reading).terminal(colour=False))
    assert "[asse]" in printed(view(reading).terminal(colour=False, pieces=True))
    texts = view(reading).figure(pieces=True).axes[0].texts
    assert "tasse" not in {text.get_text() for text in texts}


def test_a_mean_of_heads_says_so():
    def noted(trace, **options):
        return view(trace).figure(**options).get_supxlabel().replace("\n", " ")

    assert noted(TEXT) == noted(TEXT, style="lines") == "Mean of 2 heads."
    assert noted(TEXT, head=1) == noted(TEXT, style="heat_maps") == ""
    assert noted(Trace.from_weights("ab", "c", [[0.5, 0.5]])) == noted(Trace.from_weights("a", "c", [[[1.0]]])) == ""
    heads = [Map(f"cross {la}.{h}", "target", "source", rows(5, 5, 9 * la + h), la, h) for la in (1, 2) for h in (1, 2)]

    def over(*maps):
        mean = Map("cross", "target", "source", np.mean([each.weights for each in maps], 0))
        return Trace("translation", translation().axes, (mean, *heads))

    assert noted(over(*heads)) == "Mean of 4 heads in 2 layers."
    assert noted(over(*heads[2:])) == "Mean of 2 heads of layer 2."
    assert noted(over(heads[1])) == "", "one head is no mean"
    assert printed(view(over(*heads))).rstrip().endswith("Mean of 4 heads in 2 layers.")
    image = np.full((8, 8, 3), 200, np.uint8)
    caption = Trace.from_image(image, ["a", "dog"], [np.eye(2, 4), np.full((2, 4), 0.25)])
    assert noted(caption) == "Mean of 2 heads."
    assert "Mean of 2 heads." in printed(view(caption))
    maps = tuple(Map(each.name, "source", "source", each.weights, head=each.head) for each in TEXT.maps)
    reading = Trace("reading", TEXT.axes[:1], maps)
    assert noted(reading) == "Mean of 2 heads."
    assert "Mean of 2 heads." in printed(view(reading))


def test_a_page_is_called_after_what_it_shows():
    def title(trace):
        return re.search("<title>(.*)</title>", view(trace).page())[1]

    assert title(TEXT) == "the dog → le chien"
    assert title(Trace.from_weights(["▁the", "▁do", "g", "</s>"], ["le"], [[1, 0, 0, 0]])) == "the dog → le"
    assert title(Trace.from_weights(["a"], ["b"], [[1.0]], source_text="An A", target_text="A B")) == "An A → A B"
    assert title(Trace.from_weights(["[CLS]"], ["</s>"], [[1.0]])) == "Attention"
    assert title(tape()) == "Tape"
    long = title(Trace.from_weights([f"word{i}" for i in range(99)], ["b"], np.ones((1, 99))))
    assert (len(long), long[-1]) == (160, "…")


def test_rich_prints_a_view():
    assert "chien" in printed(view(TEXT))
    assert "dog" in printed(view(CAPTION))
    assert max(map(len, printed(view(CAPTION), 40).splitlines())) <= 40
    assert "▀" in printed(view(CAPTION).terminal(width=60))
    assert "▀" not in printed(view(CAPTION).terminal(width=60, colour=False))
    assert printed(view(TEXT).terminal(head=1)) != printed(view(TEXT).terminal())


def test_a_map_of_any_two_axes_is_drawn():
    axes = Axis("steps", "steps", tuple("0110")), Axis("slots", "slots", tuple("abcde"))
    content = np.random.default_rng(0).normal(size=(4, 5))
    trace = Trace("memory", axes, (Map("read 1", "steps", "slots", content, head=1),))
    figure = view(trace).figure()
    low, high = figure.axes[0].images[0].get_clim()
    assert low == -high, "negative numbers have a scale of two colours"
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == list("abcde")
    assert "0" in printed(view(trace))
    with pytest.raises(OptionError, match="has no maps"):
        view(Trace("memory", axes, ())).figure()


def test_importing_the_views_imports_neither_torch_nor_matplotlib():
    code = (
        "import sys, regard; regard.viewing; import regard.viewing.view; regard.viewing.matrix; regard.viewing.lines; "
        "assert 'torch' not in sys.modules and 'matplotlib' not in sys.modules; "
        "regard.viewing.save; assert 'matplotlib' in sys.modules and 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_public_name_is_there():
    assert set(viewing.__all__) == set(dir(viewing))
    for name in viewing.__all__:
        assert getattr(viewing, name) is not None
    with pytest.raises(AttributeError, match="heatmap"):
        _ = viewing.heatmap


def test_a_view_says_how_right_the_attention_is(tmp_path):
    plain = Trace.from_weights(["a"], ["b"], [[1.0]])
    measured = Trace.from_weights(["a"], ["b"], [[1.0]], attention_measured="Error rate 0.1 on 7 sentences.")
    assert view(plain).measured is None
    for trace, count in ((plain, 0), (measured, 1)):
        console = Console(width=60, record=True, file=io.StringIO())
        view(trace).show(console)
        console.print(view(trace))
        assert console.export_text().count("Error rate 0.1 on 7 sentences.") == 2 * count
        for style in ("heat_map", "lines"):
            text = view(trace).save(tmp_path / f"{style}.svg", style=style).read_text()
            assert ("Error rate 0.1 on 7 sentences." in text) == bool(count)


@pytest.mark.parametrize("style", ["heat_map", "lines"])
def test_notes_stand_below_each_other(tmp_path, style):
    weights = [[[0.9, 0.1]], [[0.4, 0.6]]]
    trace = Trace.from_weights("ab", "c", weights, attention_measured="Error rate 0.1.")
    text = view(trace).save(tmp_path / "a.svg", style=style).read_text()
    assert "Mean of 2 heads." in text
    assert "Error rate 0.1." in text
