"""A caption word by word over its image (Xu et al. 2015, figures 2 and 5): as a figure, and as an animation."""

import io
import math
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import UInt8
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image

from regard.errors import OptionError
from regard.trace import Trace
from regard.viewing.figures import Animation, InlineFigure, add_title, check_drawable
from regard.viewing.shading import Pixels, attended_cell, attention_field, check_overlay, image_pixels, overlaid
from regard.viewing.words import printable, right_to_left, shortened

_INK, _QUIET, _GATE, _CHOICE = "#1c1c1c", "#6a6a6a", "#0072B2", "#ffb000"
# Inches: the longer side of an image, the line of the word above it, the bar of the gate below, between the tiles.
_TILE, _WORD, _BAR, _SPACE = 1.5, 0.3, 0.24, 0.14
# Inches of a letter of a word, of the probability beside it, and of a line and a letter of the small print.
_LETTER, _NUMBER, _PRINT_LINE, _PRINT_LETTER = 0.095, 0.46, 0.16, 0.057
_PIXELS = 320
_MAX_LETTERS = 16


def word_by_word(
    trace: Trace,
    *,
    cells: bool = False,
    overlay: str = "light",
    columns: int = 7,
    title: str | None = None,
) -> InlineFigure:
    """The image, and then for each word where it attends: a smooth overlay, or with `cells` the weights as they are.

    `overlay` is "light" or "colour" (see `shading.overlaid`), relative to the strongest cell of each word. Beside a
    word stands its probability and below it a bar with its gate, where the trace has them; the cell that hard attention
    chose is framed. Small print in the figure explains what it shows.
    """
    if columns < 1:
        raise OptionError(f"A figure has at least one column; got columns={columns}.")
    pixels = image_pixels(trace, _PIXELS)
    check_drawable(trace)
    gates = trace.values("gate")
    high, wide = (_TILE * side / _PIXELS for side in pixels.shape[:2])
    columns = min(columns, len(trace.target) + 1)
    rows = math.ceil((len(trace.target) + 1) / columns)
    # The words of a tall image may be wider than it is.
    letters = max((len(shortened(word, _MAX_LETTERS)) for word in trace.target), default=0)
    word_width = letters * _LETTER + (0 if trace.values("log_prob") is None else _NUMBER)
    step_x, step_y = max(wide, word_width) + _SPACE, high + _WORD + (_BAR if gates is not None else 0) + 0.4 * _SPACE
    width = columns * step_x + _SPACE
    small_print = _small_print(trace, overlay, cells=cells, width=width)
    top, bottom = 0.42 if title else 0.06, 0.12 + _PRINT_LINE * len(small_print)
    size = width, rows * step_y + top + bottom
    figure = InlineFigure(figsize=size)
    for place in range(len(trace.target) + 1):
        row, column = divmod(place, columns)
        if right_to_left(trace.target):
            column = columns - 1 - column
        left, above = _SPACE + column * step_x, size[1] - top - row * step_y - _WORD - high
        axes = figure.add_axes((left / size[0], above / size[1], wide / size[0], high / size[1]))
        word = place - 1 if place else None
        _draw_tile(axes, trace, word, pixels, cells=cells, overlay=overlay)
        if word is not None:
            _name_tile(axes, trace, word)
        if word is not None and gates is not None:
            length = max(wide, min(1.2, step_x - _SPACE))
            bar = figure.add_axes((left / size[0], (above - 0.17) / size[1], length / size[0], 0.09 / size[1]))
            _draw_gate(bar, gates[word])
    figure.text(
        _SPACE / size[0], 0.05 / size[1], "\n".join(small_print), fontsize=7.5, color=_QUIET, va="bottom",
        parse_math=False, linespacing=1.25,
    )  # fmt: skip
    add_title(figure, title, y=1 - 0.1 / size[1])
    return figure


def animation(
    trace: Trace, *, cells: bool = False, overlay: str = "light", seconds: float = 0.8, side: int = 320
) -> Animation:
    """An animated GIF: the image, then each word in turn for `seconds`, with the caption below.

    `side` is the longer side of the image in pixels; `cells` and `overlay` are as in `word_by_word`.
    """
    if not 0 < seconds <= 60 or not 64 <= side <= 2000:
        raise OptionError(
            f"An animation shows each word for up to 60 seconds, at 64 to 2000 pixels; got {seconds=}, {side=}."
        )
    check_overlay(overlay)
    pixels = image_pixels(trace, side)
    check_drawable(trace)
    words = (None, *range(len(trace.target)))
    frames = [Image.fromarray(_frame(trace, word, pixels, cells=cells, overlay=overlay)) for word in words]
    frames = [frame.quantize(255, dither=Image.Dither.NONE) for frame in frames]
    times = [round(1000 * seconds)] * (len(frames) - 1) + [round(2500 * seconds)]
    stream = io.BytesIO()
    frames[0].save(stream, "gif", save_all=True, append_images=frames[1:], duration=times, loop=0)
    return Animation(stream.getvalue(), len(frames))


def small_print(trace: Trace, overlay: str, *, cells: bool) -> str:
    """What the light, the numbers and the bars of a caption's figure mean."""
    shown = {"light": "Bright: attended to", "colour": "Colour: attention, from purple (weak) to yellow (strong)"}
    chances = " (the probability of each choice)" if trace.values("choice") is not None else ""
    parts = [f"{shown[check_overlay(overlay)]}{chances}, relative to the strongest cell of each word"]
    parts[0] += "." if cells else "; smoothed between cells."
    if trace.values("choice") is not None:
        parts.append("Orange: the cell that hard attention chose.")
    if trace.values("log_prob") is not None:
        parts.append("Number beside a word: its probability under the model.")
    if trace.values("gate") is not None:
        parts.append("Bar β: gate on the image, from 0 (the word ignores what was attended to) to 1 (uses it in full).")
    return " ".join(parts)


def _small_print(trace: Trace, overlay: str, *, cells: bool, width: float) -> list[str]:
    return textwrap.wrap(small_print(trace, overlay, cells=cells), max(20, int((width - 2 * _SPACE) / _PRINT_LETTER)))


def _draw_tile(axes: Axes, trace: Trace, word: int | None, pixels: Pixels, *, cells: bool, overlay: str) -> None:
    """The image as it is, or under the attention of a word."""
    axes.set_axis_off()
    size = pixels.shape[:2]
    if word is None:
        axes.imshow(pixels, interpolation="none")
        return
    axes.imshow(overlaid(pixels, attention_field(trace, word, size, cells=cells), overlay), interpolation="none")
    if trace.values("choice") is not None:
        left, top, wide, high = attended_cell(trace, word, size)
        frame = Rectangle((left - 0.5, top - 0.5), wide, high, fill=False, edgecolor=_CHOICE, linewidth=1.8)
        axes.add_patch(frame)


def _name_tile(axes: Axes, trace: Trace, word: int) -> None:
    log_probs = trace.values("log_prob")
    label = axes.annotate(
        shortened(trace.target[word], _MAX_LETTERS), (0, 1), xytext=(0, 4), xycoords="axes fraction",
        textcoords="offset points", fontsize=11, color=_INK, fontweight="bold", parse_math=False,
        annotation_clip=False,
    )  # fmt: skip
    if log_probs is not None:
        axes.annotate(
            f" ({math.exp(min(0.0, log_probs[word])):.2f})", (1, 0), xytext=(0, 1.5), xycoords=label,
            textcoords="offset points", fontsize=8.5, color=_QUIET, annotation_clip=False,
        )  # fmt: skip


def _draw_gate(axes: Axes, gate: float | int, name: str = "β") -> None:
    """A bar of how much of the attended image is let in, from none to all."""
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set_axis_off()
    length = 0.66
    axes.add_patch(Rectangle((0, 0), length, 1, facecolor="#e4e4e4"))
    axes.add_patch(Rectangle((0, 0), length * min(1.0, max(0.0, gate)), 1, facecolor=_GATE))
    axes.text(1, 0.45, f"{name} {gate:.2f}", ha="right", va="center", fontsize=8, color=_QUIET, clip_on=False)


def _frame(trace: Trace, word: int | None, pixels: Pixels, *, cells: bool, overlay: str) -> UInt8[np.ndarray, "_ _ 3"]:
    """The image under the attention of a word, above the caption."""
    dots = 100
    gates = trace.values("gate")
    high, wide = pixels.shape[:2]
    width = max(wide, 240)
    lines = _wrapped(trace.target, max(18, width // 8))
    below = 18 * len(lines) + 14 + (16 if gates is not None else 0)
    figure = Figure(figsize=(width / dots, (high + below) / dots), dpi=dots)
    canvas: Any = FigureCanvasAgg(figure)
    axes = figure.add_axes(((width - wide) / 2 / width, below / (high + below), wide / width, high / (high + below)))
    _draw_tile(axes, trace, word, pixels, cells=cells, overlay=overlay)
    text = figure.add_axes((0, 0, 1, below / (high + below)))
    text.set(xlim=(0, width), ylim=(0, below))
    text.set_axis_off()
    backwards = right_to_left(trace.target)
    for number, line in enumerate(lines):
        pen, y = (width - 8 if backwards else 8), below - 10 - 18 * number
        for place in line:
            now = place == word
            drawn = text.text(
                pen, y, printable(trace.target[place]), fontsize=9.5, va="center", ha="right" if backwards else "left",
                fontweight="bold" if now else "normal", parse_math=False,
                color=_INK if now else "#8a8a8a" if word is None or place > word else "#5a5a5a",
            )  # fmt: skip
            room = drawn.get_window_extent(canvas.get_renderer()).width + 5
            pen += -room if backwards else room
    if word is not None and gates is not None:
        bar = figure.add_axes((8 / width, 6 / (high + below), min(200, width - 16) / width, 9 / (high + below)))
        _draw_gate(bar, gates[word], "gate β")
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()


def _wrapped(words: Sequence[str], letters: int) -> list[list[int]]:
    """The numbers of the words, line by line, with at most so many letters in each."""
    lines: list[list[int]] = [[]]
    used = 0
    for place, word in enumerate(words):
        if lines[-1] and used + len(word) > letters:
            lines.append([])
            used = 0
        lines[-1].append(place)
        used += len(word) + 1
    return lines
