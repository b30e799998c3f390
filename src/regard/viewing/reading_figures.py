"""Machine reading, one line per word: the current word in red, attended words shaded (Cheng et al. 2016, Fig. 1)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import ft2font
from matplotlib.patches import Rectangle
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from regard.errors import OptionError
from regard.trace import Trace
from regard.viewing.figures import InlineFigure, add_legend, add_title, labels
from regard.viewing.scale import ink_on, largest_weight
from regard.viewing.words import isolated, right_to_left, shortened

MAX_WORDS = 80
"""Number of words up to which a sentence is drawn line by line."""
_LIGHT, _DARK = (222, 235, 247), (8, 69, 148)
_RED = (197, 27, 30)
_INCHES_PER_LETTER, _INCHES_PER_LINE = 0.0755, 0.25
_MIN_SHARE = 0.04
"""Weights below this share of the largest are not shaded."""


@dataclass(frozen=True)
class Line:
    """One word of a reading: the words shown with it, their shades from 0 to 1, and its surprisal in bits."""

    current: int
    words: tuple[str, ...]
    weights: tuple[float, ...]
    shades: tuple[float, ...]
    surprisal: float | None


def reading_lines(trace: Trace) -> list[Line]:
    """The lines of a reading: a word with those before it or, where later words are attended to, with all.

    A trace without maps, of a reader that does not attend, has lines without shades.
    """
    words = trace.axis(trace.main.rows).labels if trace.maps else trace.axes[0].labels
    weights = trace.weights if trace.maps else np.zeros((len(words), len(words)), dtype=np.float32)
    surprisals = trace.values("surprisal")
    largest = largest_weight(weights)
    sees_all = bool(np.triu(weights, 1).any())
    lines = []
    for t in range(len(words)):
        shown = len(words) if sees_all else t + 1
        row = tuple(float(weight) for weight in weights[t, :shown])
        shades = tuple(min(1.0, weight / largest) for weight in row)
        lines.append(Line(t, words[:shown], row, shades, None if surprisals is None else float(surprisals[t])))
    return lines


def reading_terminal(trace: Trace, *, width: int = 80, colour: bool = True) -> Table:
    """The lines for a terminal; without `colour`, the current word is in brackets and weights are in hundredths."""
    table = Table.grid(padding=(0, 1, 0, 0))
    lines = reading_lines(trace)
    if any(line.surprisal is not None for line in lines):
        table.add_column(justify="right", no_wrap=True, style="dim")
    table.add_column(max_width=width, overflow="fold")
    for line in lines:
        text = Text()
        for place, word in enumerate(line.words):
            text.append_text(Text(" ") if place else Text(""))
            text.append_text(_terminal_word(line, place, isolated(shortened(word, width // 2, cell_len)), colour))
        bits = [] if line.surprisal is None else [f"{line.surprisal:.1f}"]
        table.add_row(*bits, text)
    return table


def reading_figure(trace: Trace, *, title: str | None = None) -> InlineFigure:
    """The lines as a matplotlib figure, with the surprisal of each word in bits at their beginning."""
    lines = reading_lines(trace)
    if not lines:
        raise OptionError("There is nothing to draw: the trace has no words.")
    if len(lines) > MAX_WORDS:
        raise OptionError(f"A reading is drawn up to {MAX_WORDS} words; got {len(lines)}. Use style='heat_map'.")
    if right_to_left(lines[-1].words) and not hasattr(ft2font, "__libraqm_version__"):
        raise OptionError("matplotlib before 3.11 cannot join right-to-left letters: pip install -U matplotlib.")
    words = labels(lines[-1].words)
    starts = np.concatenate([[0], np.cumsum([len(word) + 1 for word in words])])
    margin = 6.0 if lines[0].surprisal is not None else 1.0
    top = 0.4 if title else 0.1
    size = (margin + float(starts[-1])) * _INCHES_PER_LETTER + 0.1, len(lines) * _INCHES_PER_LINE + top + 0.1
    figure = InlineFigure(figsize=size)
    axes = figure.add_axes((0, 0.1 / size[1], 1, len(lines) * _INCHES_PER_LINE / size[1]))
    axes.set(xlim=(0, size[0] / _INCHES_PER_LETTER), ylim=(len(lines), 0))
    axes.set_axis_off()
    style: dict[str, Any] = {"va": "center", "family": "monospace", "fontsize": 9, "parse_math": False}
    for line in lines:
        y = line.current + 0.5
        if line.surprisal is not None:
            axes.text(margin - 1.5, y, f"{line.surprisal:.1f}", ha="right", color="0.5", **{**style, "fontsize": 7})
        for place, shade in enumerate(line.shades):
            x, letters = margin + starts[place], len(words[place])
            colour, ink = _colours(line, place, shade)
            if colour is not None:
                axes.add_patch(Rectangle((x - 0.35, y - 0.42), letters + 0.7, 0.84, color=colour, linewidth=0))
            weight = "bold" if place == line.current else "normal"
            axes.text(x, y, words[place], ha="left", color=ink, fontweight=weight, **style)
    legend = "Red: the current word. Shade: how much it attends to each other word."
    if lines[0].surprisal is not None:
        legend += " Number: its surprisal in bits."
    add_title(figure, title, fontsize=11, y=1 - 0.1 / size[1])
    add_legend(figure, legend)
    return figure


def _colours(
    line: Line, place: int, shade: float
) -> tuple[tuple[float, float, float] | None, tuple[float, float, float]]:
    """Background and ink of a word, as fractions; no background for a word that is not attended to."""
    if place == line.current:
        return None, _fractions(_RED)
    if shade < _MIN_SHARE:
        return None, (0.2, 0.2, 0.2)
    colour = _shaded(shade)
    return _fractions(colour), _fractions(ink_on(colour))


def _terminal_word(line: Line, place: int, word: str, colour: bool) -> Text:
    shade = line.shades[place]
    if not colour:
        marked = shade >= _MIN_SHARE and place != line.current
        return Text(
            f"[{word}]" if place == line.current else f"{word}({100 * line.weights[place]:.0f})" if marked else word
        )
    if place == line.current:
        return Text(word, style=f"bold rgb({_RED[0]},{_RED[1]},{_RED[2]})")
    if shade < _MIN_SHARE:
        return Text(word)
    background = _shaded(shade)
    inks = ",".join(map(str, ink_on(background)))
    return Text(word, style=f"rgb({inks}) on rgb({','.join(map(str, background))})")


def _shaded(shade: float) -> tuple[int, int, int]:
    red, green, blue = (round(low + (high - low) * shade) for low, high in zip(_LIGHT, _DARK, strict=True))
    return red, green, blue


def _fractions(colour: tuple[int, int, int]) -> tuple[float, float, float]:
    return colour[0] / 255, colour[1] / 255, colour[2] / 255
