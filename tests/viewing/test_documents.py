"""Views of documents: sentence bars and shaded words, in the terminal and as figures."""

import re
from dataclasses import replace

import numpy as np
import pytest
from helpers.printing import printed

import regard
from regard.errors import OptionError
from regard.trace import Axis, Map, Series, Trace
from regard.viewing.document import MAX_FIGURE_SENTENCES, MAX_TABLE_SENTENCES, shaded_sentences, word_weight_figure


def trace_of(sentences: list[list[tuple[str, float]]], weights: list[float]) -> Trace:
    words = [word for sentence in sentences for word in sentence]
    return Trace(
        "document",
        (
            Axis("label", "classes", ("positive",)),
            Axis("sentences", "sentences", tuple(" ".join(word for word, _ in each) for each in sentences)),
            Axis("words", "words", tuple(word for word, _ in words)),
        ),
        (Map("sentences", "label", "sentences", [weights]), Map("words", "label", "words", [[w for _, w in words]])),
        (Series("sentence", "words", [index for index, each in enumerate(sentences) for _ in each]),),
        extras={"probability": 0.75},
    )


@pytest.fixture
def trace():
    return trace_of([[("so", 0.9), ("long", 0.1)], [("i", 0.2), ("loved", 0.8)]], [0.04, 0.96])


def test_words_are_shaded_by_both_weights_and_raw_on_request(trace):
    first, second = shaded_sentences(trace)
    strongest = 0.8 * np.sqrt(0.96)
    assert [shade for _, shade in second.words] == pytest.approx([0.2 * np.sqrt(0.96) / strongest, 1.0])
    assert [shade for _, shade in first.words] == pytest.approx([0.9 * 0.2 / strongest, 0.1 * 0.2 / strongest])
    raw = shaded_sentences(trace, raw=True)
    assert [shade for _, shade in raw[0].words] == pytest.approx([1.0, 1 / 9])
    assert (first.weight, second.number) == (pytest.approx(0.04), 2)


def test_the_terminal_shows_bars_and_marks(trace):
    plain = printed(regard.view(trace).terminal(width=60, colour=False))
    assert "positive 0.750" in plain
    assert "0.96 ████████████ i ▓loved▓" in plain
    assert "▓so▓" not in plain
    assert "▓so▓" in printed(regard.view(trace).terminal(colour=False, raw=True))
    coloured = printed(regard.view(trace), colour=True)
    assert "48;2;33;113;181m" in coloured  # the strongest word


def test_the_figure_has_every_word(trace, tmp_path):
    figure = regard.view(trace).figure()
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert {"so", "long", "i", "loved", "0.96", "0.04"} <= set(texts)
    first, raw = (regard.view(trace).save(tmp_path / "a.svg", raw=raw).read_text() for raw in (False, True))
    assert first != raw


def test_long_documents_show_their_strongest_sentences_and_say_so():
    count = 500
    weights = np.arange(count, dtype=float)
    trace = trace_of([[(f"$w{number}$", 1.0)] for number in range(count)], (weights / weights.sum()).tolist())
    texts = [text.get_text() for text in regard.view(trace).figure().axes[0].texts]
    assert f"The {MAX_FIGURE_SENTENCES} most attended of 500 sentences." in texts
    assert "$w499$" in texts
    assert "$w3$" not in texts
    assert "The 200 most attended of 500 sentences." in printed(regard.view(trace).terminal())


def test_only_documents_have_sentences():
    with pytest.raises(OptionError, match="Only a trace of kind 'document'"):
        shaded_sentences(Trace.from_weights(["a"], ["b"], [[1.0]]))


def test_the_distribution_of_a_word_by_class():
    figure = word_weight_figure({"negative": [0.1, 0.2], "positive": [0.9]}, "good")
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["negative: 2 times, mean 0.150", "positive: 1 time, mean 0.900"]
    with pytest.raises(OptionError, match="'good' does not occur"):
        word_weight_figure({}, "good")


def test_the_page_holds_everything_and_escapes_every_word(tmp_path):
    evil = "<script>alert(1)</script>"
    trace = trace_of([[(evil, 0.9), ('"long"', 0.1)], [("i", 0.2), ("loved", 0.8)]], [0.04, 0.96])
    page = regard.view(trace).save(tmp_path / "a.html").read_text(encoding="utf-8")
    assert evil not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert re.search(r"<th>0.96</th><td>.*>loved<", page), "without scripts, a table shows the shaded words"
    assert '"raw": true' not in page
    raw = regard.view(trace).save(tmp_path / "b.html", raw=True).read_text(encoding="utf-8")
    assert "{&quot;raw&quot;: true}" in raw


def test_the_table_of_a_long_document_has_its_strongest_sentences():
    count = MAX_TABLE_SENTENCES + 7
    weights = np.arange(count, dtype=float)
    trace = trace_of([[(f"w{number}", 1.0)] for number in range(count)], (weights / weights.sum()).tolist())
    table = regard.view(trace).html_table()
    assert table.count("<tr>") == MAX_TABLE_SENTENCES
    assert f"The {MAX_TABLE_SENTENCES} most attended of {count:,} sentences." in table
    assert ">w6<" not in table
    assert ">w7<" in table


def test_sentences_that_were_not_read_are_in_the_heading(trace):
    cut = replace(trace, extras={"probability": 0.75, "sentences_left_out": 1200})
    assert "positive 0.750 (1,200 sentences not read)" in printed(regard.view(cut).terminal(colour=False))


def test_right_to_left_sentences_are_laid_out_from_the_right():
    places = {}
    for words in (["long", "word"], ["\u0633\u0644\u0627\u0645", "\u062f\u0648\u0633\u062a"]):
        axes = regard.view(trace_of([[(word, 0.5) for word in words]], [1.0])).figure().axes[0]
        found = {text.get_text(): text.get_position()[0] for text in axes.texts}
        places[words[0]] = [found[word] for word in words]
    (first, second), (right, left) = places.values()
    assert first < second
    assert right > left > second


def test_letters_that_the_fonts_lack_are_one_warning(tmp_path):
    trace = trace_of([[("\u4f60\u597d", 1.0), ("\U0001f600", 0.0)]], [1.0])
    with pytest.warns(UserWarning, match="fonts lack 3 letters") as caught:
        regard.view(trace).save(tmp_path / "a.png")
    assert len(caught) == 1
