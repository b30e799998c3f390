"""Tapes: inputs, outputs, and where a memory machine read and wrote, over time (Graves et al. 2014, figure 6)."""

from typing import TYPE_CHECKING

from rich.console import RenderableType

from regard.viewing.view import View

if TYPE_CHECKING:
    from regard.viewing.figures import InlineFigure


class TapeView(View):
    """A memory machine at work: input, output, the movements of its heads, and its memory."""

    ELEMENTS = ("tape",)

    def figure(self, *, title: str | None = None) -> "InlineFigure":  # type: ignore[override]
        """All panels above each other, time from left to right (see `tape_figures`)."""
        from regard.viewing.tape_figures import tape_figure

        return tape_figure(self.trace, title=title)

    def terminal(self, *, width: int = 80, colour: bool = True) -> RenderableType:  # type: ignore[override]
        """The same panels for a terminal of this width."""
        from regard.viewing.tape_figures import tape_terminal

        return tape_terminal(self.trace, width=width, colour=colour)


VIEW = TapeView
