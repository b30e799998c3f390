"""Machine reading, one line per word: the current word in red, attended words shaded (Cheng et al. 2016, Fig. 1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from regard.errors import OptionError
from regard.trace import Trace
from regard.viewing.scale import DARK, Colour, blend, fractions, ink_on, inked, largest_weight, rgb
from regard.viewing.tokens import isolated, shortened
from regard.viewing.view import View

if TYPE_CHECKING:
    from regard.viewing.figures import InlineFigure

MAX_WORDS = 80
"""Number of words up to which a sentence is drawn line by line."""
_LIGHT, _RED, _INK = (222, 235, 247), (197, 27, 30), (51, 51, 51)
_INCHES_PER_LETTER, _INCHES_PER_LINE = 0.0755, 0.25
_MIN_SHARE = 0.04
"""Weights below this share of the largest are not shaded."""


class ReadingView(View):
    """A sentence as it was read, one line per word; attention between two sentences is a heat map."""

    STYLES: ClassVar[Mapping[str, str]] = {"word_by_word": "reading", **View.STYLES}
    ELEMENTS = ("reading", *View.ELEMENTS)

    def drawn_style(self, trace: Trace, style: str) -> str:
        """The given style, but a heat map where a sentence attends to another one."""
        return "heat_map" if style == "word_by_word" and not _is_one_sentence(trace) else style

    def _terminal(self, trace: Trace, *, width: int, colour: bool) -> RenderableType:
        if _is_one_sentence(trace):
            return terminal(trace, width=width, colour=colour)
        return super()._terminal(trace, width=width, colour=colour)


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


def terminal(trace: Trace, *, width: int = 80, colour: bool = True) -> Table:
    """The lines; without `colour`, the current word is in brackets and weights are in hundredths."""
    table = Table.grid(padding=(0, 1, 0, 0))
    lines = reading_lines(trace)
    if any(line.surprisal is not None for line in lines):
        table.add_column(justify="right", no_wrap=True, style="dim")
    table.add_column(max_width=width, overflow="fold")
    for line in lines:
        text = Text()
        for index, word in enumerate(line.words):
            text.append_text(Text(" ") if index else Text(""))
            text.append_text(_terminal_word(line, index, isolated(shortened(word, width // 2, cell_len)), colour))
        bits = [] if line.surprisal is None else [f"{line.surprisal:.1f}"]
        table.add_row(*bits, text)
    return table


def figure(trace: Trace, *, title: str | None = None) -> "InlineFigure":
    """The lines with the surprisal of each word in bits."""
    from matplotlib.patches import Rectangle

    from regard.viewing.figures import InlineFigure, add_legend, add_title, check_letters, labels

    lines = reading_lines(trace)
    if not lines:
        raise OptionError("There is nothing to draw: the trace has no words.")
    if len(lines) > MAX_WORDS:
        raise OptionError(f"A reading is drawn up to {MAX_WORDS} words; got {len(lines)}. Use style='heat_map'.")
    check_letters(lines[-1].words)
    words = labels(lines[-1].words)
    starts = np.concatenate([[0], np.cumsum([len(word) + 1 for word in words])])
    margin = 6.0 if lines[0].surprisal is not None else 1.0
    top = 0.4 if title else 0.1
    size = (margin + float(starts[-1])) * _INCHES_PER_LETTER + 0.1, len(lines) * _INCHES_PER_LINE + top + 0.1
    drawn = InlineFigure(figsize=size)
    axes = drawn.add_axes((0, 0.1 / size[1], 1, len(lines) * _INCHES_PER_LINE / size[1]))
    axes.set(xlim=(0, size[0] / _INCHES_PER_LETTER), ylim=(len(lines), 0))
    axes.set_axis_off()
    style: dict[str, Any] = {"va": "center", "family": "monospace", "fontsize": 9, "parse_math": False}
    for line in lines:
        y = line.current + 0.5
        if line.surprisal is not None:
            axes.text(margin - 1.5, y, f"{line.surprisal:.1f}", ha="right", color="0.5", **{**style, "fontsize": 7})
        for index in range(len(line.words)):
            x, letters = margin + starts[index], len(words[index])
            ground = _ground(line, index)
            if ground is not None:
                box = Rectangle((x - 0.35, y - 0.42), letters + 0.7, 0.84, color=fractions(ground), linewidth=0)
                axes.add_patch(box)
            ink = _RED if index == line.current else _INK if ground is None else ink_on(ground)
            weight = "bold" if index == line.current else "normal"
            axes.text(x, y, words[index], ha="left", color=fractions(ink), fontweight=weight, **style)
    legend = "Red: the current word. Shade: how much it attends to each other word."
    if lines[0].surprisal is not None:
        legend += " Number: its surprisal in bits."
    add_title(drawn, title, fontsize=11, y=1 - 0.1 / size[1])
    add_legend(drawn, legend)
    return drawn


def _terminal_word(line: Line, index: int, word: str, colour: bool) -> Text:
    ground = _ground(line, index)
    if index == line.current:
        return Text(word, style=f"bold {rgb(_RED)}") if colour else Text(f"[{word}]")
    if ground is None:
        return Text(word)
    return Text(word, style=inked(ground)) if colour else Text(f"{word}({100 * line.weights[index]:.0f})")


def _ground(line: Line, index: int) -> Colour | None:
    """The colour behind a word; none behind the current word, and behind one that is hardly attended to."""
    shade = line.shades[index]
    return None if index == line.current or shade < _MIN_SHARE else blend(_LIGHT, DARK, shade)


def _is_one_sentence(trace: Trace) -> bool:
    return not trace.maps or trace.main.rows == trace.main.columns
