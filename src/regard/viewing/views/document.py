"""Documents: sentence bars and shaded words (Yang et al. 2016, figure 5)."""

from typing import TYPE_CHECKING

from rich.console import RenderableType

from regard.viewing.view import View

if TYPE_CHECKING:
    from regard.viewing.figures import InlineFigure


class DocumentView(View):
    """A classified document: a bar for each sentence, and its words shaded by their weight."""

    ELEMENTS = ("document",)

    def figure(self, *, raw: bool = False, title: str | None = None) -> "InlineFigure":  # type: ignore[override]
        """The document; its options are explained at `document_figures.shaded_sentences`."""
        from regard.viewing.document_figures import document_figure

        return document_figure(self.trace, raw=raw, title=title)

    def _heading(self) -> str:
        from regard.viewing.document_figures import document_heading

        return document_heading(self.trace)

    def terminal(self, *, width: int = 80, colour: bool = True, raw: bool = False) -> RenderableType:  # type: ignore[override]
        """The document for a terminal of this width; without `colour`, the strongest words stand between marks."""
        from regard.viewing.document_figures import document_terminal

        return document_terminal(self.trace, width=width, colour=colour, raw=raw)


VIEW = DocumentView
