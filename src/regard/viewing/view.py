"""One entrance to all views: the kind of a trace decides how it is drawn."""

import os
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.text import Text

from regard.arguments import check_arguments, checked
from regard.data.text import well_formed
from regard.errors import OptionError
from regard.extras import require
from regard.files import write_text
from regard.trace import Trace
from regard.trace.subwords import plain_tokens
from regard.viewing import page
from regard.viewing.tokens import shortened

if TYPE_CHECKING:
    from regard.viewing.figures import InlineFigure

_MAX_TITLE = 160
MEASURED = "attention_measured"
"""Key, in metrics.json and in the extras of a trace, of a line that says how accurate such attention is."""

FIGURES = (".png", ".svg", ".pdf")
"""The files that hold a figure."""
SIZES = {"width": ("inches", 100), "height": ("inches", 100), "font_size": ("points", 200), "dpi": ("pixels", 2400)}
"""The options of a figure's file, each with its unit and its maximum."""
OWN_VIEWS = {
    "caption": "image:ImageView",
    "document": "document:DocumentView",
    "glimpses": "glimpses:GlimpsesView",
    "reading": "reading:ReadingView",
    "tape": "tape:TapeView",
}
"""The kinds of traces with a view of their own; others are drawn as heat maps."""


class View:
    """A trace as heat maps. `rich.print(view)` shows it in the terminal, a notebook displays it to be explored.

    A kind of trace that is drawn in another way has a subclass in a file of its own, with its own `figure`, `terminal`,
    ELEMENTS and, where a table of the main map does not say enough, `html_table`.
    """

    STYLES: ClassVar[Mapping[str, str]] = {"heat_map": "matrix", "heat_maps": "heads", "lines": "lines"}
    """The styles of a figure, and the web component that corresponds to each: `<attention-NAME>` of viewing/web."""
    ELEMENTS: ClassVar[tuple[str, ...]] = ("matrix", "lines", "heads")
    """The web components that show this kind of trace, the main one first."""
    SUFFIXES: ClassVar[tuple[str, ...]] = (*FIGURES, ".html")
    """The files that a view can be saved as."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    @checked
    def figure(
        self,
        *,
        layer: int | None = None,
        head: int | None = None,
        name: str | None = None,
        pieces: bool = False,
        style: str | None = None,
        title: str | None = None,
    ) -> "InlineFigure":
        """A matplotlib figure of the main map, or of the first map with this layer, head and name.

        The subwords of each word are joined, unless `pieces` asks for them. `style` is "heat_map", "lines", or
        "heat_maps" for all selected heads side by side; for a reading also "word_by_word", its default.
        """
        from regard.viewing.figures import add_note

        selected = self._drawn(layer=layer, head=head, name=name, pieces=pieces)
        style = self.drawn_style(selected, self.check_style(style or next(iter(self.STYLES))))
        if title is None and (layer, head, name) != (None, None, None) and style in ("heat_map", "lines"):
            title = selected.main.name
        # The file of a style is called as its component is.
        drawn: InlineFigure = import_module(f"regard.viewing.{self.STYLES[style]}").figure(selected, title=title)
        return drawn if style == "heat_maps" else add_note(drawn, mean_note(selected))

    def drawn_style(self, trace: Trace, style: str) -> str:
        """The style in which this trace is drawn when `style` is asked for."""
        return style

    def check_style(self, style: str) -> str:
        """Return the name of a style; an OptionError lists those that exist if there is none of this name."""
        if style not in self.STYLES:
            raise OptionError(f"There is no style {style!r}; choose from {', '.join(self.STYLES)}.")
        return style

    def options(self, path: str | os.PathLike[str] | None = None) -> tuple[str, ...]:
        """The names of the options that `save` to this path takes, or without one `terminal` and `show`."""
        if path is None:
            return tuple(name for name in signature(self.terminal).parameters if name not in ("width", "colour"))
        sizes = SIZES if Path(path).suffix.lower() in FIGURES else {}
        return (*signature(self.figure).parameters, *sizes)

    @checked
    def save(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write the view to a file; its suffix decides the format. `options` are those of `figure`.

        PNG, SVG and PDF are figures; for these there are also `width` and `height` in inches, `font_size`, the size of
        the labels in points, and `dpi`, the pixels of an inch. One of the first three scales the figure as a whole;
        heat maps take several. HTML is a page in one file that needs no network: it shows the numbers behind the
        picture, every layer and head, and saves what is selected.
        """
        suffix = check_suffix(path, self.SUFFIXES)
        check_options(self.options(path), options)
        check_arguments(self.figure, options)
        if suffix == ".html":
            return write_text(path, self.page(**options))
        size = check_size({name: options.pop(name) for name in SIZES if name in options})
        require("A figure", "matplotlib", instead="Pages (.html) and the terminal do without.")
        from regard.viewing.figures import DPI, add_note, resize, save

        dpi = size.pop("dpi", DPI)
        return save(add_note(resize(self.figure(**options), **size), self.measured), path, dpi=dpi)

    def page(self, **options: Any) -> str:
        """A complete HTML page; `options` are those of `figure`."""
        check_options(self.options("page.html"), options)
        check_arguments(self.figure, options)
        title = well_formed(options.get("title") or self._heading())
        return page.page(self._component(**options), title=title)

    @checked
    def terminal(
        self,
        *,
        width: int = 80,
        colour: bool = True,
        layer: int | None = None,
        head: int | None = None,
        name: str | None = None,
        pieces: bool = False,
    ) -> RenderableType:
        """A rich renderable for a terminal of this width, of the map and the words or subwords that `figure` draws.

        Without `colour` the shape of each cell shows its weight; rich itself leaves colours out where there are none.
        """
        selected = self._drawn(layer=layer, head=head, name=name, pieces=pieces)
        return with_mean_note(self._terminal(selected, width=width, colour=colour), selected)

    def _terminal(self, trace: Trace, *, width: int, colour: bool) -> RenderableType:
        from regard.viewing import matrix

        return matrix.terminal(trace, width=width)

    def html_table(self) -> str:
        """The main map as a plain HTML table, for a notebook that is not trusted and other places without scripts."""
        from regard.viewing import matrix

        if not self.trace.maps or not self.trace.weights.size:
            return f"<p>{escape(repr(self.trace))}</p>"
        return matrix.html_table(self.trace)

    @property
    def measured(self) -> str | None:
        """One line on how accurate this attention is; None if that was not measured."""
        line = self.trace.extras.get(MEASURED)
        return line if isinstance(line, str) else None

    def show(self, console: Console, **options: Any) -> None:
        """Print `terminal` as wide as the console, and below it how accurate the attention is."""
        check_options(self.options(), options)
        check_arguments(self.terminal, options)
        console.print(self.terminal(width=console.width, colour=console.color_system is not None, **options))
        if self.measured:
            console.print(Text(self.measured, style="dim"))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        yield self.terminal(width=options.max_width, colour=console.color_system is not None)
        if self.measured:
            yield Text(self.measured, style="dim")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.trace!r})"

    def _repr_html_(self) -> str:
        return page.notebook_output(self._component())

    def _component(self, **options: Any) -> str:
        """The web component with the trace inside; options of a figure become options of the component."""
        selection = {name: options[name] for name in ("layer", "head", "name") if options.get(name) is not None}
        self._select(**selection)  # which refuses what the trace does not have
        style = options.get("style")
        shown = None if style is None else self.STYLES[self.check_style(style)]
        chosen = selection | {name: True for name in ("cells", "raw") if options.get(name)}
        if "overlay" in options:
            from regard.viewing.image import check_overlay

            chosen["overlay"] = {"light": "light", "colour": "magma"}[check_overlay(options["overlay"])]
        if not options.get("pieces") and any(axis.words for axis in self.trace.axes):
            chosen["words"] = True
        image = self.trace.image and f'<img src="{escape(self.trace.image)}" alt="the image of this trace" width="360">'
        table = f"{image or ''}{self.html_table()}"
        return page.component(self.trace, self.ELEMENTS, shown=shown, options=chosen, table=table)

    def _heading(self) -> str:
        """The default title of the page: the texts, or the words of the main map."""
        texts = [axis.text for axis in self.trace.axes if axis.text]
        if not texts and self.trace.maps:
            sides = dict.fromkeys((self.trace.main.columns, self.trace.main.rows))
            axes = [axis for axis in map(self.trace.axis, sides) if axis.kind in ("tokens", "words")]
            texts = [text for axis in axes if (text := plain_tokens(axis.labels[:_MAX_TITLE])[1])]
        named = "Attention" if self.trace.kind == "text" else self.trace.kind.capitalize()
        return shortened(" → ".join(texts), _MAX_TITLE) or named

    def _drawn(
        self, *, layer: int | None = None, head: int | None = None, name: str | None = None, pieces: bool = False
    ) -> Trace:
        selected = self._select(layer=layer, head=head, name=name)
        return selected if pieces else selected.by_words()

    def _select(self, *, layer: int | None = None, head: int | None = None, name: str | None = None) -> Trace:
        if layer is None and head is None and name is None:
            return self.trace
        return self.trace.select(layer=layer, head=head, name=name)


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
    return view_class(trace.kind)(trace)


def view_class(kind: str) -> type[View]:
    """The class that draws a kind of trace: its own, or heat maps."""
    if kind not in OWN_VIEWS:
        return View
    file, _, name = OWN_VIEWS[kind].partition(":")
    found: type[View] = getattr(import_module(f"regard.viewing.{file}"), name)
    return found


def check_options(known: Sequence[str], options: Mapping[str, Any]) -> None:
    """Refuse options that this view does not have, as `cells` for a trace of text."""
    if unknown := [name for name in options if name not in known]:
        raise OptionError(f"This view has no option {unknown[0]!r}; choose from {', '.join(known)}.")


def check_size(given: Mapping[str, Any]) -> dict[str, float]:
    """The sizes of a figure that are given, which must be numbers above 0 and up to the maximum of each."""
    for name, value in given.items():
        unit, most = SIZES[name]
        if value is not None and (
            isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= most
        ):
            raise OptionError(f"The {name} of a figure is a number of {unit} above 0, up to {most}; got {value!r}.")
    return {name: float(value) for name, value in given.items() if value is not None}


def mean_note(trace: Trace) -> str | None:
    """A note for a main map that is the mean of all heads, or of those of one layer; None for others."""
    if not trace.maps or trace.main.head is not None:
        return None
    sides = trace.main.rows, trace.main.columns
    heads = [each for each in trace.maps if each.head is not None and (each.rows, each.columns) == sides]
    layers = sorted({each.layer for each in heads if each.layer is not None})
    choices = {None: heads} | {layer: [each for each in heads if each.layer == layer] for layer in layers}
    for layer, maps in choices.items():
        if len(maps) > 1 and np.allclose(trace.weights, np.mean([each.weights for each in maps], 0), atol=1e-4):
            several = f" in {len(layers)} layers" if len(layers) > 1 else ""
            return f"Mean of {len(maps)} heads{several if layer is None else f' of layer {layer}'}."
    return None


def with_mean_note(drawn: RenderableType, trace: Trace) -> RenderableType:
    """A renderable for the terminal, with `mean_note` below it if there is one."""
    note = mean_note(trace)
    return drawn if note is None else Group(drawn, Text(note, style="dim"))


def check_suffix(path: str | os.PathLike[str], allowed: tuple[str, ...]) -> str:
    """The suffix of a path in lower case, which must be one of those that a view can be saved as."""
    suffix = Path(path).suffix.lower()
    if suffix not in allowed:
        raise OptionError(f"A view is saved as {', '.join(allowed)}, by the suffix; got {Path(path).name!r}.")
    return suffix
