"""A caption word by word over its image in the terminal: two pixels per character, by the upper half block."""

import math

import numpy as np
from rich.cells import cell_len
from rich.text import Text

from regard.errors import OptionError
from regard.trace import Trace
from regard.viewing.shading import Pixels, attended_cell, attention_field, grid_of, image_pixels, overlaid
from regard.viewing.words import isolated, shortened

_SHADES = " ░▒▓█"
# Characters of the narrowest tile, so that there is room for a word.
_MIN_WIDTH = 12
_GATE, _CHOICE = "rgb(0,114,178)", (255, 176, 0)


def word_by_word(
    trace: Trace,
    *,
    width: int = 80,
    side: int = 18,
    cells: bool = False,
    overlay: str = "light",
    colour: bool = True,
) -> Text:
    """The image, and then for each word where it attends, `side` characters wide, as many side by side as fit.

    Above each tile stands the word with its probability, below it its gate, where the trace has them; the cell that
    hard attention chose is orange. Without `colour`, for a terminal or a file that has none, the weights are shades
    from blank to full, two characters per cell, and the chosen cell is "[]".
    """
    if not 6 <= side <= width:
        raise OptionError(f"An image is 6 to {width} characters wide, the width of the terminal; got side={side}.")
    words = range(len(trace.target))
    columns = grid_of(trace)[1]
    if colour:
        pixels = image_pixels(trace, side)
        pixels = pixels[: len(pixels) // 2 * 2] if len(pixels) > 1 else np.repeat(pixels, 2, 0)
        tiles = [_blocks(pixels), *(_blocks(_attended(trace, word, pixels, cells, overlay)) for word in words)]
        wide = pixels.shape[1]
    else:
        tiles = [_shades(trace, word) for word in words]
        wide = max(_MIN_WIDTH, 2 * columns)
    blank = [Text(" " * wide)] if colour else []
    headings = [*blank, *(_heading(trace, word, wide) for word in words)]
    gates = [*blank, *(_gate(trace, word, wide) for word in words)]
    beside = max(1, (width + 2) // (wide + 2))
    lines = []
    for start in range(0, len(tiles), beside):
        row = slice(start, start + beside)
        lines.append(_joined(headings[row]))
        lines += [_joined(list(parts)) for parts in zip(*tiles[row], strict=True)]
        if trace.values("gate") is not None:
            lines.append(_joined(gates[row]))
        lines.append(Text())
    return Text("\n").join([*lines[:-1], *_legend(trace)])


def _legend(trace: Trace) -> list[Text]:
    parts = []
    if trace.values("log_prob") is not None:
        parts.append("number: probability of the word")
    if trace.values("gate") is not None:
        parts.append("β: gate on the image")
    return [Text(), Text("; ".join(parts), style="dim")] if parts else []


def _joined(parts: list[Text]) -> Text:
    return Text("  ").join(parts)


def _attended(trace: Trace, word: int, pixels: Pixels, cells: bool, overlay: str) -> Pixels:
    shown = overlaid(pixels, attention_field(trace, word, pixels.shape[:2], cells=cells), overlay)
    if trace.values("choice") is not None:
        left, top, wide, high = (round(edge) for edge in attended_cell(trace, word, pixels.shape[:2]))
        part = shown[top : max(top + high, top + 1), left : max(left + wide, left + 1)]
        part[:] = (part.astype(float) + np.array(_CHOICE)) / 2
    return shown


def _blocks(pixels: Pixels) -> list[Text]:
    """A line for each two rows of pixels: the upper is the colour of the character, the lower its background."""
    lines = []
    for upper, lower in zip(pixels[::2].tolist(), pixels[1::2].tolist(), strict=True):
        line = Text()
        for (r, g, b), (s, h, c) in zip(upper, lower, strict=True):
            line.append("▀", style=f"rgb({r},{g},{b}) on rgb({s},{h},{c})")
        lines.append(line)
    return lines


def _shades(trace: Trace, word: int) -> list[Text]:
    rows, columns = grid_of(trace)
    weights = trace.weights[word].reshape(rows, columns).clip(0)
    levels = np.rint(4 * weights / max(float(weights.max()), 1e-12)).astype(int)
    padding = " " * max(0, _MIN_WIDTH - 2 * columns)
    lines = [[_SHADES[level] * 2 for level in row] for row in levels.tolist()]
    choices = trace.values("choice")
    if choices is not None:
        row, column = divmod(int(choices[word]), columns)
        lines[row][column] = "[]"
    return [Text("".join(line) + padding) for line in lines]


def _heading(trace: Trace, word: int, room: int) -> Text:
    log_probs = trace.values("log_prob")
    number = "" if log_probs is None else f" {math.exp(min(0.0, log_probs[word])):.2f}"
    label = shortened(trace.target[word], room - len(number), cell_len)
    padding = " " * (room - cell_len(label) - len(number))
    return Text.assemble((isolated(label), "bold"), (number, "dim"), padding)


def _gate(trace: Trace, word: int, room: int) -> Text:
    gates = trace.values("gate")
    if gates is None:
        return Text()
    number = f" β{gates[word]:.2f}"
    length = max(0, room - len(number))
    full = round(length * min(1.0, max(0.0, gates[word])))
    return Text.assemble(("━" * full, _GATE), ("─" * (length - full), "dim"), (number[: room - length], "dim"))
