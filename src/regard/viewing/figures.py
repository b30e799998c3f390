"""Figures for notebooks and files: what all figures share, and saving them."""

import base64
import io
import os
import re
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

from regard.errors import OptionError, RegardError
from regard.files import replacing, write_bytes
from regard.trace import Trace
from regard.viewing.words import printable, right_to_left, shortened

FORMATS = (".png", ".svg", ".pdf")
MAX_LETTERS = 28
"""Letters of a label before it is cut."""
NOTE_INCHES = 0.22
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
            f"matplotlib's fonts lack {len(missing)} letters, which are boxes in {path}: {letters}. The terminal and "
            "an .html file show them.",
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


def add_title(figure: Figure, title: str | None, **options: float | int) -> None:
    """A title over the whole figure, if there is one."""
    if title:
        figure.suptitle(printable(title), **({"fontsize": 12, "fontweight": "bold", "parse_math": False} | options))


def add_note(figure: InlineFigure, note: str | None) -> InlineFigure:
    """Write a line in small letters below the figure, if there is one; return the figure."""
    if note:
        if figure.get_layout_engine() is None:
            _make_room_below(figure, NOTE_INCHES)
        figure.supxlabel(printable(note), fontsize=7, color="0.35", parse_math=False)
    return figure


def _make_room_below(figure: InlineFigure, inches: float) -> None:
    """Make a figure taller, and move what it holds up."""
    height = figure.get_figheight()
    taller = height + inches
    figure.set_figheight(taller)
    for axes in figure.axes:
        place = axes.get_position()
        axes.set_position(
            (place.x0, (place.y0 * height + inches) / taller, place.width, place.height * height / taller)
        )
    for text in figure.texts:
        text.set_y((text.get_position()[1] * height + inches) / taller)


def check_drawable(trace: Trace) -> None:
    """Refuse a trace without positions, and right-to-left words where matplotlib cannot draw them."""
    if not trace.source or not trace.target:
        raise OptionError(
            f"There is nothing to draw: the trace has {len(trace.source)} source and {len(trace.target)} target words."
        )
    if right_to_left(trace.source + trace.target) and not hasattr(ft2font, "__libraqm_version__"):
        raise RegardError(
            f"matplotlib {matplotlib.__version__} cannot join and order right-to-left letters; from 3.11 on it can: "
            "pip install -U matplotlib."
        )
