"""Attention as lines between two columns of words."""

from collections.abc import Sequence

import numpy as np
from matplotlib.collections import LineCollection

from regard.errors import OptionError
from regard.trace import Trace
from regard.viewing.figures import InlineFigure, add_title, check_drawable, label_inches, labels
from regard.viewing.scale import largest_weight

MAX_WORDS = 150
"""Maximum number of words per side."""
MIN_SHARE = 0.01
"""Weights below this share of the largest have no line."""
_INK = (8 / 255, 69 / 255, 148 / 255)


def lines(trace: Trace, *, title: str | None = None) -> InlineFigure:
    """Inputs down the left, outputs down the right, and between two words a line as strong as their weight.

    Opacity and width both show the weight; lines below MIN_SHARE of the largest weight are left out.
    """
    check_drawable(trace)
    rows = max(len(trace.source), len(trace.target))
    if rows > MAX_WORDS:
        raise OptionError(
            f"Lines can be distinguished for up to {MAX_WORDS} words per side; got {rows}. Draw a heat map."
        )
    sides = label_inches(trace.source), label_inches(trace.target)
    height, width = 0.28 * rows, max(2.2, min(5.0, 0.25 * rows))
    top = 0.45 if title else 0.15
    figure = InlineFigure(figsize=(sum(sides) + width, height + top + 0.1))
    size_x, size_y = figure.get_size_inches()
    axes = figure.add_axes((sides[0] / size_x, 0.1 / size_y, width / size_x, height / size_y))
    axes.set(xlim=(0, 1), ylim=(rows, 0))
    axes.set_axis_off()
    # The shorter side is spread over the height of the longer one, which keeps a word-for-word translation level.
    left = [(i + 0.5) * rows / len(trace.source) for i in range(len(trace.source))]
    right = [(t + 0.5) * rows / len(trace.target) for t in range(len(trace.target))]
    for x, align, places, words in ((-0.02, "right", left, trace.source), (1.02, "left", right, trace.target)):
        for y, word in zip(places, labels(words), strict=True):
            axes.text(x, y, word, ha=align, va="center", fontsize=10, parse_math=False, clip_on=False)
    axes.add_collection(_links(trace, left, right))
    add_title(figure, title, fontsize=11, y=1 - 0.12 / size_y)
    return figure


def _links(trace: Trace, left: Sequence[float], right: Sequence[float]) -> LineCollection:
    largest = largest_weight(trace.weights)
    links = [
        (min(1.0, weight / largest), left[i], right[t])
        for t, row in enumerate(trace.weights.tolist())
        for i, weight in enumerate(row)
        if weight >= MIN_SHARE * largest
    ]
    # The heaviest are drawn last, on top.
    links.sort()
    x = np.linspace(0, 1, 25)
    ease = x * x * (3 - 2 * x)
    return LineCollection(
        [np.column_stack([x, start + (end - start) * ease]) for _, start, end in links],
        colors=[(*_INK, 0.06 + 0.84 * share) for share, _, _ in links],
        linewidths=[0.4 + 3.1 * share for share, _, _ in links],
        capstyle="round",
    )
