"""Attention as a picture: heat maps and length curves in the style of Bahdanau et al. 2015, and lines between words."""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib import ft2font
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.text import Text

from regard.errors import OptionError, RegardError
from regard.metrics.translation import LengthBucket
from regard.trace import Trace
from regard.viewing.lengths import line_up
from regard.viewing.words import right_to_left, shortened

FORMATS = (".png", ".svg", ".pdf")
_INK = (8 / 255, 69 / 255, 148 / 255)
# Told apart by people who see few colours too (Okabe and Ito), and by their marks.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKS = "osD^vPX"
_LONGEST_WORD = 28
_LETTER = 0.085
"""Inches of a letter of a label, on average."""


def heat_map(trace: Trace, *, title: str | None = None) -> Figure:
    """One heat map (Bahdanau et al. 2015, figure 3): source words along the top, target words down the side.

    A source written from right to left starts at the right. Up to 400 cells show their numbers too.
    """
    numbers = len(trace.source) * len(trace.target) <= 400
    wide, high = (0.5, 0.42) if numbers else (0.26, 0.26)
    width = _room(trace.target) + wide * len(trace.source) + 0.6 * _room(trace.source)
    height = 0.9 * _room(trace.source) + high * len(trace.target) + (0.4 if title else 0)
    figure = Figure(figsize=(max(4.0, width), max(2.4, height)), layout="constrained")
    axes = figure.subplots()
    _draw(axes, trace, title=title, numbers=numbers)
    if not numbers:
        figure.colorbar(axes.images[0], ax=axes, shrink=0.6, aspect=30, pad=0.02).outline.set_visible(False)
    return figure


def heat_maps(traces: Sequence[tuple[str, Trace]], *, columns: int = 4, title: str | None = None) -> Figure:
    """Several heat maps side by side, each under its name; `trace.by_head()` gives those of the heads."""
    if not traces:
        raise OptionError("heat_maps needs at least one (name, trace) to draw; got none.")
    columns = min(columns, len(traces))
    rows = math.ceil(len(traces) / columns)
    width = max(_room(trace.target) + 0.24 * len(trace.source) for _, trace in traces) + 0.3
    height = max(0.9 * _room(trace.source) + 0.24 * len(trace.target) for _, trace in traces) + 0.4
    figure = Figure(figsize=(columns * max(2.0, width), rows * max(2.0, height) + 0.4), layout="constrained")
    for axes in (grid := figure.subplots(rows, columns, squeeze=False)).flat:
        axes.set_axis_off()
    for axes, (name, trace) in zip(grid.flat, traces, strict=False):
        axes.set_axis_on()
        _draw(axes, trace, title=name, numbers=False)
    if title:
        figure.suptitle(title, fontsize=13, parse_math=False)
    return figure


def lines(trace: Trace, *, title: str | None = None) -> Figure:
    """Source words down the left, target words down the right, and a line between two words as strong as their weight.

    Opacity and width both show the weight; lines below a hundredth of the heaviest are left out.
    """
    _can_draw(trace)
    rows = max(len(trace.source), len(trace.target))
    sides = _room(trace.source), _room(trace.target)
    height, width = 0.28 * rows, max(2.2, min(5.0, 0.25 * rows))
    top = 0.45 if title else 0.15
    figure = Figure(figsize=(sum(sides) + width, height + top + 0.1))
    size_x, size_y = figure.get_size_inches()
    axes = figure.add_axes((sides[0] / size_x, 0.1 / size_y, width / size_x, height / size_y))
    axes.set(xlim=(0, 1), ylim=(rows, 0))
    axes.set_axis_off()
    # The shorter sentence is spread over the height of the longer one, which keeps a plain translation level.
    left = [(i + 0.5) * rows / len(trace.source) for i in range(len(trace.source))]
    right = [(t + 0.5) * rows / len(trace.target) for t in range(len(trace.target))]
    for x, align, places, words in ((-0.02, "right", left, trace.source), (1.02, "left", right, trace.target)):
        for y, word in zip(places, words, strict=True):
            word = shortened(word, _LONGEST_WORD)
            axes.text(x, y, word, ha=align, va="center", fontsize=10, parse_math=False, clip_on=False)
    axes.add_collection(_links(trace, left, right))
    if title:
        figure.suptitle(title, fontsize=11, fontweight="bold", y=1 - 0.12 / size_y, va="top", parse_math=False)
    return figure


def length_curve(curves: Mapping[str, Sequence[LengthBucket]], *, title: str | None = None) -> Figure:
    """BLEU against the length of the source, a curve for each model (Bahdanau et al. 2015, figure 2).

    Below each range of lengths stands its number of sentences: a point made of few sentences says little.
    """
    rows = line_up(curves)
    figure = Figure(figsize=(max(5.0, 2.2 + 0.8 * len(rows)), 3.9), layout="constrained")
    axes = figure.subplots()
    for number, name in enumerate(curves):
        points = [math.nan if (score := row.scores[number]) is None else score for row in rows]
        axes.plot(
            points,
            label=name,
            color=_COLOURS[number % len(_COLOURS)],
            marker=_MARKS[number % len(_MARKS)],
            linestyle=("-", "--")[number // len(_COLOURS) % 2],
            markersize=6,
            linewidth=1.8,
            clip_on=False,
            zorder=3,
        )
    axes.set_xticks(range(len(rows)), [f"{row.label}\nn={row.count}" for row in rows], fontsize=9)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("words in the source sentence; n sentences")
    axes.set_ylabel("BLEU")
    axes.grid(axis="y", color="0.9")
    axes.tick_params(length=0)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    _plain(axes.legend(frameon=False, fontsize=9, loc="best").get_texts())
    if title:
        axes.set_title(title, fontsize=11, fontweight="bold", parse_math=False)
    return figure


def save(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Write PNG, SVG or PDF, by the ending of the path; under a temporary name first, then renamed."""
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise OptionError(f"A picture is saved as {', '.join(FORMATS)}; got {path.name!r}.")
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.tmp")
    figure.savefig(draft, format=path.suffix[1:].lower(), dpi=150)
    draft.replace(path)
    return path


def _draw(axes: Axes, trace: Trace, *, title: str | None, numbers: bool) -> None:
    _can_draw(trace)
    largest = trace.largest()
    axes.imshow(trace.weights, cmap="Blues", vmin=0, vmax=largest, aspect="auto")
    size = 9 if numbers else 8
    source, target = ([shortened(word, _LONGEST_WORD) for word in words] for words in (trace.source, trace.target))
    axes.set_xticks(range(len(source)), source, rotation=60, ha="left", rotation_mode="anchor", fontsize=size)
    axes.set_yticks(range(len(target)), target, fontsize=size)
    axes.xaxis.tick_top()
    _plain([*axes.get_xticklabels(), *axes.get_yticklabels()])
    axes.tick_params(length=0)
    axes.set_xticks([x - 0.5 for x in range(1, len(source))], minor=True)
    axes.set_yticks([y - 0.5 for y in range(1, len(target))], minor=True)
    axes.grid(which="minor", color="white", linewidth=1)
    axes.tick_params(which="minor", length=0)
    if right_to_left(trace.source):
        axes.invert_xaxis()
    for side in axes.spines.values():
        side.set_color("0.8")
    if title:
        axes.set_title(title, fontsize=11, fontweight="bold", pad=8, parse_math=False)
    if not numbers:
        return
    for y, row in enumerate(trace.weights):
        for x, weight in enumerate(row):
            if abs(weight) >= 0.005:
                ink = "white" if weight > 0.65 * largest else "0.25" if weight > 0.05 * largest else "0.6"
                axes.text(x, y, f"{weight:.2f}", ha="center", va="center", fontsize=7, color=ink)


def _links(trace: Trace, left: Sequence[float], right: Sequence[float]) -> LineCollection:
    largest = trace.largest()
    found = [
        (min(1.0, weight / largest), left[i], right[t])
        for t, row in enumerate(trace.weights)
        for i, weight in enumerate(row)
        if weight >= 0.01 * largest
    ]
    # The heaviest are drawn last, on top.
    found.sort()
    x = np.linspace(0, 1, 25)
    ease = x * x * (3 - 2 * x)
    return LineCollection(
        [np.column_stack([x, start + (end - start) * ease]) for _, start, end in found],
        colors=[(*_INK, 0.06 + 0.84 * share) for share, _, _ in found],
        linewidths=[0.4 + 3.1 * share for share, _, _ in found],
        capstyle="round",
    )


def _room(words: Sequence[str]) -> float:
    """Inches that the longest of the words needs."""
    return 0.4 + _LETTER * min(_LONGEST_WORD + 1, max(map(len, words), default=0))


def _plain(texts: Iterable[Text]) -> None:
    """A word is no formula, though it may hold dollar signs."""
    for text in texts:
        text.set_parse_math(False)


def _can_draw(trace: Trace) -> None:
    if not trace.source or not trace.target:
        raise OptionError(
            f"There is nothing to draw: the trace has {len(trace.source)} source and {len(trace.target)} target words."
        )
    if right_to_left(trace.source + trace.target) and not hasattr(ft2font, "__libraqm_version__"):
        raise RegardError(
            f"matplotlib {matplotlib.__version__} cannot join and order right-to-left letters; from 3.11 on it can: "
            "pip install -U matplotlib."
        )
