"""One entrance to all views: the kind of a trace decides how it is drawn."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.console import Console, ConsoleOptions, RenderableType
from rich.text import Text

from regard.errors import OptionError
from regard.files import write_text
from regard.trace import Trace
from regard.viewing import terminal

if TYPE_CHECKING:
    from regard.viewing.figures import InlineFigure

_MAX_TITLE = 160
MEASURED = "attention_measured"
"""The name, in metrics.json and in the extras of a trace, of a line that says how right such attention is."""


class View:
    """A trace as heat maps. `rich.print(view)` shows it in the terminal, a notebook displays it to be explored."""

    STYLES: ClassVar[Mapping[str, str]] = {"heat_map": "matrix", "heat_maps": "heads", "lines": "lines"}
    """The styles of a figure, and the web component that corresponds to each: `<attention-NAME>` of viewing/web."""
    ELEMENTS: ClassVar[tuple[str, ...]] = ("matrix", "lines", "heads")
    """The web components that show this kind of trace, the main one first."""
    SUFFIXES: ClassVar[tuple[str, ...]] = (".png", ".svg", ".pdf", ".html")
    """The files that a view can be saved as."""

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
        """Write the view to a file; its suffix decides the format. `options` are those of `figure`.

        PNG, SVG and PDF are figures. HTML is a page in one file that needs no network: it shows the numbers behind
        the picture, every layer and head, and saves what is selected.
        """
        suffix = check_suffix(path, self.SUFFIXES)
        check_options(self.figure, options)
        if suffix == ".html":
            return write_text(path, self.page(**options))
        from regard.viewing.figures import add_note, save

        return save(add_note(self.figure(**options), self.measured), path)

    def page(self, **options: Any) -> str:
        """A complete HTML page; `options` are those of `figure`."""
        from regard.viewing import pages

        check_options(self.figure, options)
        return pages.page([self._component(**options)], title=options.get("title") or self._heading())

    def terminal(self, *, width: int = 80, colour: bool = True, **options: Any) -> RenderableType:
        """A rich renderable for a terminal of this width; `options` are layer, head and name, as in `figure`.

        Without `colour` the shape of each cell shows its weight; rich itself leaves colours out where there are none.
        """
        check_options(self._select, options)
        return terminal.heat_map(self._select(**options), width=width)

    @property
    def measured(self) -> str | None:
        """How right this attention is where that was measured, in one line; None if it was not."""
        line = self.trace.extras.get(MEASURED)
        return line if isinstance(line, str) else None

    def show(self, console: Console, **options: Any) -> None:
        """Print `terminal` as wide as the console, and below it how right the attention is."""
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
        from regard.viewing import pages

        return pages.notebook_output(self._component())

    def _component(self, **options: Any) -> str:
        """The web component with the trace inside; options of a figure become options of the component."""
        from regard.viewing import pages

        selection = {name: options[name] for name in ("layer", "head", "name") if options.get(name) is not None}
        self._select(**selection)  # which refuses what the trace does not have
        style = options.get("style")
        shown = None if style is None else self.STYLES.get(style)
        if style is not None and shown is None:
            raise OptionError(f"There is no style {style!r}; choose from {', '.join(self.STYLES)}.")
        chosen = selection | {name: True for name in ("cells", "raw") if options.get(name)}
        if options.get("overlay", "light") != "light":
            chosen["overlay"] = "magma"
        return pages.component(self.trace, self.ELEMENTS, shown=shown, options=chosen)

    def _heading(self) -> str:
        """What the page is called unless it is given a title."""
        texts = [axis.text for axis in self.trace.axes if axis.text]
        return " → ".join(texts)[:_MAX_TITLE] or self.trace.kind.capitalize()

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
    """The class that draws a kind of trace: `VIEW` of `viewing/views/KIND.py`, or heat maps where there is none."""
    name = f"regard.viewing.views.{kind}"
    if not re.fullmatch("[a-z_]+", kind) or find_spec(name) is None:
        return View
    found: type[View] = import_module(name).VIEW
    return found


def check_options(draw: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Refuse options that this view does not have, as `cells` for a trace of text."""
    known = [name for name, each in signature(draw).parameters.items() if each.kind is Parameter.KEYWORD_ONLY]
    if unknown := [name for name in options if name not in known]:
        raise OptionError(f"This view has no option {unknown[0]!r}; choose from {', '.join(known)}.")


def check_suffix(path: str | os.PathLike[str], allowed: tuple[str, ...]) -> str:
    """The suffix of a path in lower case, which must be one of those that a view can be saved as."""
    suffix = Path(path).suffix.lower()
    if suffix not in allowed:
        raise OptionError(f"A view is saved as {', '.join(allowed)}, by the suffix; got {Path(path).name!r}.")
    return suffix
