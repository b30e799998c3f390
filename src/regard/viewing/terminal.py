"""Attention in the terminal: a heat map of coloured cells with their numbers."""

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from regard.trace import Trace

# From paper to ink, so that the numbers stay readable on every cell.
_LIGHT, _DARK = (247, 251, 255), (8, 69, 148)


def heat_map(trace: Trace, *, title: str | None = None, width: int = 80) -> Table:
    """One row per target, one column per source; a cell shows its weight in hundredths and by its colour.

    Where the words are too long for `width` columns of the terminal, they are numbered and listed below.
    """
    label_width = max((cell_len(word) for word in trace.target), default=0)
    heads = list(trace.source)
    key = None
    if label_width + sum(max(4, cell_len(head)) + 1 for head in heads) > width:
        heads = [str(number) for number in range(1, len(heads) + 1)]
        key = "  ".join(f"{number} {word}" for number, word in zip(heads, trace.source, strict=True))
    table = Table(title=title, caption=key, title_justify="left", caption_justify="left", box=None, padding=0)
    table.add_column("", justify="right", no_wrap=True, min_width=label_width)
    widths = [max(4, cell_len(head)) + 1 for head in heads]
    for head, column_width in zip(heads, widths, strict=True):
        table.add_column(Text(head), justify="center", no_wrap=True, min_width=column_width)
    # Weights need not sum to 1: the colours go up to the largest.
    largest = max([1.0, *(weight for row in trace.weights for weight in row)])
    for word, row in zip(trace.target, trace.weights, strict=True):
        cells = (_cell(weight / largest, weight, column) for weight, column in zip(row, widths, strict=True))
        table.add_row(Text(f"{word} "), *cells)
    return table


def _cell(shade: float, weight: float, width: int) -> Text:
    shade = min(1.0, max(0.0, shade))
    red, green, blue = (round(low + (high - low) * shade) for low, high in zip(_LIGHT, _DARK, strict=True))
    ink = "white" if shade > 0.45 else "black"
    number = f"{100 * weight:.0f}" if abs(weight) >= 0.005 else "·"
    return Text(f"{number:^{width}}", style=f"{ink} on rgb({red},{green},{blue})")
