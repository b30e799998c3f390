"""All heads of a model as heat maps side by side, or any maps that are to be compared."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from regard.errors import OptionError
from regard.trace import Trace
from regard.viewing.matrix import add_scale, axis_inches, draw, set_title
from regard.viewing.scale import largest_weight

if TYPE_CHECKING:
    from regard.viewing.figures import InlineFigure

_MAX_SIDE = 200
"""Positions of an axis up to which each has its own cell; longer axes are reduced."""


def figure(
    traces: Trace | Sequence[tuple[str, Trace]], *, columns: int | None = None, title: str | None = None
) -> "InlineFigure":
    """Several heat maps side by side on one scale of colours, each under its name.

    `traces` is one trace, of which all heads over the axes of its main map are drawn, a row per layer; or pairs of a
    name and a trace. `columns` is the number of maps per row, by default the number of heads, or 4.
    """
    from regard.viewing.figures import InlineFigure, add_title, check_drawable, label_inches

    if columns is not None and columns < 1:
        raise OptionError(f"A figure has at least one column; got columns={columns}.")
    if isinstance(traces, Trace):
        columns = columns or _heads_per_layer(traces)
        traces = _by_map(traces)
    if not traces:
        raise OptionError("heads.figure needs at least one (name, trace) to draw; got none.")
    columns = min(columns or 4, len(traces))
    rows = math.ceil(len(traces) / columns)
    # Where all maps have the same words, only the outer ones are labelled.
    shared = len({(trace.source, trace.target) for _, trace in traces}) == 1
    width = max(axis_inches(len(trace.source), 0.24) for _, trace in traces) + 0.3
    height = max(axis_inches(len(trace.target), 0.24) for _, trace in traces) + 0.5
    beside = max(label_inches(trace.target) for _, trace in traces)
    above = max(0.9 * label_inches(trace.source) for _, trace in traces)
    size = (
        columns * max(1.4, width + (0 if shared else beside)) + (beside if shared else 0),
        rows * max(1.4, height + (0 if shared else above)) + (above if shared else 0) + (0.4 if title else 0),
    )
    drawn = InlineFigure(figsize=size, layout="constrained")
    largest = max(largest_weight(trace.weights) for _, trace in traces)
    grid = drawn.subplots(rows, columns, squeeze=False)
    for axes in grid.flat:
        axes.set_axis_off()
    for index, (axes, (name, trace)) in enumerate(zip(grid.flat, traces, strict=False)):
        check_drawable(trace)
        axes.set_axis_on()
        draw(axes, trace, numbers=False, max_side=_MAX_SIDE, largest=largest)
        if shared:
            axes.tick_params(labelleft=index % columns == 0, labeltop=index < columns)
        set_title(axes, name)
    add_scale(drawn, *grid.flat[: len(traces)])
    add_title(drawn, title, fontsize=13)
    return drawn


def _by_map(trace: Trace) -> list[tuple[str, Trace]]:
    """Each head over the axes of the main map, under its name; without heads, each map over those axes."""
    alike = [each for each in trace.maps if (each.rows, each.columns) == (trace.main.rows, trace.main.columns)]
    heads = [each for each in alike if each.head is not None] or alike
    return [(each.name, Trace(trace.kind, trace.axes, (each,))) for each in heads]


def _heads_per_layer(trace: Trace) -> int | None:
    heads = [each for each in trace.maps if each.layer is not None and each.head is not None]
    return max((each.head or 0 for each in heads), default=None)
