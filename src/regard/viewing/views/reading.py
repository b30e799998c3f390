"""Readings: the current word in red and the words it attends to shaded, line by line (Cheng et al. 2016, figure 1)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from rich.console import RenderableType

from regard.trace import Trace
from regard.viewing.view import View, mean_note, with_mean_note

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
        pieces: bool = False,
        style: str = "word_by_word",
        title: str | None = None,
    ) -> "InlineFigure":
        """The lines as a figure; or, as for other traces, "heat_map", "heat_maps" or "lines"."""
        from regard.viewing.figures import add_note
        from regard.viewing.reading_figures import reading_figure

        selected = self._drawn(layer=layer, head=head, name=name, pieces=pieces)
        if style == "word_by_word" and _is_one_sentence(selected):
            return add_note(reading_figure(selected, title=title), mean_note(selected))
        style = "heat_map" if style == "word_by_word" else style
        return super().figure(layer=layer, head=head, name=name, pieces=pieces, style=style, title=title)

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
        """The lines for a terminal of this width; without `colour`, weights are written in hundredths."""
        from regard.viewing.reading_figures import reading_terminal

        selected = self._drawn(layer=layer, head=head, name=name, pieces=pieces)
        if not _is_one_sentence(selected):
            return super().terminal(width=width, colour=colour, layer=layer, head=head, name=name, pieces=pieces)
        return with_mean_note(reading_terminal(selected, width=width, colour=colour), selected)


def _is_one_sentence(trace: Trace) -> bool:
    return not trace.maps or trace.main.rows == trace.main.columns


VIEW = ReadingView
