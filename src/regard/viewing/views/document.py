"""Documents: sentence bars and shaded words (Yang et al. 2016, figure 5)."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from regard.files import write_text
from regard.viewing.view import View, check_options, check_suffix

if TYPE_CHECKING:
    from regard.viewing.figures import InlineFigure


class DocumentView(View):
    """A classified document: a bar for each sentence, and its words shaded by their weight."""

    def figure(self, *, raw: bool = False, title: str | None = None) -> "InlineFigure":  # type: ignore[override]
        """The document; its options are explained at `document_figures.shaded_sentences`."""
        from regard.viewing.document_figures import document_figure

        return document_figure(self.trace, raw=raw, title=title)

    def save(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write the figure to a PNG, SVG or PDF file, or a page to an HTML file; `options` are those of `figure`."""
        from regard.viewing.document_page import document_page
        from regard.viewing.figures import FORMATS, save

        suffix = check_suffix(path, (*FORMATS, ".html"))
        check_options(self.figure, options)
        if suffix == ".html":
            return write_text(path, document_page(self.trace, **options))
        return save(self.figure(**options), path)

    def terminal(self, *, width: int = 80, colour: bool = True, raw: bool = False) -> RenderableType:  # type: ignore[override]
        """The document for a terminal of this width; without `colour`, the strongest words stand between marks."""
        from regard.viewing.document_figures import document_terminal

        return document_terminal(self.trace, width=width, colour=colour, raw=raw)


VIEW = DocumentView
