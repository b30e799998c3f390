"""Heat maps, in the style of Bahdanau et al. 2015, figure 3: as a figure, in the terminal, and as an HTML table."""

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from regard.trace import Map, Trace
from regard.trace.elements import right_to_left
from regard.viewing.scale import (
    DARK,
    LIGHT,
    Colour,
    Weights,
    blend,
    filled,
    fractions,
    ink_on,
    inked,
    is_signed,
    largest_weight,
    reduced,
    reduction_note,
    shade_of,
)
from regard.viewing.tokens import heading, isolated, printable, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from regard.viewing.figures import InlineFigure

MAX_NUMBERS = 400
"""Cells up to which a figure or a table shows its weights as numbers too."""
MAX_LABELS = 100
"""Positions of an axis up to which each has a label; of longer axes only some are labelled."""
MAX_SIDE = 1000
"""Positions of an axis up to which each has its own cell; longer axes are reduced, and the figure says so."""
MAX_CELLS = 40_000
"""Cells up to which the terminal shows each weight; larger maps are reduced, and say so."""
MAX_ROWS = 60
"""Rows of an HTML table of a larger map."""
# Inches of a longer axis, and its number of labels.
_LONG_AXIS, _LONG_AXIS_LABELS = 12.0, 45
_SMALL_WEIGHT = 0.005
_COLOURS, _SIGNED_COLOURS = "Blues", "RdBu_r"
_MAX_REDUCED_ROWS = 100
_STRONGEST = 3
_MAX_LETTERS = 40


def figure(trace: Trace, *, title: str | None = None) -> "InlineFigure":
    """One heat map of the main map: inputs along the top, outputs down the side.

    Inputs written from right to left start at the right. Up to MAX_NUMBERS cells show their weights as numbers.
    Axes of more than MAX_LABELS positions are labelled in part, and those of more than MAX_SIDE are reduced to fewer
    cells, each of which shows the largest of its weights.
    """
    from regard.viewing.figures import InlineFigure, check_drawable, label_inches

    check_drawable(trace)
    rows, columns = trace.weights.shape
    numbers = rows * columns <= MAX_NUMBERS
    wide, high = (0.5, 0.42) if numbers else (0.26, 0.26)
    width = label_inches(trace.target) + axis_inches(columns, wide) + 0.6 * label_inches(trace.source)
    height = 0.9 * label_inches(trace.source) + axis_inches(rows, high) + (0.4 if title else 0)
    drawn = InlineFigure(figsize=(max(4.0, width), max(2.4, height)), layout="constrained")
    axes = drawn.subplots()
    note = draw(axes, trace, numbers=numbers, max_side=MAX_SIDE, largest=largest_weight(trace.weights))
    set_title(axes, title)
    if note:
        axes.set_xlabel(note, fontsize=9)
    if not numbers:
        add_scale(drawn, axes)
    return drawn


def terminal(trace: Trace, *, title: str | None = None, width: int = 80) -> Table:
    """One row per output, one column per input; a cell shows its weight in hundredths and by its colour.

    Where the inputs are too long for `width` characters, they are numbered and listed below. Where even the numbers do
    not fit, a cell is one character, from blank to full, and a map wider than the terminal continues below. A map of
    more than MAX_CELLS cells is reduced to fit. Columns follow the order of the input from left to right, in every
    script.
    """
    if trace.weights.size > MAX_CELLS:
        return _reduced_map(trace, title, width)
    targets = [shortened(word, width // 3, cell_len) for word in trace.target]
    label_width = max(map(cell_len, targets), default=0)
    heads = [printable(word) for word in trace.source]
    key = None
    if label_width + sum(max(4, cell_len(head)) + 1 for head in heads) > width:
        heads = [str(number) for number in range(1, len(heads) + 1)]
        words = (isolated(shortened(word, width // 2, cell_len)) for word in trace.source)
        key = Text("  ".join(f"{number}:{word}" for number, word in zip(heads, words, strict=True)))
    table = _table(title, key)
    table.add_column("", justify="right", no_wrap=True, min_width=label_width)
    if key is not None and label_width + 5 * len(heads) > width:
        table.show_header = False
        _add_blocks(table, trace.weights, targets, room=max(10, width - label_width - 2))
        return table
    widths = [max(4, cell_len(head)) + 1 for head in heads]
    for head, column_width in zip(heads, widths, strict=True):
        table.add_column(Text(isolated(head)), justify="center", no_wrap=True, min_width=column_width)
    largest = largest_weight(trace.weights)
    for word, row in zip(targets, trace.weights.tolist(), strict=True):
        cells = (_cell(weight / largest, weight, column) for weight, column in zip(row, widths, strict=True))
        table.add_row(Text(f"{isolated(word)} "), *cells)
    return table


def html_table(trace: Trace) -> str:
    """The main map as a table, for places where scripts do not run; all styles are attributes of its elements.

    Up to MAX_NUMBERS cells each weight has its own; of a larger map, each row lists its strongest inputs.
    """
    rows, columns = trace.weights.shape
    if rows * columns > MAX_NUMBERS or trace.axis(trace.main.columns).grid is not None:
        return _strongest_table(trace)
    order = range(columns)
    if right_to_left(trace.source):
        order = order[::-1]
    head = "".join(f"<th>{html_label(trace.source[index])}</th>" for index in order)
    largest = largest_weight(trace.weights)
    lines = []
    for label, weights in zip(trace.target, trace.weights.tolist(), strict=True):
        shares = (abs(weights[index]) / largest for index in order)
        cells = (
            f"<td{html_shade(share)}>{weights[index]:.2f}</td>" for share, index in zip(shares, order, strict=True)
        )
        lines.append(f"<tr><th>{html_label(label)}</th>{''.join(cells)}</tr>")
    return f"<table>{_html_caption(trace.main)}<tr><th></th>{head}</tr>{''.join(lines)}</table>"


def html_label(label: str) -> str:
    """A word as HTML that cannot reorder what stands around it."""
    return f"<bdi>{escape(shortened(label, _MAX_LETTERS))}</bdi>"


def html_shade(share: float) -> str:
    """The attribute that shades an element, from 0 to 1."""
    background = blend(LIGHT, DARK, share)
    return f' style="background-color: {_hex(background)}; color: {_hex(ink_on(background))}"'


def _strongest_table(trace: Trace) -> str:
    """The inputs with the largest weights of each row."""
    lines = []
    for label, weights in list(zip(trace.target, trace.weights, strict=True))[:MAX_ROWS]:
        best = np.argsort(-weights, kind="stable")[:_STRONGEST]
        inputs = ", ".join(f"{html_label(trace.source[index])} {weights[index]:.3f}" for index in best)
        lines.append(f"<tr><th>{html_label(label)}</th><td>{inputs}</td></tr>")
    if len(trace.target) > MAX_ROWS:
        lines.append(f"<tr><th>...</th><td>{len(trace.target) - MAX_ROWS:,} more rows</td></tr>")
    return f"<table>{_html_caption(trace.main)}{''.join(lines)}</table>"


def _html_caption(shown: Map) -> str:
    text = f"{printable(shown.name)}: {printable(shown.rows)} x {printable(shown.columns)}"
    return f"<caption>{escape(text)}</caption>"


def _hex(colour: Colour) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)


def draw(axes: "Axes", trace: Trace, *, numbers: bool, max_side: int, largest: float) -> str:
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


def _label(axes: "Axes", trace: Trace, steps: tuple[int, int], font_size: int) -> None:
    """Labels of both axes: all of them, or as many as there is room for."""
    from regard.viewing.figures import labels, set_literal

    source, target = (_labelled(len(words)) for words in (trace.source, trace.target))
    names = labels([trace.source[index] for index in source]), labels([trace.target[index] for index in target])
    across, down = ([index / step for index in indices] for indices, step in ((source, steps[1]), (target, steps[0])))
    axes.set_xticks(across, names[0], rotation=60, ha="left", rotation_mode="anchor", fontsize=font_size)
    axes.set_yticks(down, names[1], fontsize=font_size)
    axes.xaxis.tick_top()
    set_literal([*axes.get_xticklabels(), *axes.get_yticklabels()])


def _labelled(length: int) -> range:
    return range(length) if length <= MAX_LABELS else range(0, length, math.ceil(length / _LONG_AXIS_LABELS))


def axis_inches(length: int, each: float) -> float:
    """The length of an axis whose positions take so many inches each."""
    return each * length if length <= MAX_LABELS else _LONG_AXIS


def add_scale(drawn: "InlineFigure", *axes: "Axes") -> None:
    """A bar of the colours beside all axes of a figure, which share one scale."""
    bar = drawn.colorbar(axes[0].images[0], ax=drawn.axes, shrink=0.6, aspect=30, pad=0.02)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8)
    bar.set_label("weight", fontsize=9)


def _write_numbers(axes: "Axes", weights: np.ndarray, largest: float, *, signed: bool) -> None:
    from matplotlib import colormaps

    colours = colormaps[_SIGNED_COLOURS if signed else _COLOURS]
    for y, row in enumerate(weights.tolist()):
        for x, weight in enumerate(row):
            if abs(weight) < _SMALL_WEIGHT:
                continue
            share = weight / largest
            red, green, blue = (round(255 * part) for part in colours((share + 1) / 2 if signed else share)[:3])
            ink = fractions(ink_on((red, green, blue)))
            axes.text(x, y, f"{weight:.2f}", ha="center", va="center", fontsize=8, color=ink)


def set_title(axes: "Axes", title: str | None) -> None:
    """Give a map its title, if there is one."""
    if title:
        axes.set_title(printable(title), fontsize=11, fontweight="bold", pad=8, parse_math=False)


def _table(title: str | None, caption: Text | None) -> Table:
    return Table(
        title=heading(title), caption=caption, title_justify="left", caption_justify="left", box=None, padding=0
    )


def _reduced_map(trace: Trace, title: str | None, width: int) -> Table:
    """A map too large to show: reduced to the width of the terminal, its rows named by the first word of each."""
    room = max(10, width - width // 3 - 2)
    weights, steps = reduced(trace.weights, _MAX_REDUCED_ROWS, room)
    targets = [shortened(word, width // 3, cell_len) for word in trace.target[:: steps[0]]]
    table = _table(title, Text(reduction_note(trace.weights.shape, steps)))
    table.add_column("", justify="right", no_wrap=True)
    table.show_header = False
    _add_blocks(table, weights, targets, room=room, step=steps[1])
    return table


def _add_blocks(table: Table, weights: Weights, targets: Sequence[str], room: int, step: int = 1) -> None:
    """Cells of one character under a ruler, `room` of them side by side, the rest below."""
    table.add_column("", no_wrap=True)
    largest = largest_weight(weights)
    for start in range(0, weights.shape[1], room):
        end = min(start + room, weights.shape[1])
        table.add_row("", Text(f" {_ruler(start, end, step)}", style="dim"))
        for word, row in zip(targets, weights.tolist(), strict=True):
            cells = (_block(weight / largest) for weight in row[start:end])
            table.add_row(Text(isolated(word)), Text.assemble(" ", *cells))


def _ruler(start: int, end: int, step: int = 1) -> str:
    """Numbers of the inputs from 1, each starting over its own column: 1, 5, 10, 15, ..., or one in ten columns.

    `step` is how many inputs a column stands for.
    """
    if step > 1:
        return "".join(f"{index * step + 1:<10}" for index in range(start, end, 10)).rstrip()
    ruler = ""
    for index in range(start, end):
        if (index == start or (index + 1) % 5 == 0) and len(ruler) <= index - start:
            ruler = f"{ruler:<{index - start}}{index + 1} "
    return ruler.rstrip()


def _cell(share: float, weight: float, width: int) -> Text:
    number = f"{100 * weight:.0f}" if abs(weight) >= 0.005 else "·"
    return shaded(f"{f'{number:>3}':^{width}}", share)


def _block(share: float) -> Text:
    """One character: its colour fills the cell; without colours, its form shows the weight."""
    return Text(shade_of(share), style=filled(blend(LIGHT, DARK, share)))


def shaded(text: str, share: float) -> Text:
    """A text for the terminal on the colour of a share from 0 to 1."""
    return Text(text, style=inked(blend(LIGHT, DARK, share)))
