"""Readings, one line per word."""

import numpy as np
import pytest
from helpers.printing import printed

import regard
from regard.errors import OptionError
from regard.trace import Axis, Map, Series, Trace
from regard.viewing.reading import MAX_WORDS, reading_lines
from regard.viewing.view import View

WORDS = ("the", "animal", "[b]slept[/b]", "well")
WEIGHTS = np.array([[0, 0, 0, 0], [1, 0, 0, 0], [0.1, 0.9, 0, 0], [0, 0.25, 0.75, 0]])


def trace(weights=WEIGHTS, words=WORDS, surprisals=(1.5, 10.25, 3.0, 4.0)):
    series = () if surprisals is None else (Series("surprisal", "words", surprisals),)
    maps = () if weights is None else (Map("reading", "words", "words", weights),)
    return Trace("reading", (Axis("words", "words", words),), maps, series)


def text_of(result, *, colour=False):
    return printed(regard.view(result).terminal(width=60, colour=colour), 60, colour=colour)


def test_a_line_for_each_word_shows_what_came_before():
    lines = [line.rstrip() for line in text_of(trace()).splitlines()]
    assert lines == [
        " 1.5 [the]",
        "10.2 the(100) [animal]",
        " 3.0 the(10) animal(90) [[b]slept[/b]]",
        " 4.0 the animal(25) [b]slept[/b](75) [well]",
    ]


def test_with_colour_the_current_word_is_red_and_strong_weights_are_dark():
    text = text_of(trace(), colour=True)
    assert "\x1b[1;38;2;197;27;30manimal\x1b[0m" in text
    assert "48;2;8;69;148mthe" in text


def test_later_words_are_shown_where_they_are_attended_to():
    both = np.array([[0, 1.0], [1.0, 0]])
    assert [line.words for line in reading_lines(trace(both, WORDS[:2], None))] == [WORDS[:2]] * 2
    assert [len(line.words) for line in reading_lines(trace())] == [1, 2, 3, 4]


def test_a_reader_without_attention_shows_its_surprisal():
    text = text_of(trace(weights=None))
    assert text.splitlines()[1].rstrip() == "10.2 the [animal]"
    assert regard.view(trace(weights=None)).figure() is not None


def test_figures_are_saved_with_their_words(tmp_path):
    view = regard.view(trace())
    view.save(tmp_path / "reading.svg", title="A $title$")
    drawn = (tmp_path / "reading.svg").read_text()
    for text in (*WORDS[:2], "10.2", "A $title$"):
        assert f">{text}</text>" in drawn
    assert drawn.count(">the</text>") == 4
    assert view.figure(style="heat_map").axes[0].get_images() or view.figure(style="heat_map").axes[0].collections
    with pytest.raises(OptionError, match="There is no style 'swirl'; choose from word_by_word, heat_map"):
        view.figure(style="swirl")


def test_attention_between_two_sentences_is_a_heat_map():
    axes = (Axis("premise", "words", ("a", "dog")), Axis("words", "words", WORDS))
    between = Trace("reading", axes, (Map("between", "words", "premise", np.full((4, 2), 0.5)),))
    assert "50" in text_of(between)
    assert type(regard.view(between).figure()) is type(View(between).figure())


def test_long_sentences_are_refused_with_advice():
    count = MAX_WORDS + 1
    long = trace(np.tril(np.ones((count, count)), -1) / count, tuple(map(str, range(count))), None)
    with pytest.raises(OptionError, match=r"up to 80 words; got 81\. Use style='heat_map'"):
        regard.view(long).figure()
    with pytest.raises(OptionError, match="nothing to draw"):
        regard.view(trace(np.zeros((0, 0)), (), None)).figure()


@pytest.mark.parametrize("surprisals", [None, (1.5, 10.25, 3.0, 4.0)])
def test_a_legend_says_what_colours_and_numbers_mean(surprisals):
    (legend,) = (text.get_text() for text in regard.view(trace(surprisals=surprisals)).figure().texts)
    assert "Red: the current word" in legend
    assert ("bits" in legend) is (surprisals is not None)
