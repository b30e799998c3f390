"""Readings: the current word in red and the words it attends to shaded, line by line (Cheng et al. 2016, figure 1)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from rich.console import RenderableType

from regard.trace import Trace
from regard.viewing.view import View, check_options

if TYPE_CHECKING:
    from regard.viewing.figures import InlineFigure


class ReadingView(View):
    """A sentence as it was read, one line per word; attention between two sentences is a heat map."""

    STYLES: ClassVar[Mapping[str, str]] = {"word_by_word": "reading", **View.STYLES}
    ELEMENTS = ("reading", *View.ELEMENTS)

    def figure(
        self,
        *,
        layer: int | None = None,
        head: int | None = None,
        name: str | None = None,
        style: str = "word_by_word",
        title: str | None = None,
    ) -> "InlineFigure":
        """The lines as a figure; or, as for other traces, "heat_map", "heat_maps" or "lines"."""
        from regard.viewing.reading_figures import reading_figure

        selected = self._select(layer=layer, head=head, name=name)
        if style == "word_by_word" and _is_one_sentence(selected):
            return reading_figure(selected, title=title)
        style = "heat_map" if style == "word_by_word" else style
        return super().figure(layer=layer, head=head, name=name, style=style, title=title)

    def terminal(self, *, width: int = 80, colour: bool = True, **options: Any) -> RenderableType:
        """The lines for a terminal of this width; without `colour`, weights are written in hundredths."""
        from regard.viewing.reading_figures import reading_terminal

        check_options(self._select, options)
        selected = self._select(**options)
        if not _is_one_sentence(selected):
            return super().terminal(width=width, colour=colour, **options)
        return reading_terminal(selected, width=width, colour=colour)


def _is_one_sentence(trace: Trace) -> bool:
    return not trace.maps or trace.main.rows == trace.main.columns


VIEW = ReadingView
