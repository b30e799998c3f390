"""Words of every script stand where they belong: Persian and Hebrew, marks without width, long words, dollar signs."""

import numpy as np
import pytest
from helpers.printing import printed
from matplotlib import ft2font
from matplotlib.textpath import TextPath
from rich.cells import cell_len
from rich.console import Group

from regard import RegardError, Trace, viewing
from regard.errors import OptionError
from regard.trace.elements import right_to_left
from regard.viewing.tokens import isolated, printable, shortened
from regard.viewing.view import view

PERSIAN = ["من", "می‌خواهم", "مُحَمَّد", "کتابخانهٔ", "."]
ENGLISH = ["I", "want", "(7)"]
RNG = np.random.default_rng(20150519)
TO_PERSIAN = Trace.from_weights(ENGLISH, PERSIAN, RNG.dirichlet(np.ones(3), size=5))
FROM_PERSIAN = Trace.from_weights(PERSIAN, ENGLISH, RNG.dirichlet(np.ones(5), size=3))


def test_the_direction_is_that_of_most_letters():
    assert right_to_left(PERSIAN)
    assert right_to_left(["שלום", "ok", "123"])
    assert not right_to_left(ENGLISH)
    assert not right_to_left([*ENGLISH, "من"])
    assert not right_to_left(["12", "."])
    assert not right_to_left([])


def test_only_right_to_left_words_are_isolated():
    assert isolated("کتاب") == "\u2068" + "کتاب" + "\u2069"
    assert isolated("book.") == "book."
    assert isolated("7") == "7"


def test_shortened_words_fit():
    assert shortened("Rechtsschutz", 12) == "Rechtsschutz"
    assert shortened("Rechtsschutz", 7) == "Rechts…"
    assert shortened("日本語文", 5, cell_len) == "日本…"
    assert shortened("", 0) == ""


@pytest.mark.parametrize("trace", [TO_PERSIAN, FROM_PERSIAN], ids=["to Persian", "from Persian"])
def test_columns_stay_straight_under_marks_without_width(trace):
    rows = printed(viewing.matrix.terminal(trace)).splitlines()
    assert len({cell_len(row) for row in rows}) == 1
    for word in ("من", "می‌خواهم", "کتابخانهٔ"):
        assert any(isolated(word) in row for row in rows)


def test_the_key_of_numbered_words_is_isolated_too():
    text = printed(viewing.matrix.terminal(FROM_PERSIAN, width=32), 32)
    assert f"2:{isolated('می‌خواهم')}" in text


def test_a_right_to_left_source_starts_at_the_right():
    axes = viewing.matrix.figure(FROM_PERSIAN).axes[0]
    assert axes.xaxis_inverted()
    assert [label.get_text() for label in axes.get_xticklabels()] == PERSIAN
    assert axes.images[0].get_array().tolist() == [list(row) for row in FROM_PERSIAN.weights]
    assert not viewing.matrix.figure(TO_PERSIAN).axes[0].xaxis_inverted()


def test_matplotlib_joins_letters_and_orders_them():
    def outline(text: str) -> np.ndarray:
        return TextPath((0, 0), text, size=100).vertices

    assert np.ptp(outline("بب")[:, 0]) < 1.9 * np.ptp(outline("ب")[:, 0]), "joined letters are narrower than apart"
    letters = outline("اب")
    tall = letters[letters[:, 1] > 40]
    assert tall[:, 0].min() > letters[:, 0].mean(), "the tall alef comes first, so it stands at the right"


def test_an_older_matplotlib_is_named_instead_of_a_wrong_figure(monkeypatch):
    monkeypatch.delattr(ft2font, "__libraqm_version__")
    for draw in (viewing.matrix.figure, viewing.lines.figure):
        with pytest.raises(RegardError, match=r"from 3\.11 on it can"):
            draw(FROM_PERSIAN)
        draw(Trace.from_weights("ab", "cd", np.eye(2)))


def test_a_word_with_dollar_signs_is_no_formula(tmp_path):
    trace = Trace.from_weights(["$x_2$", "a"], [r"$\frac$", "b"], np.eye(2))
    for draw in (viewing.matrix.figure, viewing.lines.figure):
        viewing.save(draw(trace, title=r"$\frac$"), tmp_path / "map.png")
    labels = viewing.matrix.figure(trace).axes[0].get_xticklabels()
    assert not any(label.get_parse_math() for label in labels)


def test_a_long_word_is_cut_and_leaves_room_for_the_map():
    trace = Trace.from_weights(["Rechtsschutz" * 7, "a"], ["Gesellschaften" * 11, "b"], np.eye(2))
    axes = viewing.matrix.figure(trace).axes[0]
    for label in (axes.get_xticklabels()[0], axes.get_yticklabels()[0]):
        assert len(label.get_text()) == 28
        assert label.get_text().endswith("…")
    for draw in (viewing.matrix.terminal, viewing.lines.terminal):
        assert all(cell_len(row) <= 60 for row in printed(draw(trace, width=60), 60).splitlines())


@pytest.mark.parametrize("trace", [Trace.from_weights([], ["a"], [[]]), Trace.from_weights(["a"], [], [])])
def test_a_trace_without_words_is_explained(trace):
    for draw in (viewing.matrix.figure, viewing.lines.figure):
        with pytest.raises(OptionError, match="nothing to draw: the trace has"):
            draw(trace)
    assert printed(viewing.matrix.terminal(trace)) is not None
    assert printed(viewing.lines.terminal(trace)) is not None


ESCAPE = ["\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "a\nb\tc", "\x9b2J", "\u202eevil", "\u2069out", "می‌خواهم"]


def test_control_characters_are_made_visible():
    assert printable("\x1b[31m") == "\ufffd[31m"
    assert printable("a\nb\tc\x7f") == "a⏎b⇥c\ufffd"
    assert printable("\x9b2J\u202e\u2069") == "\ufffd2J\ufffd\ufffd"
    assert printable("می‌خواهم") == "می‌خواهم", "a zero-width non-joiner is part of the word"
    assert shortened("\x1b" * 100_000, 5) == "\ufffd\ufffd\ufffd\ufffd…"


def test_no_word_sends_commands_to_the_terminal():
    image = Trace.from_image(None, ESCAPE, np.eye(7, 9))
    text = Trace.from_weights(ESCAPE, ESCAPE, np.eye(7), log_probs=[-1] * 7)
    wide = Trace.from_weights(ESCAPE * 9, ESCAPE, np.ones((7, 63)) / 63)
    drawn = Group(
        viewing.matrix.terminal(text, title=ESCAPE[0], width=90),
        viewing.matrix.terminal(wide, width=90),
        viewing.lines.terminal(text, title=ESCAPE[1], width=90),
        view(image).terminal(width=90, colour=False),
        view(text),
        view(image),
    )
    shown = printed(drawn, 90)
    assert not set(shown) & (set(map(chr, range(0x20))) - {"\n"})
    assert not set(shown) & set(map(chr, range(0x7F, 0xA0)))
    assert "\u202e" not in shown
    assert "\ufffd[31mred" in shown


def test_no_word_spoils_a_figure(tmp_path):
    text = Trace.from_weights(ESCAPE, ESCAPE, np.eye(7))
    image = Trace.from_image(None, ESCAPE, np.eye(7, 9))
    for number, figure in enumerate(
        [viewing.matrix.figure(text, title=ESCAPE[0]), viewing.lines.figure(text), view(image).figure()]
    ):
        written = viewing.save(figure, tmp_path / f"{number}.svg").read_text()
        assert "\x1b" not in written
    assert view(image).animation(side=64).frames == 8
