"""A caption word by word over its image (Xu et al. 2015, figures 2 and 5): a figure, an animation, the terminal."""

import io
import math
import os
import textwrap
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image, ImageFilter
from rich.cells import cell_len
from rich.console import RenderableType
from rich.text import Text

from regard.arguments import checked
from regard.config import PositiveInt
from regard.data.images import open_image
from regard.errors import OptionError
from regard.trace import Trace
from regard.trace.data_uri import from_data_uri
from regard.trace.elements import right_to_left
from regard.viewing.scale import rgb, shade_of
from regard.viewing.tokens import isolated, printable, shortened
from regard.viewing.view import View, check_options, check_suffix, mean_note, with_mean_note

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from regard.viewing.figures import Animation, InlineFigure

MAX_WORDS = 100
"""Maximum number of words of a caption that is drawn word by word."""
# The spread of a cell in a smooth overlay, in cells.
_SPREAD = 0.55
# The brightness that is left where there is no attention.
_DIMMED = 0.25
# Where an image is darker than this on average, what is attended to is brightened to it, so that attention can be seen
# in dark photographs and in the dark parts of others. Brighter parts stay as they are.
_MIN_BRIGHTNESS = 0.45
# The size of such a part, as a share of the longer side.
_PART = 1 / 12
_BLANK = 205
# From weak to strong attention, over dark and over bright images.
_COLOUR_STOPS = np.array([(126, 3, 168), (225, 100, 98), (240, 249, 33)], dtype=np.float64)
_COLOUR_OPACITY = 0.75
_INK, _QUIET, _GATE, _CHOICE = "#1c1c1c", "#6a6a6a", "#0072B2", "#ffb000"
_TERMINAL_GATE, _TERMINAL_CHOICE = "rgb(0,114,178)", (255, 176, 0)
# Inches: the longer side of an image, the line of the word above it, the bar of the gate below, between the tiles.
_TILE, _WORD, _BAR, _SPACE = 1.5, 0.3, 0.24, 0.14
# Inches of a letter of a word, of the probability beside it, and of a line and a letter of the small print.
_LETTER, _NUMBER, _PRINT_LINE, _PRINT_LETTER = 0.095, 0.46, 0.16, 0.057
_PIXELS = 320
_MAX_LETTERS = 16
# Characters of a tile in the terminal, and of the narrowest tile with room for a word.
_SIDE, _MIN_WIDTH = 18, 12

Pixels = UInt8[np.ndarray, "h w 3"]
Field = Float[np.ndarray, "h w"]


class ImageView(View):
    """A caption, word by word over its image."""

    ELEMENTS = ("image", "matrix")
    SUFFIXES = (*View.SUFFIXES, ".gif")

    @checked
    def figure(  # type: ignore[override]
        self,
        *,
        layer: int | None = None,
        head: int | None = None,
        name: str | None = None,
        cells: bool = False,
        overlay: str = "light",
        columns: PositiveInt = 7,
        title: str | None = None,
    ) -> "InlineFigure":
        """The image, and then for each word where it attends: smoothly, or with `cells` the weights as they are.

        `overlay` is "light" or "colour" (see `overlaid`), relative to the strongest cell of each word. Beside a word
        stands its probability and below it a bar with its gate, where the trace has them; the cell that hard attention
        chose is framed. Small print in the figure explains what it shows. The title is the caption, unless given.
        """
        from regard.viewing.figures import InlineFigure, add_note, add_title, check_drawable

        trace = self._select(layer=layer, head=head, name=name)
        pixels = image_pixels(trace, _PIXELS)
        check_drawable(trace)
        if title is None:
            title = trace.axis(trace.main.rows).text
        gates = trace.values("gate")
        high, wide = (_TILE * side / _PIXELS for side in pixels.shape[:2])
        columns = min(columns, len(trace.target) + 1)
        rows = math.ceil((len(trace.target) + 1) / columns)
        # The words of a tall image may be wider than it is.
        letters = max((len(shortened(word, _MAX_LETTERS)) for word in trace.target), default=0)
        word_width = letters * _LETTER + (0 if trace.values("log_prob") is None else _NUMBER)
        step_x = max(wide, word_width) + _SPACE
        step_y = high + _WORD + (_BAR if gates is not None else 0) + 0.4 * _SPACE
        width = columns * step_x + _SPACE
        explained = explanation(trace, overlay, cells=cells)
        small_print = textwrap.wrap(explained, max(20, int((width - 2 * _SPACE) / _PRINT_LETTER)))
        top, bottom = 0.42 if title else 0.06, 0.12 + _PRINT_LINE * len(small_print)
        size = width, rows * step_y + top + bottom
        figure = InlineFigure(figsize=size)
        for index in range(len(trace.target) + 1):
            row, column = divmod(index, columns)
            if right_to_left(trace.target):
                column = columns - 1 - column
            left, above = _SPACE + column * step_x, size[1] - top - row * step_y - _WORD - high
            axes = figure.add_axes((left / size[0], above / size[1], wide / size[0], high / size[1]))
            word = index - 1 if index else None
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
        return add_note(figure, mean_note(trace))

    def animation(
        self,
        *,
        layer: int | None = None,
        head: int | None = None,
        name: str | None = None,
        cells: bool = False,
        overlay: str = "light",
        seconds: float = 0.8,
        side: int = 320,
    ) -> "Animation":
        """An animated GIF: the image, then each word in turn for `seconds`, with the caption below.

        `side` is the longer side of the image in pixels; `cells` and `overlay` are as in `figure`.
        """
        from regard.viewing.figures import Animation, check_drawable

        trace = self._select(layer=layer, head=head, name=name)
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

    @checked
    def save(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write the figure or the page, or the animation to a GIF file, by the suffix of the path.

        `options` are those of `figure`; for a GIF those of `animation`.
        """
        if check_suffix(path, self.SUFFIXES) != ".gif":
            return super().save(path, **options)
        from regard.viewing.figures import save

        check_options(self.options(path), options)
        return save(self.animation(**options), path)

    def options(self, path: str | os.PathLike[str] | None = None) -> tuple[str, ...]:
        """The options of `figure`, for a GIF those of `animation`, for the terminal its own."""
        if path is None or Path(path).suffix.lower() != ".gif":
            return super().options(path)
        return tuple(signature(self.animation).parameters)

    @checked
    def terminal(  # type: ignore[override]
        self,
        *,
        width: int = 80,
        colour: bool = True,
        layer: int | None = None,
        head: int | None = None,
        name: str | None = None,
        cells: bool = False,
        overlay: str = "light",
        side: int | None = None,
    ) -> RenderableType:
        """The image, and then for each word where it attends, `side` characters wide, as many side by side as fit.

        Above each tile stands the word with its probability, below it its gate, where the trace has them; the cell that
        hard attention chose is orange. Without `colour`, for a terminal or a file that has none, the weights are shades
        from blank to full, two characters per cell, and the chosen cell is "[]".
        """
        trace = self._select(layer=layer, head=head, name=name)
        side = min(_SIDE, width) if side is None else side
        if not 6 <= side <= width:
            raise OptionError(f"An image is 6 to {width} characters wide, the width of the terminal; got side={side}.")
        words = range(len(trace.target))
        columns = grid_of(trace)[1]
        if colour:
            pixels = image_pixels(trace, side)
            pixels = pixels[: len(pixels) // 2 * 2] if len(pixels) > 1 else np.repeat(pixels, 2, 0)
            shown = (_attended(trace, word, pixels, cells, overlay) for word in words)
            tiles = [half_blocks(each) for each in (pixels, *shown)]
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
        return with_mean_note(Text("\n").join([*lines[:-1], *_legend(trace)]), trace)


def image_pixels(trace: Trace, longest: int) -> Pixels:
    """The image of a trace, resized so that its longer side has `longest` pixels; plain grey if it has none."""
    image = opened_image(trace, blank=grid_of(trace)[::-1])
    scale = longest / max(image.size)
    size = max(1, round(image.width * scale)), max(1, round(image.height * scale))
    return np.array(image.resize(size, Image.Resampling.BICUBIC), dtype=np.uint8)


def opened_image(trace: Trace, *, blank: tuple[int, int]) -> Image.Image:
    """The image of a trace, or plain grey of a (width, height) if it has none."""
    if trace.image is None:
        return Image.new("RGB", blank, (_BLANK,) * 3)
    return open_image(from_data_uri(trace.image), name="The image of this trace")


def grid_of(trace: Trace) -> tuple[int, int]:
    """Rows and columns of the cells that the main map attends to; other traces are refused."""
    axis = trace.axis(trace.main.columns)
    if axis.grid is None or not trace.target:
        raise OptionError(
            f"Only attention to the cells of an image can be laid over it; this trace of kind {trace.kind!r} has "
            f"{len(trace.target)} words that attend to {axis.kind}. Trace.from_image builds one."
        )
    if len(trace.target) > MAX_WORDS:
        raise OptionError(f"A caption is drawn word by word up to {MAX_WORDS} words; got {len(trace.target)}.")
    return axis.grid


def attention_field(trace: Trace, word: int, size: tuple[int, int], *, cells: bool = False) -> Field:
    """How much each pixel of (height, width) is attended to for a word, from 0 to 1 at its strongest cell.

    With `cells` each cell is even, as the weights are. Otherwise the overlay is smooth: a Gaussian around the centre
    of each cell, which is easier to look at and holds no more information.
    """
    rows, columns = grid_of(trace)
    weights = trace.weights[word].astype(np.float64).reshape(rows, columns).clip(0)
    down, across = (_spread(count, length, cells) for count, length in zip((rows, columns), size, strict=True))
    field = down @ weights @ across.T
    return np.asarray(field / max(float(field.max()), 1e-12))


def overlaid(pixels: Pixels, field: Field, overlay: str = "light") -> Pixels:
    """The image under an attention field.

    "light" keeps what is attended to, brightened where it is dark, and dims the rest. "colour" lays colours from purple
    (weak) to yellow (strong) over the image in grey.
    """
    return OVERLAYS[check_overlay(overlay)](pixels, field[:, :, None])


def check_overlay(overlay: str) -> str:
    """The name of an overlay, if there is such a one."""
    if overlay not in OVERLAYS:
        raise OptionError(f"There is no overlay {overlay!r}; choose from {', '.join(OVERLAYS)}.")
    return overlay


def attended_cell(trace: Trace, word: int, size: tuple[int, int]) -> tuple[float, float, float, float]:
    """Left, top, width and height of the cell that hard attention chose; of soft attention, the strongest."""
    rows, columns = grid_of(trace)
    choices = trace.values("choice")
    cell = int(np.argmax(trace.weights[word]) if choices is None else choices[word])
    high, wide = size[0] / rows, size[1] / columns
    return cell % columns * wide, cell // columns * high, wide, high


def _light(pixels: Pixels, field: Float[np.ndarray, "h w 1"]) -> Pixels:
    grey = pixels.mean(-1, keepdims=True)
    blended = field * _brightened(pixels) + (1 - field) * _DIMMED * (0.7 * grey + 0.3 * pixels)
    return np.asarray(blended.round(), dtype=np.uint8)


def _brightened(pixels: Pixels) -> Float[np.ndarray, "h w 3"]:
    """The image with its dark parts brightened: by gamma, and what is black by a veil."""
    # A stronger gamma would show little but the noise of a black part.
    darkness = _blurred(pixels).clip(0.05, _MIN_BRIGHTNESS)
    brighter = (pixels / 255) ** (np.log(_MIN_BRIGHTNESS) / np.log(darkness))
    veil = (_MIN_BRIGHTNESS - _blurred(255 * brighter)).clip(0) * (darkness < _MIN_BRIGHTNESS)
    return np.asarray(255 * (brighter * (1 - veil) + veil))


def _blurred(pixels: np.ndarray) -> Float[np.ndarray, "h w 1"]:
    """The brightness around each pixel, from 0 to 1."""
    grey = Image.fromarray(pixels.mean(-1).round().astype(np.uint8))
    blurred = grey.filter(ImageFilter.GaussianBlur(max(1.0, _PART * max(grey.size))))
    return np.asarray(blurred, dtype=np.float64)[:, :, None] / 255


def _coloured(pixels: Pixels, field: Float[np.ndarray, "h w 1"]) -> Pixels:
    grey = 0.75 * pixels.mean(-1, keepdims=True)
    stops = np.linspace(0, 1, len(_COLOUR_STOPS))
    colours = np.stack([np.interp(field[:, :, 0], stops, channel) for channel in _COLOUR_STOPS.T], axis=-1)
    opacity = _COLOUR_OPACITY * field
    return np.asarray(((1 - opacity) * grey + opacity * colours).round(), dtype=np.uint8)


OVERLAYS: dict[str, Callable[[Pixels, Float[np.ndarray, "h w 1"]], Pixels]] = {"light": _light, "colour": _coloured}
"""Ways to show attention over an image."""


def _spread(cells: int, length: int, sharp: bool) -> Float[np.ndarray, "length cells"]:
    """How much of each cell falls on each pixel, along one side."""
    centres = (np.arange(length) + 0.5) * cells / length
    if sharp:
        return np.asarray(centres.astype(int)[:, None] == np.arange(cells), dtype=np.float64)
    distance = centres[:, None] - (np.arange(cells) + 0.5)
    return np.asarray(np.exp(-(distance**2) / (2 * _SPREAD**2)))


def explanation(trace: Trace, overlay: str, *, cells: bool) -> str:
    """What the light, the numbers and the bars of a caption's figure mean."""
    shown = {"light": "Bright: attended to", "colour": "Colour: attention, from purple (weak) to yellow (strong)"}
    note = " (the probability of each choice)" if trace.values("choice") is not None else ""
    parts = [f"{shown[check_overlay(overlay)]}{note}, relative to the strongest cell of each word"]
    parts[0] += "." if cells else "; smoothed between cells."
    if trace.values("choice") is not None:
        parts.append("Orange: the cell that hard attention chose.")
    if trace.values("log_prob") is not None:
        parts.append("Number beside a word: its probability under the model.")
    if trace.values("gate") is not None:
        parts.append("Bar β: gate on the image, from 0 (the word ignores what was attended to) to 1 (uses it in full).")
    return " ".join(parts)


def _draw_tile(axes: "Axes", trace: Trace, word: int | None, pixels: Pixels, *, cells: bool, overlay: str) -> None:
    """The image as it is, or under the attention of a word."""
    from matplotlib.patches import Rectangle

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


def _name_tile(axes: "Axes", trace: Trace, word: int) -> None:
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


def _draw_gate(axes: "Axes", gate: float | int, name: str = "β") -> None:
    """A bar of how much of the attended image is let in, from none to all."""
    from matplotlib.patches import Rectangle

    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set_axis_off()
    length = 0.66
    axes.add_patch(Rectangle((0, 0), length, 1, facecolor="#e4e4e4"))
    axes.add_patch(Rectangle((0, 0), length * min(1.0, max(0.0, gate)), 1, facecolor=_GATE))
    axes.text(1, 0.45, f"{name} {gate:.2f}", ha="right", va="center", fontsize=8, color=_QUIET, clip_on=False)


def _frame(trace: Trace, word: int | None, pixels: Pixels, *, cells: bool, overlay: str) -> UInt8[np.ndarray, "_ _ 3"]:
    """The image under the attention of a word, above the caption."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

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
        for index in line:
            now = index == word
            drawn = text.text(
                pen, y, printable(trace.target[index]), fontsize=9.5, va="center", ha="right" if backwards else "left",
                fontweight="bold" if now else "normal", parse_math=False,
                color=_INK if now else "#8a8a8a" if word is None or index > word else "#5a5a5a",
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
    for index, word in enumerate(words):
        if lines[-1] and used + len(word) > letters:
            lines.append([])
            used = 0
        lines[-1].append(index)
        used += len(word) + 1
    return lines


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
        part[:] = (part.astype(float) + np.array(_TERMINAL_CHOICE)) / 2
    return shown


def half_blocks(
    pixels: Pixels, *, colour: bool = True, marks: Mapping[tuple[int, int], tuple[str, str]] | None = None
) -> list[Text]:
    """A line for each two rows of pixels: the upper is the colour of the character, the lower its background.

    Without `colour`, a character shows their brightness. `marks` are other characters, with their styles, by their row
    and column.
    """
    lines = []
    for row, pairs in enumerate(zip(pixels[::2].tolist(), pixels[1::2].tolist(), strict=True)):
        line = Text()
        for column, (above, below) in enumerate(zip(*pairs, strict=True)):
            block = ("▀", f"{rgb(above)} on {rgb(below)}") if colour else (shade_of(sum(above + below) / (6 * 255)), "")
            line.append(*(marks or {}).get((row, column), block))
        lines.append(line)
    return lines


def _shades(trace: Trace, word: int) -> list[Text]:
    rows, columns = grid_of(trace)
    weights = trace.weights[word].reshape(rows, columns).clip(0)
    shares = weights / max(float(weights.max()), 1e-12)
    padding = " " * max(0, _MIN_WIDTH - 2 * columns)
    lines = [[2 * shade_of(share) for share in row] for row in shares.tolist()]
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
    return Text.assemble(("━" * full, _TERMINAL_GATE), ("─" * (length - full), "dim"), (number[: room - length], "dim"))
