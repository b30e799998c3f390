"""A caption word by word over its picture, in the terminal: two pixels a character, by the upper half block."""

import math

import numpy as np
from jaxtyping import UInt8
from rich.cells import cell_len
from rich.text import Text

from regard.errors import OptionError
from regard.trace import Trace
from regard.viewing.glow import chosen, grid_of, light, lit, pixels_of
from regard.viewing.words import isolated, shortened

_SHADES = " ░▒▓█"
# The least room for a word.
_NARROW = 12
_GATE, _CHOICE = "rgb(0,114,178)", (255, 176, 0)


def strip(trace: Trace, *, width: int = 80, side: int = 18, cells: bool = False, colour: bool = True) -> Text:
    """The picture, and then for each word where it looked, `side` characters wide, as many beside one another as fit.

    Above stands the word with its probability, below its gate, where the trace has them; the cell that hard attention
    chose is in orange. Without `colour`, for a terminal or a file that has none, the weights are shades from blank to
    full, a cell two characters wide.
    """
    if not 6 <= side <= width:
        raise OptionError(f"A picture is 6 to {width} characters wide, the width of the terminal; got side={side}.")
    columns = grid_of(trace)[1]
    if colour:
        pixels = pixels_of(trace, side)
        pixels = pixels[: len(pixels) // 2 * 2] if len(pixels) > 1 else np.repeat(pixels, 2, 0)
        tiles = [_blocks(pixels), *(_blocks(_lit(trace, word, pixels, cells)) for word in range(len(trace.target)))]
        wide = pixels.shape[1]
    else:
        tiles = [_shades(trace, word) for word in range(len(trace.target))]
        wide = max(_NARROW, 2 * columns)
    heads = [*([Text(" " * wide)] if colour else []), *(_head(trace, word, wide) for word in range(len(trace.target)))]
    gates = [*([Text(" " * wide)] if colour else []), *(_gate(trace, word, wide) for word in range(len(trace.target)))]
    beside = max(1, (width + 2) // (wide + 2))
    lines = []
    for start in range(0, len(tiles), beside):
        some = slice(start, start + beside)
        lines.append(_joined(heads[some]))
        lines += [_joined(list(row)) for row in zip(*tiles[some], strict=True)]
        if trace.gates is not None:
            lines.append(_joined(gates[some]))
        lines.append(Text())
    return Text("\n").join(lines[:-1])


def _joined(parts: list[Text]) -> Text:
    return Text("  ").join(parts)


def _lit(trace: Trace, word: int, pixels: UInt8[np.ndarray, "h w 3"], cells: bool) -> UInt8[np.ndarray, "h w 3"]:
    made = lit(pixels, light(trace, word, pixels.shape[:2], cells=cells))
    if trace.choices is not None:
        left, top, wide, high = (round(edge) for edge in chosen(trace, word, pixels.shape[:2]))
        part = made[top : max(top + high, top + 1), left : max(left + wide, left + 1)]
        part[:] = (part.astype(float) + np.array(_CHOICE)) / 2
    return made


def _blocks(pixels: UInt8[np.ndarray, "h w 3"]) -> list[Text]:
    """A line for each two rows of pixels: the upper is the colour of the letter, the lower that behind it."""
    lines = []
    for upper, lower in zip(pixels[::2].tolist(), pixels[1::2].tolist(), strict=True):
        line = Text()
        for (r, g, b), (s, h, c) in zip(upper, lower, strict=True):
            line.append("▀", style=f"rgb({r},{g},{b}) on rgb({s},{h},{c})")
        lines.append(line)
    return lines


def _shades(trace: Trace, word: int) -> list[Text]:
    rows, columns = grid_of(trace)
    weights = np.asarray(trace.weights[word]).reshape(rows, columns).clip(0)
    levels = np.rint(4 * weights / max(float(weights.max()), 1e-12)).astype(int)
    padding = " " * max(0, _NARROW - 2 * columns)
    lines = [[_SHADES[level] * 2 for level in row] for row in levels.tolist()]
    if trace.choices is not None:
        row, column = divmod(trace.choices[word], columns)
        lines[row][column] = "[]"
    return [Text("".join(line) + padding) for line in lines]


def _head(trace: Trace, word: int, room: int) -> Text:
    number = "" if trace.scores is None else f" {math.exp(trace.scores[word]):.2f}"
    said = shortened(trace.target[word], room - len(number), cell_len)
    filled = " " * (room - cell_len(said) - len(number))
    return Text.assemble((isolated(said), "bold"), (number, "dim"), filled)


def _gate(trace: Trace, word: int, room: int) -> Text:
    if trace.gates is None:
        return Text()
    number = f" β{trace.gates[word]:.2f}"
    length = max(0, room - len(number))
    full = round(length * min(1.0, max(0.0, trace.gates[word])))
    return Text.assemble(("━" * full, _GATE), ("─" * (length - full), "dim"), (number[: room - length], "dim"))
