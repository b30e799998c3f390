"""A caption word by word over its picture (Xu et al. 2015, figures 2 and 5): as a strip, and as a film."""

import io
import math
import os
from collections.abc import Sequence
from pathlib import Path
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
from regard.viewing.glow import chosen, light, lit, pixels_of
from regard.viewing.words import right_to_left, shortened

_INK, _QUIET, _GATE, _CHOICE = "#1c1c1c", "#8a8a8a", "#0072B2", "#ffb000"
# Inches: the longer side of a picture, the line of the word above it, that of the gate below, and between the tiles.
_TILE, _WORD, _BAR, _SPACE = 1.5, 0.3, 0.24, 0.14
# About how wide a letter of a word is, and a probability beside it.
_LETTER, _NUMBER = 0.095, 0.46
_PIXELS = 320
_LONGEST_WORD = 16


def strip(trace: Trace, *, cells: bool = False, columns: int = 7, title: str | None = None) -> Figure:
    """The picture, and then for each word where it looked: soft light, or with `cells` the weights as they are.

    Beside a word stands its probability, where the trace has scores; below, a bar with its gate beta. The cell that
    hard attention chose is framed, and the light shows its chances. Light is relative to the strongest cell of a word.
    """
    if columns < 1:
        raise OptionError(f"A strip has at least one column; got columns={columns}.")
    pixels = pixels_of(trace, _PIXELS)
    high, wide = (_TILE * side / _PIXELS for side in pixels.shape[:2])
    columns = min(columns, len(trace.target) + 1)
    rows = math.ceil((len(trace.target) + 1) / columns)
    # Under the words of a tall picture there is room to the right.
    longest = max((len(shortened(word, _LONGEST_WORD)) for word in trace.target), default=0)
    words = longest * _LETTER + (0 if trace.scores is None else _NUMBER)
    step_x, step_y = max(wide, words) + _SPACE, high + _WORD + (_BAR if trace.gates is not None else 0) + 0.4 * _SPACE
    top = 0.42 if title else 0.06
    size = columns * step_x + _SPACE, rows * step_y + top + 0.06
    figure = Figure(figsize=size)
    for place in range(len(trace.target) + 1):
        row, column = divmod(place, columns)
        if right_to_left(trace.target):
            column = columns - 1 - column
        left, above = _SPACE + column * step_x, size[1] - top - row * step_y - _WORD - high
        axes = figure.add_axes((left / size[0], above / size[1], wide / size[0], high / size[1]))
        _tile(axes, trace, place - 1 if place else None, pixels, cells=cells)
        if place and trace.gates is not None:
            length = max(wide, min(1.2, step_x - _SPACE))
            bar = figure.add_axes((left / size[0], (above - 0.17) / size[1], length / size[0], 0.09 / size[1]))
            _bar(bar, trace.gates[place - 1])
    if title:
        figure.suptitle(title, fontsize=12, fontweight="bold", y=1 - 0.1 / size[1], va="top", parse_math=False)
    return figure


def save_film(
    trace: Trace, path: str | os.PathLike[str], *, cells: bool = False, seconds: float = 0.8, side: int = 320
) -> Path:
    """An animated GIF: the picture, then each word in turn, with the caption below; written, then renamed."""
    path = Path(path)
    if path.suffix.lower() != ".gif":
        raise OptionError(f"A film is saved as .gif; got {path.name!r}.")
    if seconds <= 0 or side < 64:
        raise OptionError(f"A film shows each word for some time, at 64 pixels or more; got {seconds=}, {side=}.")
    pixels = pixels_of(trace, side)
    frames = [Image.fromarray(_frame(trace, word, pixels, cells=cells)) for word in (None, *range(len(trace.target)))]
    frames = [frame.quantize(255, dither=Image.Dither.NONE) for frame in frames]
    times = [round(1000 * seconds)] * (len(frames) - 1) + [round(2500 * seconds)]
    stream = io.BytesIO()
    frames[0].save(stream, "gif", save_all=True, append_images=frames[1:], duration=times, loop=0)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.tmp")
    draft.write_bytes(stream.getvalue())
    draft.replace(path)
    return path


def _tile(
    axes: Axes, trace: Trace, word: int | None, pixels: UInt8[np.ndarray, "h w 3"], *, cells: bool, named: bool = True
) -> None:
    """The picture as it is, or lit as for a word."""
    axes.set_axis_off()
    size = pixels.shape[:2]
    if word is None:
        axes.imshow(pixels, interpolation="none")
        return
    axes.imshow(lit(pixels, light(trace, word, size, cells=cells)), interpolation="none")
    if trace.choices is not None:
        left, top, wide, high = chosen(trace, word, size)
        frame = Rectangle((left - 0.5, top - 0.5), wide, high, fill=False, edgecolor=_CHOICE, linewidth=1.8)
        axes.add_patch(frame)
    if named:
        _name(axes, trace, word)


def _name(axes: Axes, trace: Trace, word: int) -> None:
    said = shortened(trace.target[word], _LONGEST_WORD)
    number = "" if trace.scores is None else f" ({math.exp(trace.scores[word]):.2f})"
    label = axes.annotate(
        said, (0, 1), xytext=(0, 4), xycoords="axes fraction", textcoords="offset points", fontsize=11, color=_INK,
        fontweight="bold", parse_math=False, annotation_clip=False,
    )  # fmt: skip
    if number:
        axes.annotate(
            number, (1, 0), xytext=(0, 1.5), xycoords=label, textcoords="offset points", fontsize=8.5, color=_QUIET,
            annotation_clip=False,
        )  # fmt: skip


def _bar(axes: Axes, gate: float) -> None:
    """How much was let in, from none to all."""
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set_axis_off()
    length = 0.66
    axes.add_patch(Rectangle((0, 0), length, 1, facecolor="#e4e4e4"))
    axes.add_patch(Rectangle((0, 0), length * min(1.0, max(0.0, gate)), 1, facecolor=_GATE))
    axes.text(1, 0.45, f"β {gate:.2f}", ha="right", va="center", fontsize=8, color=_QUIET, clip_on=False)


def _frame(
    trace: Trace, word: int | None, pixels: UInt8[np.ndarray, "h w 3"], *, cells: bool
) -> UInt8[np.ndarray, "_ _ 3"]:
    """The picture lit as for a word, above the caption so far."""
    dots = 100
    high, wide = pixels.shape[:2]
    width = max(wide, 240)
    lines = _wrapped(trace.target, max(18, width // 8))
    below = 18 * len(lines) + 14 + (16 if trace.gates is not None else 0)
    figure = Figure(figsize=(width / dots, (high + below) / dots), dpi=dots)
    canvas: Any = FigureCanvasAgg(figure)
    axes = figure.add_axes(((width - wide) / 2 / width, below / (high + below), wide / width, high / (high + below)))
    _tile(axes, trace, word, pixels, cells=cells, named=False)
    text = figure.add_axes((0, 0, 1, below / (high + below)))
    text.set(xlim=(0, width), ylim=(0, below))
    text.set_axis_off()
    backwards = right_to_left(trace.target)
    for number, line in enumerate(lines):
        pen, y = (width - 8 if backwards else 8), below - 10 - 18 * number
        for place in line:
            now = place == word
            said = text.text(
                pen, y, trace.target[place], fontsize=9.5, va="center", ha="right" if backwards else "left",
                fontweight="bold" if now else "normal", parse_math=False,
                color=_INK if now else _QUIET if word is None or place > word else "#5a5a5a",
            )  # fmt: skip
            room = said.get_window_extent(canvas.get_renderer()).width + 5
            pen += -room if backwards else room
    if word is not None and trace.gates is not None:
        bar = figure.add_axes((8 / width, 6 / (high + below), min(150, width - 16) / width, 9 / (high + below)))
        _bar(bar, trace.gates[word])
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()


def _wrapped(words: Sequence[str], room: int) -> list[list[int]]:
    """The numbers of the words, line by line, so many letters in each."""
    lines: list[list[int]] = [[]]
    used = 0
    for place, word in enumerate(words):
        if lines[-1] and used + len(word) > room:
            lines.append([])
            used = 0
        lines[-1].append(place)
        used += len(word) + 1
    return lines
