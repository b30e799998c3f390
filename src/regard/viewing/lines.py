"""Attention as lines between two columns of words; in the terminal, the strongest links of each word."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from regard.errors import OptionError
from regard.trace import Trace
from regard.viewing.matrix import shaded
from regard.viewing.scale import DARK, fractions, largest_weight
from regard.viewing.tokens import heading, isolated, shortened

if TYPE_CHECKING:
    from regard.viewing.figures import InlineFigure

MAX_WORDS = 150
"""Maximum number of words per side."""
MIN_SHARE = 0.01
"""Smallest share of the largest weight that has a line."""


def figure(trace: Trace, *, title: str | None = None) -> "InlineFigure":
    """Inputs down the left, outputs down the right, and between two words a line as strong as their weight.

    Opacity and width both show the weight; lines below MIN_SHARE of the largest weight are left out.
    """
    from matplotlib.collections import LineCollection

    from regard.viewing.figures import InlineFigure, add_title, check_drawable, label_inches, labels

    check_drawable(trace)
    rows = max(len(trace.source), len(trace.target))
    if rows > MAX_WORDS:
        raise OptionError(
            f"Lines can be distinguished for up to {MAX_WORDS} words per side; got {rows}. Draw a heat map."
        )
    sides = label_inches(trace.source), label_inches(trace.target)
    height, width = 0.28 * rows, max(2.2, min(5.0, 0.25 * rows))
    top = 0.45 if title else 0.15
    drawn = InlineFigure(figsize=(sum(sides) + width, height + top + 0.1))
    size_x, size_y = drawn.get_size_inches()
    axes = drawn.add_axes((sides[0] / size_x, 0.1 / size_y, width / size_x, height / size_y))
    axes.set(xlim=(0, 1), ylim=(rows, 0))
    axes.set_axis_off()
    # The shorter side is spread over the height of the longer one, which keeps a word-for-word translation level.
    left = [(i + 0.5) * rows / len(trace.source) for i in range(len(trace.source))]
    right = [(t + 0.5) * rows / len(trace.target) for t in range(len(trace.target))]
    for x, align, heights, words in ((-0.02, "right", left, trace.source), (1.02, "left", right, trace.target)):
        for y, word in zip(heights, labels(words), strict=True):
            axes.text(x, y, word, ha=align, va="center", fontsize=10, parse_math=False, clip_on=False)
    links = _links(trace, left, right)
    drawn_links = LineCollection(
        [curve for _, curve in links],
        colors=[(*fractions(DARK), 0.06 + 0.84 * share) for share, _ in links],
        linewidths=[0.4 + 3.1 * share for share, _ in links],
        capstyle="round",
    )
    axes.add_collection(drawn_links)
    add_title(drawn, title, fontsize=11, y=1 - 0.12 / size_y)
    return drawn


def terminal(
    trace: Trace, *, title: str | None = None, max_links: int = 3, min_weight: float = 0.05, width: int = 80
) -> Table:
    """Each output word with the input words it attends to: at most `max_links`, each of at least `min_weight`.

    Beside the words stand the weights in hundredths; a word that comes more than once is followed by its position.
    Where the trace has log-probabilities, the probability of each output word stands first.
    """
    times = Counter(trace.source)
    names = [
        isolated(shortened(word, width // 4, cell_len)) + (f"({index})" if times[word] > 1 else "")
        for index, word in enumerate(trace.source, 1)
    ]
    log_probs = trace.values("log_prob")
    table = Table(title=heading(title), title_justify="left", box=None, padding=(0, 1, 0, 0), show_header=False)
    if log_probs is not None:
        table.add_column(justify="right", no_wrap=True, style="dim")
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis")
    largest = largest_weight(trace.weights)
    for t, (word, row) in enumerate(zip(trace.target, trace.weights.tolist(), strict=True)):
        order = [i for i in sorted(range(len(row)), key=lambda i: -row[i])[:max_links] if row[i] >= min_weight]
        links = [shaded(f" {names[i]} {100 * row[i]:.0f} ", row[i] / largest) for i in order]
        probability = [] if log_probs is None else [f"{math.exp(min(0.0, log_probs[t])):.2f}"]
        label = Text(isolated(shortened(word, width // 4, cell_len)))
        table.add_row(*probability, label, "←" if links else "", Text(" ").join(links))
    return table


def _links(
    trace: Trace, left: Sequence[float], right: Sequence[float]
) -> list[tuple[float, Float[np.ndarray, "points 2"]]]:
    """The share of the largest weight, and the curve, of each link; the heaviest come last, and so are on top."""
    largest = largest_weight(trace.weights)
    links = [
        (min(1.0, weight / largest), left[i], right[t])
        for t, row in enumerate(trace.weights.tolist())
        for i, weight in enumerate(row)
        if weight >= MIN_SHARE * largest
    ]
    x = np.linspace(0, 1, 25)
    ease = x * x * (3 - 2 * x)
    return [(share, np.column_stack([x, start + (end - start) * ease])) for share, start, end in sorted(links)]
