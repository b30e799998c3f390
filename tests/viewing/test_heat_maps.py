"""Heat maps show the numbers they were given."""

import pytest
from rich.console import Console

from regard import Trace
from regard.errors import OptionError
from regard.viewing import picture, terminal

TRACE = Trace.of(["the", "dog", "runs"], ["le", "chien", "court"], [[0.9, 0.1, 0], [0.05, 0.95, 0], [0, 0.25, 0.75]])


def shown(trace: Trace, width: int = 80) -> str:
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    console.print(terminal.heat_map(trace, title="a title", width=width))
    console.file.close()
    return console.export_text()


def test_the_terminal_shows_words_and_weights():
    lines = [line.split() for line in shown(TRACE).splitlines()]
    assert lines == [
        ["a", "title"],
        ["the", "dog", "runs"],
        ["le", "90", "10", "·"],
        ["chien", "5", "95", "·"],
        ["court", "·", "25", "75"],
    ]


def test_long_sources_are_numbered_and_the_numbers_explained():
    words = [f"word{i}" for i in range(20)]
    text = shown(Trace.of(words, ["x"], [[0.05] * 20]), width=150)
    assert "word0" in text.splitlines()[1]
    text = shown(Trace.of(words, ["x"], [[0.05] * 20]), width=110)
    assert text.splitlines()[1].split() == [str(i) for i in range(1, 21)]
    assert "20:word19" in " ".join(text.split())


def test_words_are_never_read_as_markup():
    assert "[bold]" in shown(Trace.of(["[bold]", "x"], ["[/red]"], [[0.5, 0.5]]))


def test_weights_above_one_and_below_zero_can_be_shown():
    assert shown(Trace.of("ab", "c", [[2.5, -0.5]])).split()[-2:] == ["250", "-50"]


@pytest.mark.parametrize(("ending", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_pictures_are_saved_by_their_ending(tmp_path, ending, magic):
    path = picture.save(picture.heat_map(TRACE, title="t"), tmp_path / "new" / f"map.{ending}")
    assert path.read_bytes().startswith(magic)
    assert [file.name for file in path.parent.iterdir()] == [f"map.{ending}"], "no temporary file is left"


def test_the_picture_holds_the_words_and_the_weights():
    axes = picture.heat_map(TRACE).axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == list(TRACE.source)
    assert [label.get_text() for label in axes.get_yticklabels()] == list(TRACE.target)
    assert axes.images[0].get_array().tolist() == [list(row) for row in TRACE.weights]
    assert {text.get_text() for text in axes.texts} == {"0.90", "0.10", "0.05", "0.95", "0.25", "0.75"}


def test_several_maps_share_a_figure():
    figure = picture.heat_maps([(f"map {i}", TRACE) for i in range(5)], columns=3)
    assert [axes.get_title() for axes in figure.axes if axes.get_title()] == [f"map {i}" for i in range(5)]


def test_what_cannot_be_drawn_is_explained(tmp_path):
    with pytest.raises(OptionError, match=r"\.png, \.svg, \.pdf; got 'map.bmp'"):
        picture.save(picture.heat_map(TRACE), tmp_path / "map.bmp")
    with pytest.raises(OptionError, match="at least one"):
        picture.heat_maps([])
