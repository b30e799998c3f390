"""Heat maps as figures, in the style of Bahdanau et al. 2015, figure 3."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes

from regard.errors import OptionError
from regard.trace import Trace
from regard.viewing.figures import InlineFigure, add_title, check_drawable, label_inches, labels, set_literal
from regard.viewing.scale import ink_on, is_signed, largest_weight, reduced, reduction_note
from regard.viewing.words import printable, right_to_left

MAX_NUMBERS = 400
"""Cells up to which a heat map shows its weights as numbers too."""
MAX_LABELS = 100
"""Positions of an axis up to which each has a label; of longer axes only some are labelled."""
MAX_SIDE = 1000
"""Positions of an axis up to which each has its own cell; longer axes are reduced, and the figure says so."""
_MAX_PANEL_SIDE = 200
# Inches of a longer axis, and its number of labels.
_LONG_AXIS, _LONG_AXIS_LABELS = 12.0, 45
_SMALL_WEIGHT = 0.005
_COLOURS, _SIGNED_COLOURS = "Blues", "RdBu_r"


def heat_map(trace: Trace, *, title: str | None = None) -> InlineFigure:
    """One heat map of the main map: inputs along the top, outputs down the side.

    Inputs written from right to left start at the right. Up to MAX_NUMBERS cells show their weights as numbers.
    Axes of more than MAX_LABELS positions are labelled in part, and those of more than MAX_SIDE are reduced to fewer
    cells, each of which shows the largest of its weights.
    """
    check_drawable(trace)
    rows, columns = trace.weights.shape
    numbers = rows * columns <= MAX_NUMBERS
    wide, high = (0.5, 0.42) if numbers else (0.26, 0.26)
    width = label_inches(trace.target) + _inches(columns, wide) + 0.6 * label_inches(trace.source)
    height = 0.9 * label_inches(trace.source) + _inches(rows, high) + (0.4 if title else 0)
    figure = InlineFigure(figsize=(max(4.0, width), max(2.4, height)), layout="constrained")
    axes = figure.subplots()
    note = _draw(axes, trace, numbers=numbers, max_side=MAX_SIDE, largest=largest_weight(trace.weights))
    _entitle(axes, title)
    if note:
        axes.set_xlabel(note, fontsize=9)
    if not numbers:
        _add_scale(figure, axes)
    return figure


def heat_maps(
    traces: Trace | Sequence[tuple[str, Trace]], *, columns: int | None = None, title: str | None = None
) -> InlineFigure:
    """Several heat maps side by side on one scale of colours, each under its name.

    `traces` is one trace, of which all heads over the axes of its main map are drawn, a row per layer; or pairs of a
    name and a trace. `columns` is the number of maps per row, by default the number of heads, or 4.
    """
    if columns is not None and columns < 1:
        raise OptionError(f"A figure has at least one column; got columns={columns}.")
    if isinstance(traces, Trace):
        columns = columns or _heads_per_layer(traces)
        traces = _by_map(traces)
    if not traces:
        raise OptionError("heat_maps needs at least one (name, trace) to draw; got none.")
    columns = min(columns or 4, len(traces))
    rows = math.ceil(len(traces) / columns)
    # Where all maps have the same words, only the outer ones are labelled.
    shared = len({(trace.source, trace.target) for _, trace in traces}) == 1
    width = max(_inches(len(trace.source), 0.24) for _, trace in traces) + 0.3
    height = max(_inches(len(trace.target), 0.24) for _, trace in traces) + 0.5
    beside = max(label_inches(trace.target) for _, trace in traces)
    above = max(0.9 * label_inches(trace.source) for _, trace in traces)
    size = (
        columns * max(1.4, width + (0 if shared else beside)) + (beside if shared else 0),
        rows * max(1.4, height + (0 if shared else above)) + (above if shared else 0) + (0.4 if title else 0),
    )
    figure = InlineFigure(figsize=size, layout="constrained")
    largest = max(largest_weight(trace.weights) for _, trace in traces)
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.flat:
        axes.set_axis_off()
    for place, (axes, (name, trace)) in enumerate(zip(grid.flat, traces, strict=False)):
        check_drawable(trace)
        axes.set_axis_on()
        _draw(axes, trace, numbers=False, max_side=_MAX_PANEL_SIDE, largest=largest)
        if shared:
            axes.tick_params(labelleft=place % columns == 0, labeltop=place < columns)
        _entitle(axes, name)
    _add_scale(figure, *grid.flat[: len(traces)])
    add_title(figure, title, fontsize=13)
    return figure


def _by_map(trace: Trace) -> list[tuple[str, Trace]]:
    """Each head over the axes of the main map, under its name; without heads, each map over those axes."""
    alike = [each for each in trace.maps if (each.rows, each.columns) == (trace.main.rows, trace.main.columns)]
    heads = [each for each in alike if each.head is not None] or alike
    return [(each.name, Trace(trace.kind, trace.axes, (each,))) for each in heads]


def _heads_per_layer(trace: Trace) -> int | None:
    heads = [each for each in trace.maps if each.layer is not None and each.head is not None]
    return max((each.head or 0 for each in heads), default=None)


def _draw(axes: Axes, trace: Trace, *, numbers: bool, max_side: int, largest: float) -> str:
    """Draw the main map; returns the note that a reduced map needs, or nothing."""
    weights, steps = reduced(trace.weights, max_side, max_side)
    signed = is_signed(weights)
    colours = _SIGNED_COLOURS if signed else _COLOURS
    axes.imshow(weights, cmap=colours, vmin=-largest if signed else 0, vmax=largest, aspect="auto")
    _label(axes, trace, steps, font_size=9 if numbers else 8)
    if max(weights.shape) <= MAX_LABELS:
        axes.set_xticks(np.arange(1, weights.shape[1]) - 0.5, minor=True)
        axes.set_yticks(np.arange(1, weights.shape[0]) - 0.5, minor=True)
        axes.grid(which="minor", color="white", linewidth=1 if max(weights.shape) <= 40 else 0.4)
    axes.tick_params(which="both", length=0)
    if right_to_left(trace.source):
        axes.invert_xaxis()
    for side in axes.spines.values():
        side.set_color("0.8")
    if numbers:
        _write_numbers(axes, weights, largest, signed=signed)
    return "" if max(steps) == 1 else reduction_note(trace.weights.shape, steps)


def _label(axes: Axes, trace: Trace, steps: tuple[int, int], font_size: int) -> None:
    """Labels of both axes: all of them, or as many as there is room for."""
    source, target = (_labelled(len(words)) for words in (trace.source, trace.target))
    names = labels([trace.source[place] for place in source]), labels([trace.target[place] for place in target])
    across, down = ([place / step for place in places] for places, step in ((source, steps[1]), (target, steps[0])))
    axes.set_xticks(across, names[0], rotation=60, ha="left", rotation_mode="anchor", fontsize=font_size)
    axes.set_yticks(down, names[1], fontsize=font_size)
    axes.xaxis.tick_top()
    set_literal([*axes.get_xticklabels(), *axes.get_yticklabels()])


def _labelled(length: int) -> range:
    return range(length) if length <= MAX_LABELS else range(0, length, math.ceil(length / _LONG_AXIS_LABELS))


def _inches(length: int, each: float) -> float:
    return each * length if length <= MAX_LABELS else _LONG_AXIS


def _add_scale(figure: InlineFigure, *axes: Axes) -> None:
    bar = figure.colorbar(axes[0].images[0], ax=figure.axes, shrink=0.6, aspect=30, pad=0.02)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8)
    bar.set_label("weight", fontsize=9)


def _write_numbers(axes: Axes, weights: np.ndarray, largest: float, *, signed: bool) -> None:
    colours = colormaps[_SIGNED_COLOURS if signed else _COLOURS]
    for y, row in enumerate(weights.tolist()):
        for x, weight in enumerate(row):
            if abs(weight) < _SMALL_WEIGHT:
                continue
            share = weight / largest
            red, green, blue = (round(255 * part) for part in colours((share + 1) / 2 if signed else share)[:3])
            ink = tuple(part / 255 for part in ink_on((red, green, blue)))
            axes.text(x, y, f"{weight:.2f}", ha="center", va="center", fontsize=8, color=ink)


def _entitle(axes: Axes, title: str | None) -> None:
    if title:
        axes.set_title(printable(title), fontsize=11, fontweight="bold", pad=8, parse_math=False)
