"""Attention as a picture: heat maps in the style of Bahdanau et al. 2015, figure 3."""

import math
import os
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from regard.errors import OptionError
from regard.trace import Trace

FORMATS = (".png", ".svg", ".pdf")


def heat_map(trace: Trace, *, title: str | None = None) -> Figure:
    """One heat map: source words along the top, target words down the side."""
    width, height = 1.6 + 0.5 * len(trace.source), 1.4 + 0.42 * len(trace.target)
    figure = Figure(figsize=(max(4.0, width), max(2.4, height)), layout="constrained")
    axes = figure.subplots()
    _draw(axes, trace, title=title, numbers=len(trace.source) * len(trace.target) <= 400)
    return figure


def heat_maps(traces: Sequence[tuple[str, Trace]], *, columns: int = 4, title: str | None = None) -> Figure:
    """Several heat maps side by side, each under its name."""
    if not traces:
        raise OptionError("heat_maps needs at least one (name, trace) to draw; got none.")
    columns = min(columns, len(traces))
    rows = math.ceil(len(traces) / columns)
    words = max(len(trace.source) for _, trace in traces)
    side = 1.3 + 0.24 * words
    figure = Figure(figsize=(columns * side, rows * side + 0.4), layout="constrained")
    for axes in (grid := figure.subplots(rows, columns, squeeze=False)).flat:
        axes.set_axis_off()
    for axes, (name, trace) in zip(grid.flat, traces, strict=False):
        axes.set_axis_on()
        _draw(axes, trace, title=name, numbers=False)
    if title:
        figure.suptitle(title, fontsize=13)
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
    largest = max(1.0, *(weight for row in trace.weights for weight in row), 0.0)
    axes.imshow(trace.weights, cmap="Blues", vmin=0, vmax=largest, aspect="auto")
    size = 9 if numbers else 8
    axes.set_xticks(
        range(len(trace.source)), trace.source, rotation=60, ha="left", rotation_mode="anchor", fontsize=size
    )
    axes.set_yticks(range(len(trace.target)), trace.target, fontsize=size)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.set_xticks([x - 0.5 for x in range(1, len(trace.source))], minor=True)
    axes.set_yticks([y - 0.5 for y in range(1, len(trace.target))], minor=True)
    axes.grid(which="minor", color="white", linewidth=1)
    axes.tick_params(which="minor", length=0)
    for side in axes.spines.values():
        side.set_color("0.8")
    if title:
        axes.set_title(title, fontsize=11, fontweight="bold", pad=8)
    if not numbers:
        return
    for y, row in enumerate(trace.weights):
        for x, weight in enumerate(row):
            if abs(weight) >= 0.005:
                ink = "white" if weight > 0.55 * largest else "0.25"
                axes.text(x, y, f"{weight:.2f}", ha="center", va="center", fontsize=7, color=ink)
