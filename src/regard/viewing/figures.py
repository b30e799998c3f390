"""Figures for notebooks and files: what all figures share, and saving them."""

import base64
import io
import os
import re
import textwrap
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import ft2font
from matplotlib.figure import Figure
from matplotlib.text import Text

from regard.errors import OptionError, RegardError, counted
from regard.files import replacing, write_bytes
from regard.trace import Trace
from regard.trace.elements import right_to_left
from regard.viewing.tokens import printable, shortened

FORMATS = (".png", ".svg", ".pdf")
MAX_LETTERS = 28
"""Maximum number of letters of a label."""
NOTE_INCHES = 0.22
_NOTE_FONTSIZE = 7
_LEGEND_FONTSIZE = 7.5
_POINTS_PER_INCH = 72
_LETTER_WIDTH = 0.64
"""Width of a letter of matplotlib's font, on average, as a fraction of its size."""
_DPI = 150
_INCHES_PER_LETTER = 0.085
# The same figure gives the same bytes: ids from a fixed salt, no date. Text in SVG stays text.
_SETTINGS: dict[Any, str] = {"svg.hashsalt": "regard", "svg.fonttype": "none"}
_METADATA: dict[str, dict[str, str | None]] = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
_MISSING = re.compile(r"Glyph (\d+) .* missing from font")
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


def save(figure: Figure | Animation, path: str | os.PathLike[str]) -> Path:
    """Write a figure as PNG, SVG or PDF, or an animation as GIF, by the suffix of the path.

    The same figure always gives the same bytes, and the text of an SVG stays text.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    allowed = FORMATS if isinstance(figure, Figure) else (".gif",)
    if suffix not in allowed:
        kind = "A figure" if isinstance(figure, Figure) else "An animation"
        raise OptionError(f"{kind} is saved as {', '.join(allowed)}; got {path.name!r}.")
    if not isinstance(figure, Figure):
        return write_bytes(path, figure.gif)
    with replacing(path) as draft, _SETTINGS_LOCK, matplotlib.rc_context(_SETTINGS), _one_warning(path):
        figure.savefig(draft, format=suffix[1:], dpi=_DPI, metadata=_METADATA[suffix])
    return path


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


def add_note(figure: InlineFigure, note: str | None) -> InlineFigure:
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
        place = axes.get_position(original=True)
        axes.set_position((place.x0, (place.y0 * height + below) / taller, place.width, place.height * height / taller))
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
