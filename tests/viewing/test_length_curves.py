"""BLEU against length: every model, every count, nothing made up where there are no sentences."""

import math

import pytest
from helpers.printing import printed

from regard import viewing
from regard.errors import OptionError
from regard.metrics.translation import LengthBucket

CURVES = {
    "$plain$": [LengthBucket(0, 10, 31, 20.0), LengthBucket(11, 20, 17, 10.0), LengthBucket(61, None, 3, 5.0)],
    "attention": [LengthBucket(0, 10, 31, 25.0), LengthBucket(61, None, 2, 21.0)],
}


def test_the_table_shows_each_model_and_count():
    lines = printed(viewing.length_table(CURVES, title="[b]")).splitlines()
    rows = [[cell.strip() for cell in row.split("│")[1:-1]] for row in lines if "│" in row]
    assert rows == [["≤10", "31", "20.0", "25.0"], ["11-20", "17", "10.0", "-"], [">60", "2-3", "5.0", "21.0"]]


def test_the_curve_has_a_point_for_each_bucket_and_breaks_where_there_is_none(tmp_path):
    figure = viewing.length_curve(CURVES, title="t")
    axes = figure.axes[0]
    plain, attention = axes.lines
    assert plain.get_ydata().tolist() == [20, 10, 5]
    first, gap, last = attention.get_ydata()
    assert (first, last) == (25, 21)
    assert math.isnan(gap)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["≤10\nn=31", "11-20\nn=17", ">60\nn=2-3"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["$plain$", "attention"]
    assert plain.get_marker() != attention.get_marker()
    assert axes.get_ylim()[0] == 0
    viewing.save(figure, tmp_path / "curve.png")


def test_nine_models_are_told_apart():
    lines = viewing.length_curve({str(n): CURVES["attention"] for n in range(9)}).axes[0].lines
    assert len({(line.get_color(), line.get_marker(), line.get_linestyle()) for line in lines}) == 9


def test_curves_that_cannot_be_compared_are_refused():
    with pytest.raises(OptionError, match="at least one model"):
        viewing.length_curve({})
    with pytest.raises(OptionError, match="at least one model"):
        viewing.length_table({"a": []})
    for other in (LengthBucket(0, 15, 3, 1.0), LengthBucket(8, None, 3, 1.0)):
        with pytest.raises(OptionError, match="these overlap"):
            viewing.length_curve({"a": CURVES["attention"], "b": [other]})
