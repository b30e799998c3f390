"""Glimpses: their path over the image, and the belief after each."""

from typing import TYPE_CHECKING

from rich.console import RenderableType

from regard.viewing.view import View

if TYPE_CHECKING:
    from regard.viewing.figures import InlineFigure


class GlimpseView(View):
    """The path of glimpses over an image, what each saw, and the belief after it."""

    ELEMENTS = ("glimpses",)

    def figure(self, *, title: str | None = None) -> "InlineFigure":  # type: ignore[override]
        """The image with the path, and for each glimpse its patches and the belief (see `glimpse_figures`)."""
        from regard.viewing.glimpse_figures import glimpse_figure

        return glimpse_figure(self.trace, title=title)

    def terminal(self, *, width: int = 80, colour: bool = True) -> RenderableType:  # type: ignore[override]
        """The image with the path and the belief after each glimpse, for a terminal of this width."""
        from regard.viewing.glimpse_figures import glimpse_terminal

        return glimpse_terminal(self.trace, width=width, colour=colour)


VIEW = GlimpseView
