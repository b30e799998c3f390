"""Attention in the terminal: heat maps of coloured cells, the strongest links of each word, and tables of scores."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from regard.metrics.translation import LengthBucket
from regard.trace import Trace
from regard.viewing.lengths import line_up
from regard.viewing.words import isolated, shortened

# From paper to ink, so that the numbers stay readable on every cell.
_LIGHT, _DARK = (247, 251, 255), (8, 69, 148)
_SHADES = " ░▒▓█"


def heat_map(trace: Trace, *, title: str | None = None, width: int = 80) -> Table:
    """One row per target, one column per source; a cell shows its weight in hundredths and by its colour.

    Where the words are too long for `width` columns of the terminal, they are numbered and listed below; where even the
    numbers are too many, a cell is one character, from blank to full, and a map wider than the terminal goes on below.
    Columns go from left to right, in the order of the source, in every script.
    """
    targets = [shortened(word, width // 3, cell_len) for word in trace.target]
    label_width = max(map(cell_len, targets), default=0)
    heads = list(trace.source)
    key = None
    if label_width + sum(max(4, cell_len(head)) + 1 for head in heads) > width:
        heads = [str(number) for number in range(1, len(heads) + 1)]
        words = (isolated(shortened(word, width // 2, cell_len)) for word in trace.source)
        key = Text("  ".join(f"{number}:{word}" for number, word in zip(heads, words, strict=True)))
    table = Table(title=title, caption=key, title_justify="left", caption_justify="left", box=None, padding=0)
    table.add_column("", justify="right", no_wrap=True, min_width=label_width)
    if key is not None and label_width + 5 * len(heads) > width:
        table.show_header = False
        _add_strips(table, trace, targets, room=max(10, width - label_width - 2))
        return table
    widths = [max(4, cell_len(head)) + 1 for head in heads]
    for head, column_width in zip(heads, widths, strict=True):
        table.add_column(Text(isolated(head)), justify="center", no_wrap=True, min_width=column_width)
    largest = trace.largest()
    for word, row in zip(targets, trace.weights, strict=True):
        cells = (_cell(weight / largest, weight, column) for weight, column in zip(row, widths, strict=True))
        table.add_row(Text(f"{isolated(word)} "), *cells)
    return table


def lines(trace: Trace, *, title: str | None = None, most: int = 3, least: float = 0.05, width: int = 80) -> Table:
    """Each target word with the source words it looked at: at most `most` of them, of a weight of at least `least`.

    Beside the words stand the weights in hundredths; a word that comes more than once is told by its place. Where the
    trace has scores, the probability of each target word stands first.
    """
    times = Counter(trace.source)
    names = [
        isolated(shortened(word, width // 4, cell_len)) + (f"({place})" if times[word] > 1 else "")
        for place, word in enumerate(trace.source, 1)
    ]
    table = Table(title=title, title_justify="left", box=None, padding=(0, 1, 0, 0), show_header=False)
    if trace.scores is not None:
        table.add_column(justify="right", no_wrap=True, style="dim")
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis")
    largest = trace.largest()
    for t, (word, row) in enumerate(zip(trace.target, trace.weights, strict=True)):
        order = [i for i in sorted(range(len(row)), key=lambda i: -row[i])[:most] if row[i] >= least]
        links = [_shaded(f" {names[i]} {100 * row[i]:.0f} ", row[i] / largest) for i in order]
        score = [] if trace.scores is None else [f"{math.exp(trace.scores[t]):.2f}"]
        label = Text(isolated(shortened(word, width // 4, cell_len)))
        table.add_row(*score, label, "←" if links else "", Text(" ").join(links))
    return table


def length_table(curves: Mapping[str, Sequence[LengthBucket]], *, title: str | None = None) -> Table:
    """BLEU by the length of the source, a column for each model; the best of a row is bold."""
    table = Table(title=title, title_justify="left")
    for name in ("source words", "sentences", *curves):
        table.add_column(Text(name), justify="right")
    for row in line_up(curves):
        best = max(score for score in row.scores if score is not None)
        cells = [
            Text("-", style="dim") if score is None else Text(f"{score:.1f}", style="bold" if score == best else "")
            for score in row.scores
        ]
        table.add_row(row.label, row.count, *cells)
    return table


def _add_strips(table: Table, trace: Trace, targets: Sequence[str], room: int) -> None:
    """Cells of one character under a ruler, `room` of them side by side, the rest below."""
    table.add_column("", no_wrap=True)
    largest = trace.largest()
    for start in range(0, len(trace.source), room):
        end = min(start + room, len(trace.source))
        table.add_row("", Text(f" {_ruler(start, end)}", style="dim"))
        for word, row in zip(targets, trace.weights, strict=True):
            cells = (_block(weight / largest) for weight in row[start:end])
            table.add_row(Text(isolated(word)), Text.assemble(" ", *cells))


def _ruler(start: int, end: int) -> str:
    """Numbers of the columns from 1, each starting over its own column: 1, 5, 10, 15, ..."""
    ruler = ""
    for place in range(start, end):
        if (place == start or (place + 1) % 5 == 0) and len(ruler) <= place - start:
            ruler = f"{ruler:<{place - start}}{place + 1} "
    return ruler.rstrip()


def _cell(shade: float, weight: float, width: int) -> Text:
    number = f"{100 * weight:.0f}" if abs(weight) >= 0.005 else "·"
    return _shaded(f"{number:^{width}}", shade)


def _block(shade: float) -> Text:
    """One character: its colour fills the cell; without colours, its form tells the weight."""
    colour = _colour(shade)
    return Text(_SHADES[round(4 * min(1.0, max(0.0, shade)))], style=f"{colour} on {colour}")


def _shaded(text: str, shade: float) -> Text:
    ink = "rgb(255,255,255)" if shade > 0.6 else "rgb(0,0,0)"
    return Text(text, style=f"{ink} on {_colour(shade)}")


def _colour(shade: float) -> str:
    shade = min(1.0, max(0.0, shade))
    red, green, blue = (round(low + (high - low) * shade) for low, high in zip(_LIGHT, _DARK, strict=True))
    return f"rgb({red},{green},{blue})"
