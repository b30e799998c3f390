"""Figures for notebooks and files: what all figures share, and saving them."""

import base64
import io
import os
import re
import textwrap
import threading
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import matplotlib
import numpy as np
from matplotlib import ft2font
from matplotlib.collections import Collection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Annotation, Text

from regard.arguments import checked
from regard.errors import OptionError, RegardError, counted
from regard.files import write_bytes
from regard.trace import Trace
from regard.trace.elements import right_to_left
from regard.viewing.tokens import printable, shortened
from regard.viewing.view import FIGURES

MAX_LETTERS = 28
"""Maximum number of letters of a label."""
NOTE_INCHES = 0.22
_NOTE_FONTSIZE = 7
_LEGEND_FONTSIZE = 7.5
_POINTS_PER_INCH = 72
_LETTER_WIDTH = 0.64
"""Width of a letter of matplotlib's font, on average, as a fraction of its size."""
DPI = 150.0
"""Pixels of an inch, unless another number is asked for."""
_INCHES_PER_LETTER = 0.085
# The same figure gives the same bytes: ids from a fixed salt, no date. Text in SVG stays text, and PDF files embed
# their fonts as TrueType (Type 42), since publishers refuse Type 3.
_SETTINGS: dict[Any, Any] = {"svg.hashsalt": "regard", "svg.fonttype": "none", "pdf.fonttype": 42}
_METADATA: dict[str, dict[str, str | None]] = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
_MISSING = re.compile(r"Glyph (\d+) .* missing from font")
Drawn = TypeVar("Drawn", bound=Figure)
# matplotlib's settings are global: one figure is saved at a time.
_SETTINGS_LOCK = threading.Lock()


class InlineFigure(Figure):
    """A matplotlib figure that a notebook displays, without pyplot and without a display."""

    def _repr_png_(self) -> bytes:
        stream = io.BytesIO()
        self.savefig(stream, format="png", dpi=100)
        return stream.getvalue()


@dataclass(frozen=True, repr=False)
class Animation:
    """An animated GIF that a notebook displays; `save` writes it."""

    gif: bytes
    frames: int

    def _repr_html_(self) -> str:
        content = base64.b64encode(self.gif).decode()
        return f'<img src="data:image/gif;base64,{content}" alt="a caption word by word over its image">'

    def __repr__(self) -> str:
        return f"Animation({self.frames} frames, {len(self.gif):,} bytes)"


@checked
def save(figure: Figure | Animation, path: str | os.PathLike[str], *, dpi: float = DPI) -> Path:
    """Write a figure as PNG, SVG or PDF, or an animation as GIF, by the suffix of the path.

    The same figure always gives the same bytes, the text of an SVG stays text, and a PDF embeds its fonts as TrueType.
    `dpi` are the pixels of an inch: of a PNG, and of the images inside an SVG or a PDF.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    allowed = FIGURES if isinstance(figure, Figure) else (".gif",)
    if suffix not in allowed:
        kind = "A figure" if isinstance(figure, Figure) else "An animation"
        raise OptionError(f"{kind} is saved as {', '.join(allowed)}; got {path.name!r}.")
    if not isinstance(figure, Figure):
        return write_bytes(path, figure.gif)
    drawn = io.BytesIO()  # drawn in memory, so that a full disk is an error of the writing alone
    with _SETTINGS_LOCK, matplotlib.rc_context(_SETTINGS), _one_warning(path):
        try:
            figure.savefig(drawn, format=suffix[1:], dpi=dpi, metadata=_METADATA[suffix])
        except (RuntimeError, ValueError, OverflowError, MemoryError) as error:
            raise OptionError(
                f"{path} cannot be drawn: {error}. Choose another width, height, font size or dpi."
            ) from error
    return write_bytes(path, drawn.getvalue())


def resize(
    figure: Drawn, *, width: float | None = None, height: float | None = None, font_size: float | None = None
) -> Drawn:
    """Give a figure a width and a height in inches, and its labels a size in points; returns the figure.

    With one of the three the figure is scaled as a whole, texts and lines included. Heat maps and curves, whose parts
    make room for each other, take any of them together: texts then keep their size, or get that of `font_size`. In
    other figures the texts are part of the drawing, so that one number decides.
    """
    wide, high = figure.get_size_inches()
    labels = _label_size(figure)
    factors = [new / old for new, old in ((width, wide), (height, high), (font_size, labels)) if new is not None]
    if not factors:
        return figure
    if len(factors) == 1:
        figure.set_size_inches(factors[0] * wide, factors[0] * high)
        _scale(figure, factors[0])
        return figure
    if figure.get_layout_engine() is None:
        raise OptionError(
            "The texts of this figure are part of its drawing, which is scaled as a whole: give its width, its height "
            "or its font size, and not several of them."
        )
    across = width or (wide if height is None else wide * height / high)
    figure.set_size_inches(across, height or high * across / wide)
    if font_size is not None:
        for text in figure.findobj(Text):
            text.set_fontsize(float(text.get_fontsize()) * font_size / labels)
    _fit_numbers(figure)
    return figure


def _fit_numbers(figure: Figure) -> None:
    """Make the numbers of a heat map small enough for its cells."""
    figure.draw_without_rendering()
    for axes in figure.axes:
        cell = abs(axes.transData.transform((1, 0))[0] - axes.transData.transform((0, 0))[0])
        widest = max((text.get_window_extent().width for text in axes.texts), default=0.0)
        if axes.images and widest > 0.9 * cell:
            for text in axes.texts:
                text.set_fontsize(float(text.get_fontsize()) * 0.9 * cell / widest)


def _label_size(figure: Figure) -> float:
    """The size of most words of a figure, numbers aside, weighted by their letters."""
    letters: Counter[float] = Counter()
    for text in figure.findobj(Text):
        if text.get_visible():
            letters[float(text.get_fontsize())] += sum(map(str.isalpha, text.get_text()))
    return letters.most_common(1)[0][0] if letters else 10.0


def _scale(figure: Figure, factor: float) -> None:
    """Scale what a figure measures in points and not in inches: texts, lines, and distances from them."""
    for artist in figure.findobj():
        if isinstance(artist, Text):
            artist.set_fontsize(float(artist.get_fontsize()) * factor)
        if isinstance(artist, Annotation) and artist.anncoords == "offset points":
            across, up = artist.xyann
            artist.xyann = (factor * across, factor * up)
        if isinstance(artist, Line2D):
            artist.set_markersize(artist.get_markersize() * factor)
        if isinstance(artist, Line2D | Patch):
            artist.set_linewidth(artist.get_linewidth() * factor)
        if isinstance(artist, Collection):
            artist.set_linewidth([width * factor for width in np.atleast_1d(artist.get_linewidth())])


@contextmanager
def _one_warning(path: Path) -> Iterator[None]:
    """Replace matplotlib's warnings about each missing letter by one that says what to do."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    missing = {found[1] for each in caught if (found := _MISSING.match(str(each.message)))}
    for each in caught:
        if not _MISSING.match(str(each.message)):
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    if missing:
        letters = "".join(chr(int(number)) for number in sorted(missing, key=int)[:12])
        warnings.warn(
            f"matplotlib's fonts lack {counted(len(missing), 'letter')}, drawn as boxes in {path}: {letters}. The "
            "terminal and an .html file show them.",
            stacklevel=4,
        )


def label_inches(words: Sequence[str]) -> float:
    """Inches that the longest of the words needs as a label."""
    return 0.4 + _INCHES_PER_LETTER * min(MAX_LETTERS + 1, max(map(len, words), default=0))


def labels(words: Sequence[str]) -> list[str]:
    """The words, printable and cut to MAX_LETTERS."""
    return [shortened(word, MAX_LETTERS) for word in words]


def set_literal(texts: Iterable[Text]) -> None:
    """Show texts as they are, although matplotlib takes dollar signs for formulas."""
    for text in texts:
        text.set_parse_math(False)


def add_title(figure: Figure, title: str | None, *, fontsize: float | int = 12, y: float | None = None) -> None:
    """A title over the whole figure, if there is one, in as many lines as its width needs.

    `y` is the top of the title as a fraction of the height, for figures without a layout engine.
    """
    if not title:
        return
    lines = _wrapped(figure, printable(title), fontsize)
    place = {}
    if y is not None:
        margin = (1 - y) * figure.get_figheight()
        _make_room(figure, above=(len(lines) - 1) * _line_inches(fontsize))
        place["y"] = 1 - margin / figure.get_figheight()
    figure.suptitle("\n".join(lines), fontsize=fontsize, fontweight="bold", parse_math=False, **place)


def add_note(figure: Drawn, note: str | None) -> Drawn:
    """Write a note in small letters below the figure and its other notes, in as many lines as its width needs."""
    if note:
        above, lines = figure.get_supxlabel(), _wrapped(figure, printable(note), _NOTE_FONTSIZE)
        if figure.get_layout_engine() is None:
            first = _line_inches(_NOTE_FONTSIZE) if above else NOTE_INCHES
            _make_room(figure, below=first + (len(lines) - 1) * _line_inches(_NOTE_FONTSIZE))
        lines = [above, *lines] if above else lines
        figure.supxlabel("\n".join(lines), fontsize=_NOTE_FONTSIZE, color="0.35", parse_math=False)
    return figure


def add_legend(figure: Figure, legend: str) -> None:
    """Write what colours and numbers mean below a figure without a layout engine."""
    lines = _wrapped(figure, legend, _LEGEND_FONTSIZE)
    _make_room(figure, below=0.05 + len(lines) * _line_inches(_LEGEND_FONTSIZE))
    figure.text(
        0.1 / figure.get_figwidth(), 0.05 / figure.get_figheight(), "\n".join(lines), fontsize=_LEGEND_FONTSIZE,
        color="0.4", va="bottom", linespacing=1.25, parse_math=False,
    )  # fmt: skip


def _wrapped(figure: Figure, text: str, fontsize: float | int) -> list[str]:
    """The lines of a text that is to be no wider than the figure."""
    letters = int(figure.get_figwidth() * _POINTS_PER_INCH / (_LETTER_WIDTH * fontsize))
    return textwrap.wrap(text, max(letters, 1)) or [""]


def _line_inches(fontsize: float | int) -> float:
    return 1.25 * fontsize / _POINTS_PER_INCH


def _make_room(figure: Figure, *, above: float = 0.0, below: float = 0.0) -> None:
    """Make a figure taller by some inches, without changing the size of its contents."""
    height = figure.get_figheight()
    taller = height + above + below
    figure.set_figheight(taller)
    for axes in figure.axes:
        # The place that the axes were given, which an image with its own aspect may not fill.
        box = axes.get_position(original=True)
        axes.set_position((box.x0, (box.y0 * height + below) / taller, box.width, box.height * height / taller))
    for text in figure.texts:
        text.set_y((text.get_position()[1] * height + below) / taller)


def check_drawable(trace: Trace) -> None:
    """Refuse a trace without words, and right-to-left words if this matplotlib cannot draw them."""
    if not trace.source or not trace.target:
        raise OptionError(
            f"There is nothing to draw: the trace has {len(trace.source)} source and {len(trace.target)} target words."
        )
    check_letters(trace.source + trace.target)


def check_letters(words: Sequence[str]) -> None:
    """Refuse right-to-left words if this matplotlib cannot draw them."""
    if right_to_left(words) and not hasattr(ft2font, "__libraqm_version__"):
        raise RegardError(
            f"matplotlib {matplotlib.__version__} cannot join and order right-to-left letters; from 3.11 on it can: "
            "pip install -U matplotlib."
        )
