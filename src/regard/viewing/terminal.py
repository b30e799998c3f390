"""Attention in the terminal: heat maps of coloured cells, the strongest links of each word, and tables of scores."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from regard.trace import Trace
from regard.viewing.length_curves import line_up
from regard.viewing.scale import Colour, Weights, ink_on, largest_weight, reduced, reduction_note
from regard.viewing.words import isolated, printable, shortened

if TYPE_CHECKING:
    from regard.metrics.translation import LengthBucket

MAX_CELLS = 40_000
"""Cells up to which the terminal shows each weight; larger maps are reduced, and say so."""
_MAX_REDUCED_ROWS = 100
# Light to dark, so that numbers stay readable on every cell.
_LIGHT, _DARK = (247, 251, 255), (8, 69, 148)
_SHADES = " ░▒▓█"


def heat_map(trace: Trace, *, title: str | None = None, width: int = 80) -> Table:
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


def lines(
    trace: Trace, *, title: str | None = None, max_links: int = 3, min_weight: float = 0.05, width: int = 80
) -> Table:
    """Each output word with the input words it attends to: at most `max_links`, each of at least `min_weight`.

    Beside the words stand the weights in hundredths; a word that comes more than once is followed by its position.
    Where the trace has log-probabilities, the probability of each output word stands first.
    """
    times = Counter(trace.source)
    names = [
        isolated(shortened(word, width // 4, cell_len)) + (f"({place})" if times[word] > 1 else "")
        for place, word in enumerate(trace.source, 1)
    ]
    log_probs = trace.values("log_prob")
    table = Table(title=_plain(title), title_justify="left", box=None, padding=(0, 1, 0, 0), show_header=False)
    if log_probs is not None:
        table.add_column(justify="right", no_wrap=True, style="dim")
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis")
    largest = largest_weight(trace.weights)
    for t, (word, row) in enumerate(zip(trace.target, trace.weights.tolist(), strict=True)):
        order = [i for i in sorted(range(len(row)), key=lambda i: -row[i])[:max_links] if row[i] >= min_weight]
        links = [_shaded(f" {names[i]} {100 * row[i]:.0f} ", row[i] / largest) for i in order]
        probability = [] if log_probs is None else [f"{math.exp(min(0.0, log_probs[t])):.2f}"]
        label = Text(isolated(shortened(word, width // 4, cell_len)))
        table.add_row(*probability, label, "←" if links else "", Text(" ").join(links))
    return table


def length_table(curves: Mapping[str, Sequence["LengthBucket"]], *, title: str | None = None) -> Table:
    """BLEU by the length of the source, a column for each model; the best of a row is bold."""
    table = Table(title=_plain(title), title_justify="left")
    for name in ("source words", "sentences", *curves):
        table.add_column(Text(printable(name)), justify="right")
    for row in line_up(curves):
        best = max(score for score in row.scores if score is not None)
        cells = [
            Text("-", style="dim") if score is None else Text(f"{score:.1f}", style="bold" if score == best else "")
            for score in row.scores
        ]
        table.add_row(row.label, row.count, *cells)
    return table


def _plain(title: str | None) -> Text | None:
    """A title whose brackets are not markup."""
    return None if title is None else Text(printable(title), style="table.title")


def _table(title: str | None, caption: Text | None) -> Table:
    return Table(
        title=_plain(title), caption=caption, title_justify="left", caption_justify="left", box=None, padding=0
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
        return "".join(f"{place * step + 1:<10}" for place in range(start, end, 10)).rstrip()
    ruler = ""
    for place in range(start, end):
        if (place == start or (place + 1) % 5 == 0) and len(ruler) <= place - start:
            ruler = f"{ruler:<{place - start}}{place + 1} "
    return ruler.rstrip()


def _cell(shade: float, weight: float, width: int) -> Text:
    number = f"{100 * weight:.0f}" if abs(weight) >= 0.005 else "·"
    return _shaded(f"{f'{number:>3}':^{width}}", shade)


def _block(shade: float) -> Text:
    """One character: its colour fills the cell; without colours, its form shows the weight."""
    colour = _rgb(_colour(shade))
    return Text(_SHADES[round(4 * min(1.0, max(0.0, shade)))], style=f"{colour} on {colour}")


def _shaded(text: str, shade: float) -> Text:
    colour = _colour(shade)
    return Text(text, style=f"{_rgb(ink_on(colour))} on {_rgb(colour)}")


def _colour(shade: float) -> Colour:
    shade = min(1.0, max(0.0, shade))
    red, green, blue = (round(low + (high - low) * shade) for low, high in zip(_LIGHT, _DARK, strict=True))
    return red, green, blue


def _rgb(colour: Colour) -> str:
    return f"rgb({colour[0]},{colour[1]},{colour[2]})"
