"""One entrance to all views: the kind of a trace decides how it is drawn."""

import os
from collections.abc import Callable, Iterator, Mapping
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, RenderableType

from regard.errors import OptionError
from regard.trace import Trace
from regard.viewing import terminal, terminal_image

if TYPE_CHECKING:
    from regard.viewing.figures import InlineFigure


class View:
    """A trace as heat maps. `rich.print(view)` shows it in the terminal, a notebook displays it as an image."""

    STYLES: tuple[str, ...] = ("heat_map", "heat_maps", "lines")

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def figure(
        self,
        *,
        layer: int | None = None,
        head: int | None = None,
        name: str | None = None,
        style: str = "heat_map",
        title: str | None = None,
    ) -> "InlineFigure":
        """A matplotlib figure of the main map, or of the first map with this layer, head and name.

        `style` is "heat_map", "lines", or "heat_maps" for all selected heads side by side.
        """
        from regard.viewing import heat_map_figures, line_figures

        selected = self._select(layer=layer, head=head, name=name)
        if style not in self.STYLES:
            raise OptionError(f"There is no style {style!r}; choose from {', '.join(self.STYLES)}.")
        if style == "heat_maps":
            return heat_map_figures.heat_maps(selected, title=title)
        if title is None and (layer, head, name) != (None, None, None):
            title = selected.main.name
        draw = line_figures.lines if style == "lines" else heat_map_figures.heat_map
        return draw(selected, title=title)

    def save(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write the figure to a file; its suffix decides the format. `options` are those of `figure`."""
        from regard.viewing.figures import FORMATS, save

        _check_suffix(path, FORMATS)
        _check_options(self.figure, options)
        return save(self.figure(**options), path)

    def terminal(self, *, width: int = 80, colour: bool = True, **options: Any) -> RenderableType:
        """A rich renderable for a terminal of this width; `options` are layer, head and name, as in `figure`.

        Without `colour` the shape of each cell shows its weight; rich itself leaves colours out where there are none.
        """
        _check_options(self._select, options)
        return terminal.heat_map(self._select(**options), width=width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        yield self.terminal(width=options.max_width, colour=console.color_system is not None)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.trace!r})"

    def _repr_png_(self) -> bytes:
        return self.figure()._repr_png_()

    def _select(self, *, layer: int | None = None, head: int | None = None, name: str | None = None) -> Trace:
        if layer is None and head is None and name is None:
            return self.trace
        return self.trace.select(layer=layer, head=head, name=name)


class CaptionView(View):
    """A caption, word by word over its image."""

    def figure(  # type: ignore[override]
        self,
        *,
        layer: int | None = None,
        head: int | None = None,
        name: str | None = None,
        cells: bool = False,
        overlay: str = "light",
        columns: int = 7,
        title: str | None = None,
    ) -> "InlineFigure":
        """The word-by-word figure; its options are explained at `caption_figures.word_by_word`."""
        from regard.viewing.caption_figures import word_by_word

        selected = self._select(layer=layer, head=head, name=name)
        if title is None:
            title = selected.axis(selected.main.rows).text
        return word_by_word(selected, cells=cells, overlay=overlay, columns=columns, title=title)

    def save(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write the figure to a PNG, SVG or PDF file, or an animation to a GIF file, by the suffix of the path.

        `options` are those of `figure`; for a GIF those of `caption_figures.animation`.
        """
        from regard.viewing.caption_figures import animation
        from regard.viewing.figures import FORMATS, save

        if _check_suffix(path, (*FORMATS, ".gif")) != ".gif":
            _check_options(self.figure, options)
            return save(self.figure(**options), path)
        selection = {key: options.pop(key, None) for key in ("layer", "head", "name")}
        _check_options(animation, options)
        return save(animation(self._select(**selection), **options), path)

    def terminal(
        self, *, width: int = 80, colour: bool = True, cells: bool = False, overlay: str = "light", **options: Any
    ) -> RenderableType:
        """The word-by-word tiles for a terminal of this width, in shades of one character without `colour`."""
        _check_options(self._select, options)
        selected = self._select(**options)
        return terminal_image.word_by_word(
            selected, width=width, side=min(18, width), cells=cells, overlay=overlay, colour=colour
        )


class ReadingView(View):
    """A sentence as it was read, one line per word; attention between two sentences is a heat map."""

    STYLES: tuple[str, ...] = ("lines_of_words", *View.STYLES)

    def figure(
        self,
        *,
        layer: int | None = None,
        head: int | None = None,
        name: str | None = None,
        style: str = "lines_of_words",
        title: str | None = None,
    ) -> "InlineFigure":
        """The current word in red and the words it attends to shaded, line by line, or another style of `View`."""
        from regard.viewing.reading_figures import reading_figure

        selected = self._select(layer=layer, head=head, name=name)
        if style == "lines_of_words" and not self._is_one_sentence(selected):
            style = "heat_map"
        if style != "lines_of_words":
            return super().figure(layer=layer, head=head, name=name, style=style, title=title)
        return reading_figure(selected, title=title)

    def terminal(self, *, width: int = 80, colour: bool = True, **options: Any) -> RenderableType:
        """The lines for a terminal of this width; without `colour`, weights are written in hundredths."""
        from regard.viewing.reading_figures import reading_terminal

        _check_options(self._select, options)
        selected = self._select(**options)
        if not self._is_one_sentence(selected):
            return super().terminal(width=width, colour=colour, **options)
        return reading_terminal(selected, width=width, colour=colour)

    @staticmethod
    def _is_one_sentence(trace: Trace) -> bool:
        return not trace.maps or trace.main.rows == trace.main.columns


VIEWS: dict[str, type[View]] = {
    "text": View,
    "translation": View,
    "caption": CaptionView,
    "reading": ReadingView,
}
"""The view of each kind of trace. A kind that is not here is drawn as heat maps."""


def view(result: Any) -> View:
    """The view of a trace, or of a result that has one as `.trace`."""
    trace = result if isinstance(result, Trace) else getattr(result, "trace", result)
    if trace is None:
        raise OptionError(f"This {type(result).__name__} has no trace: its model has no attention to show.")
    if not isinstance(trace, Trace):
        raise OptionError(
            f"view takes a Trace or a result that has one; got {type(result).__name__}. Trace.load reads a file, "
            "Trace.from_weights takes the weights of any model."
        )
    return VIEWS.get(trace.kind, View)(trace)


def _check_options(draw: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Refuse options that this view does not have, as `cells` for a trace of text."""
    known = [name for name, each in signature(draw).parameters.items() if each.kind is Parameter.KEYWORD_ONLY]
    if unknown := [name for name in options if name not in known]:
        raise OptionError(f"This view has no option {unknown[0]!r}; choose from {', '.join(known)}.")


def _check_suffix(path: str | os.PathLike[str], allowed: tuple[str, ...]) -> str:
    suffix = Path(path).suffix.lower()
    if suffix not in allowed:
        raise OptionError(f"A view is saved as {', '.join(allowed)}, by the suffix; got {Path(path).name!r}.")
    return suffix
